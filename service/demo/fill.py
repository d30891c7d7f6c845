"""Fills a store with one invented person's year, and creates a token for the store.

`year.zip` has the rows of each connection in files in PDPP's ingest format, one for each import;
`make demo-data` writes it from the files in `tests/demo_life`.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import ZipFile

import orjson

from evidence.errors import EvidenceError
from service import durable
from service.access.grants import create, find
from service.access.registry import Registry
from service.importing.process.guard import header, records
from service.importing.importer import Import
from service.importing.plan import Plan
from service.importing.source import Repair, Source
from service.records.writing.streams import connect
from service.records.writing import Writing

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
LABEL = "demo"
VERSION = "4"


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
    return [Question(**question) for question in tomllib.loads(text)["questions"]]


def manifest(connector_key: str) -> Any:
    """The manifest that all connections of a kind share."""
    return orjson.loads((FOLDER / "manifests" / f"{connector_key}.json").read_bytes())


def fill(writer: Writing) -> list[str]:
    """Imports the demo unless the store has it; returns its connection ids.

    The records of an older version are replaced.
    """
    version, *ids = str(writer.meta("demo") or "").split("\n")
    if version != VERSION:
        _empty(writer, ids)
        with ZipFile(ARCHIVE) as archive:
            ids = [_put(writer, archive, *connection) for connection in CONNECTIONS]
        with writer.transaction():
            writer.set_meta("demo", "\n".join((VERSION, *ids)))
    writer.finish()
    return ids


def token_for(writer: Writing, connections: Iterable[str], token_file: Path) -> str:
    """A token for the whole demo: the stored one while it is valid, else a new one."""
    entries = [
        {"connection_id": connection_id, "stream": manifest.name, "fields": list(manifest.fields)}
        for connection_id in connections
        for manifest in writer.manifests(connection_id)
    ]
    registry = Registry(writer)
    required = {(entry["connection_id"], entry["stream"], *entry["fields"]) for entry in entries}
    try:
        token = token_file.read_text(encoding="utf-8").strip()
        granted = find(registry, token).streams
        if required == {(item.connection_id, item.stream, *item.fields) for item in granted}:
            return token
    except (OSError, EvidenceError):
        pass  # no stored token, or an expired one
    _, token = create(registry, {"streams": entries}, label=LABEL)
    durable.write(token_file, f"{token}\n".encode())
    return token


def _empty(writer: Writing, connections: Iterable[str]) -> None:
    """Removes the records of connections; their streams stay, for the grants that cover them."""
    streams = [(name, entry.name) for name in connections for entry in writer.manifests(name)]
    if streams:
        with writer.staging(streams) as stage:
            stage.keep_manifests(streams)
            stage.publish()


def _put(writer: Writing, archive: ZipFile, name: str, connector_key: str, label: str) -> str:
    """Imports the files of a connection."""
    connect(writer, name, connector_key=connector_key, label=label)
    task = Import(writer, Plan(name))
    task.declare(manifest(connector_key))
    for member in archive.namelist():
        if member.startswith(f"{name}/"):
            with archive.open(member) as file:
                source = Source(member, "ndjson", cast(BinaryIO, file), Repair())
                task.read(header(source), records(source))
    return name
