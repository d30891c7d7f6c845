"""What a store records about its sources: their positions, their parts, and each part's records.

A part is what a source adds and removes as a whole, such as a file, or a mail in a folder. All
engines run the same script and statements. A store never has the commands, addresses and secrets of
its sources.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import orjson

from evidence.work import portions
from service.access.port import WritableTables

SCRIPT: Final = """
CREATE TABLE IF NOT EXISTS source (
  name TEXT PRIMARY KEY, kind TEXT NOT NULL, connection TEXT NOT NULL, position TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS source_part (
  source TEXT NOT NULL, part TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (source, part)
);
CREATE TABLE IF NOT EXISTS source_record (
  source TEXT NOT NULL, stream TEXT NOT NULL, record TEXT NOT NULL, part TEXT NOT NULL,
  PRIMARY KEY (source, stream, record, part)
);
CREATE INDEX IF NOT EXISTS source_record_part ON source_record (source, part);
"""
_ROWS_TOGETHER: Final = 200
_SAVE = """INSERT INTO source (name, kind, connection, position) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET position = excluded.position"""
_SAVE_PARTS = """INSERT INTO source_part (source, part, version) VALUES {}
ON CONFLICT (source, part) DO UPDATE SET version = excluded.version"""
_SAVE_RECORDS = """INSERT INTO source_record (source, stream, record, part) VALUES {}
ON CONFLICT DO NOTHING"""
_VERSIONS = "SELECT part, version FROM source_part WHERE source = ?"
_ALL = "SELECT stream, record FROM source_record WHERE source = ?"
_RECORDS = f"{_ALL} AND part = ?"
_PARTS_OF = """SELECT part FROM source_record
WHERE source = ? AND stream = ? AND record = ? ORDER BY part"""
_COUNT = """SELECT count(*) FROM
(SELECT DISTINCT stream, record FROM source_record WHERE source = ?) AS records"""
_STREAMS = "SELECT DISTINCT stream FROM source_record WHERE source = ?"
_DROP_RECORD = """DELETE FROM source_record
WHERE source = ? AND stream = ? AND record = ? AND part = ?"""
_TABLES: Final = (("source", "name"), ("source_part", "source"), ("source_record", "source"))

#: The stream and the id of a record.
RecordKey = tuple[str, str]


class StoredSource(NamedTuple):
    """A source as a store has it; `position` is of its kind."""

    name: str
    kind: str
    connection: str
    position: dict[str, Any]


def stored_sources(tables: WritableTables) -> list[StoredSource]:
    """The sources of a store, by name."""
    rows = tables.run("SELECT name, kind, connection, position FROM source ORDER BY name")
    return [StoredSource._make((*names, orjson.loads(position))) for *names, position in rows]


class SourceTables:
    """The rows of one source in an open store."""

    def __init__(self, tables: WritableTables, name: str) -> None:
        self._tables, self._run, self._name = tables, tables.run, name

    def source(self) -> StoredSource | None:
        """The source, if the store has it."""
        return {source.name: source for source in stored_sources(self._tables)}.get(self._name)

    def save(self, kind: str, connection: str, position: dict[str, Any]) -> None:
        """Adds the source, or changes its position."""
        text = orjson.dumps(position, option=orjson.OPT_SORT_KEYS).decode()
        self._run(_SAVE, self._name, kind, connection, text)

    def versions(self) -> dict[str, str]:
        """The version of each part; empty for one whose import did not end."""
        return dict(self._run(_VERSIONS, self._name))

    def save_versions(self, versions: Iterable[tuple[str, str]]) -> None:
        """Notes the versions of parts."""
        self._insert(_SAVE_PARTS, versions)

    def records(self, part: str) -> set[RecordKey]:
        """The records of a part."""
        return {(stream, record) for stream, record in self._run(_RECORDS, self._name, part)}

    def all_records(self) -> set[RecordKey]:
        """The records of all parts."""
        return {(stream, record) for stream, record in self._run(_ALL, self._name)}

    def parts_of(self, record: RecordKey) -> list[str]:
        """The parts that a record is in."""
        return [part for (part,) in self._run(_PARTS_OF, self._name, *record)]

    def add_records(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Notes that a record is in a part: (stream, record, part) of each."""
        self._insert(_SAVE_RECORDS, rows)

    def drop_records(self, part: str, records: Iterable[RecordKey]) -> None:
        """Notes that records are in a part no more."""
        for record in records:
            self._run(_DROP_RECORD, self._name, *record, part)

    def drop_part(self, part: str) -> None:
        """Removes a part and what it has."""
        for table in ("source_part", "source_record"):
            self._run(f"DELETE FROM {table} WHERE source = ? AND part = ?", self._name, part)

    def count(self) -> int:
        """The number of records."""
        return int(self._run(_COUNT, self._name)[0][0])

    def streams(self) -> list[str]:
        """The streams that have records of the source."""
        return sorted(stream for (stream,) in self._run(_STREAMS, self._name))

    def remove(self) -> None:
        """Removes the source; its records stay."""
        for table, column in _TABLES:
            self._run(f"DELETE FROM {table} WHERE {column} = ?", self._name)

    def _insert(self, statement: str, rows: Iterable[Sequence[str]]) -> None:
        rows = [(self._name, *row) for row in rows]
        for some in portions(rows, _ROWS_TOGETHER):
            marks = f"({', '.join('?' * len(some[0]))})"
            self._run(statement.format(", ".join([marks] * len(some))), *chain(*some))
