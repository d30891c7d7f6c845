"""One invented person's year as the connections of the demo, read from the files in `life/`."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import orjson

from service.records.intake import Row

FOLDER = Path(__file__).parent
EMITTED_AT = "2026-05-11T00:00:00Z"
#: Connection id, connector key and label; `life/` has one file for each.
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


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection of the demo; `later` are the rows of a second import."""

    connection_id: str
    connector_key: str
    label: str
    rows: tuple[Row, ...]
    later: tuple[Row, ...]

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of all connections of this kind."""
        path = FOLDER / "manifests" / f"{self.connector_key}.json"
        document: dict[str, Any] = orjson.loads(path.read_bytes())
        return document


def questions() -> list[Question]:
    """The questions in the order of the file."""
    return [Question(**each) for each in _toml("questions")["questions"]]


def build() -> Iterator[Connection]:
    """The connections, one after the other."""
    long = {each["id"]: each for each in _toml("long")["texts"]}
    for connection_id, connector_key, label in CONNECTIONS:
        lines = (FOLDER / "life" / f"{connection_id}.ndjson").read_bytes().splitlines()
        rows: tuple[list[Row], list[Row]] = [], []
        for line in map(orjson.loads, lines):
            data, stream = line["data"], line["stream"]
            if text := long.get(f"{connection_id}/{stream}:{data['id']}"):
                data[text["field"]] = _compose(text)
            row = Row(data, data["id"], EMITTED_AT, stream, line.get("deleted", False))
            rows[line.get("later", False)].append(row)
        yield Connection(connection_id, connector_key, label, tuple(rows[0]), tuple(rows[1]))


def _compose(text: dict[str, Any]) -> str:
    """A text of weekly entries, each with two thirds of the paragraphs in another order."""
    random, day = Random(text["id"]), date.fromisoformat(text["first_day"])
    paragraphs = text["paragraphs"].strip().split("\n\n")
    parts = [text["opening"].strip()]
    length = 0
    while length < text["chars"]:
        chosen = random.sample(paragraphs, len(paragraphs) * 2 // 3)
        parts += [day.strftime(text["heading"]), *chosen]
        length = sum(map(len, parts))
        day += timedelta(days=7)
    for share, sentence in text["once"]:
        parts.insert(int(share * len(parts)), sentence)
    return "\n\n".join([*parts, text["closing"]])


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / "life" / f"{name}.toml").read_text(encoding="utf-8"))
