"""One invented person's year: the connections of the demo, and questions that it answers.

`year.zip` has the rows of each connection in files in PDPP's ingest format, one for each import;
`make demo-data` writes it from the files in `tests/demo_life`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

FOLDER = Path(__file__).parent
ARCHIVE = FOLDER / "year.zip"
#: Connection id, connector key and label; the archive has a folder for each.
CONNECTIONS = (
    ("gmail-work", "gmail", "Work mail"),
    ("gmail-home", "gmail", "Home mail"),
    ("slack-team", "slack", "Team chat"),
    ("notes", "notes", "Notes"),
    ("calendar", "calendar", "Calendar"),
    ("bank", "bank", "Giro account"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the demo answers: the record and field, and a phrase of the answer."""

    question: str
    id: str
    field: str
    answer: str


def questions() -> list[Question]:
    """The questions in the order of the file."""
    text = (FOLDER / "questions.toml").read_text(encoding="utf-8")
    return [Question(**each) for each in tomllib.loads(text)["questions"]]


def manifest(connector_key: str) -> Any:
    """The manifest that all connections of a kind share."""
    return orjson.loads((FOLDER / "manifests" / f"{connector_key}.json").read_bytes())
