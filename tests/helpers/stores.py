"""Worlds of the small and the hostile owner: streams with their records, and their clients."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.records.writing.ingest import Batch
from service.records.writing.streams import open_stream
from service.records.opening import open_writer
from tests.helpers import worlds
from tests.helpers.caller import Local
from tests.helpers.worlds import EMITTED_AT, House, Row, World

GRANT_ID = "grt_0000000000000001"
EPOCH = "0123456789ab"
RANGE = worlds.TIMES

TEXT = {"type": "string", "x_pdpp_type": "text"}
WORD = {"type": "string"}
WHOLE = {"type": "integer"}
OBJECT = {"type": "object"}
TIME = {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"}
TITLE = {**TEXT, "x_pdpp_role": "primary-title"}
BODY = {**TEXT, "x_pdpp_role": "primary-text"}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream and its records, keyed by `id`. `more` is added to the manifest."""

    name: str
    properties: dict[str, Any]
    records: Sequence[dict[str, Any]]
    searched: Sequence[str] = ()
    cursor: str | None = None
    query: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        """The manifest entry of the stream."""
        query = {"search": {"lexical_fields": list(self.searched)}, **self.query}
        return worlds.stream(self.name, self.properties, self.cursor, query=query, **self.more)

    def rows(self) -> list[Row]:
        """The records in the form that is imported."""
        return [Row(record, record["id"], EMITTED_AT, self.name) for record in self.records]


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection with its streams."""

    id: str
    streams: Sequence[Stream]
    key: str
    label: str | None = None

    def written(self) -> worlds.Connection:
        """The connection in the form of `worlds`."""
        manifests = tuple(stream.manifest() for stream in self.streams)
        rows = tuple(row for stream in self.streams for row in stream.rows())
        return worlds.Connection(self.id, self.key, self.label, manifests, rows)


def build(connections: Iterable[Connection], folder: Path, **environ: str) -> House:
    """A new store of these connections."""
    return worlds.build(World(tuple(c.written() for c in connections)), folder, **environ)


def client(house: House, *entries: dict[str, Any]) -> Local:
    """A client with a token for these entries of a grant document, or for everything."""
    return Local(house.app, house.grant(*entries)[1])


def steady_client(house: House) -> Local:
    """A client for everything whose answers are the same bytes in every run."""
    grant_id, token = house.grant()
    house.change('UPDATE "grant" SET grant_id = ? WHERE grant_id = ?', GRANT_ID, grant_id)
    house.change("UPDATE commit_log SET epoch = ?", EPOCH)
    return Local(house.app, token)


def bring(house: House, connection_id: str, *rows: Row) -> None:
    """Imports more records into a store in use."""
    with open_writer(house.path) as writer:
        batch = Batch(writer)
        for row in rows:
            batch.add(open_stream(writer, connection_id, row.stream or ""), row)
        batch.flush()
