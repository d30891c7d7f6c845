"""Stores of a few connections, written by the real importer, and the applications over them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flask import Flask

from service import bootstrap, settings
from service.app import create_app
from service.upstreams.store.grants import create
from service.upstreams.store.ingest import Batch
from service.upstreams.store.intake import Row
from service.upstreams.store.manifest import parse
from service.upstreams.store.streams import connect, declare, open_stream
from service.upstreams.store.writer import Writer, open_writer
from tests.helpers.caller import Local

EMITTED_AT = "2026-05-02T00:00:00Z"
SECRET = "not a secret"
GRANT_ID = "grt_0000000000000001"
RANGE = ["gte", "gt", "lte", "lt"]

TEXT = {"type": "string", "x_pdpp_type": "text"}
WORD = {"type": "string"}
WHOLE = {"type": "integer"}
OBJECT = {"type": "object"}
TIME = {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"}
TITLE = {**TEXT, "x_pdpp_role": "primary-title"}
BODY = {**TEXT, "x_pdpp_role": "primary-text"}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream and its records; each record is known by its `id`. `more` joins the manifest."""

    name: str
    properties: dict[str, Any]
    records: Sequence[dict[str, Any]]
    searched: Sequence[str] = ()
    cursor: str | None = None
    query: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        """The stream as the importer takes it."""
        query = {"search": {"lexical_fields": list(self.searched)}, **self.query}
        found = {
            "name": self.name,
            "primary_key": ["id"],
            "schema": {"type": "object", "properties": {"id": WORD, **self.properties}},
            "query": query,
            **self.more,
        }
        return found | ({"cursor_field": self.cursor} if self.cursor else {})


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection with its streams."""

    id: str
    streams: Sequence[Stream]
    key: str | None = None
    label: str | None = None


def write(path: Path, connections: Iterable[Connection]) -> None:
    """Fills a new store."""
    with open_writer(path) as writer:
        for connection in connections:
            _put(writer, connection)
        writer.finish()


def _put(writer: Writer, connection: Connection) -> None:
    name = connection.id
    connect(writer, name, connector_key=connection.key, label=connection.label)
    declare(writer, name, parse({"streams": [stream.manifest() for stream in connection.streams]}))
    for stream in connection.streams:
        put(writer, name, stream.name, stream.records)


def put(writer: Writer, connection: str, stream: str, records: Iterable[dict[str, Any]]) -> None:
    """Puts records into a stream that is declared; one with `deleted` is taken out."""
    handle, batch = open_stream(writer, connection, stream), Batch(writer)
    for record in records:
        deleted = record.get("deleted") is True
        batch.add(handle, Row(record, record["id"], EMITTED_AT, deleted=deleted))
    batch.flush()
    assert not batch.counts.refused, batch.counts.refusals


def grant(path: Path, document: Any = None, *, grant_id: str | None = None) -> str:
    """A token for a grant document, or for everything the store has now."""
    with open_writer(path) as writer:
        if document is None:
            rows = writer.db.execute("SELECT connection_id FROM connection ORDER BY id").fetchall()
            document = {"streams": [{"connection_id": row[0]} for row in rows]}
        made, token = create(writer.db, document)
        if grant_id is not None:
            with writer.transaction():
                writer.db.execute(
                    'UPDATE "grant" SET grant_id = ? WHERE grant_id = ?', (grant_id, made)
                )
    return token


def application(path: Path, **environment: str) -> Flask:
    """The product over a store."""
    found = {"RUNG_STORE": str(path), "RUNG_SECRET_KEY": SECRET, **environment}
    return create_app(bootstrap.build(settings.load(found)))


def open_store(path: Path, connections: Iterable[Connection]) -> Local:
    """A new store, granted whole, with a client of it. The same records give the same answers."""
    write(path, connections)
    return Local(application(path), grant(path, grant_id=GRANT_ID))
