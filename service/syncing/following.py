"""Follows the import of parts: notes the records of each in the transaction that stores them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from service.importing.finding import FileEntry
from service.importing.formats import FORMATS
from service.importing.plan import Listener
from service.importing.process.parsing import FileReport
from service.records.engine.scopes import StreamHandle
from service.records.intake import Row
from service.records.sql.sources import RecordKey, SourceTables
from service.records.writing.arrivals import Arrival
from service.syncing.connector import Connector

#: The key of records of formats in which several files may have the same one.
_ID: Final = "id"


class Follower(Listener):
    """Follows the import of the parts of one source, whose files are `parts` by path.

    Other parts are `gone`. `records_of` are the records of each part so far. `faulty` parts have
    rows that were refused. `shared_records` are (stream, record, part) of records that an earlier
    file has. `lines` are reports for the owner.
    """

    def __init__(
        self,
        tables: SourceTables,
        connector: Connector,
        parts: Mapping[str, str],
        gone: Collection[str],
    ) -> None:
        self._tables, self._connector, self._parts = tables, connector, parts
        self._gone, self._is_unique = frozenset(gone), False
        self._current: str | None = None
        self._origins = list[str]()
        self.records_of = dict[str, set[RecordKey]]()
        self.faulty = set[str]()
        self.shared_records = list[tuple[str, str, str]]()
        self.lines = list[str]()

    def wants(self, file: FileEntry) -> bool:
        self._current = self._part(file)
        return self._current is not None

    def _part(self, file: FileEntry) -> str | None:
        """The part of a file; a file that is read with its folder is of any part in that."""
        if file.path in self._parts or not FORMATS[file.format].folder:
            return self._parts.get(file.path)
        folder = f"{file.path.rpartition('/')[0]}/"
        return next((part for path, part in self._parts.items() if path.startswith(folder)), None)

    def begin(self, file: FileEntry) -> None:
        assert self._current is not None
        self._origins.append(self._current)
        self._is_unique = FORMATS[file.format].unique
        self.records_of.setdefault(self._current, set())

    def adapt(self, row: Row) -> Row:
        return self._connector.adapt(self._origins[-1], row)

    def stored(self, rows: Sequence[Arrival]) -> None:
        records = [
            (row.stream.manifest.name, row.key, self._origins[row.origin - 1])
            for row in rows
            if row.json is not None
        ]
        self._tables.add_records(records)
        for stream, key, part in records:
            self.records_of[part].add((stream, key))

    def shared(self, row: Row) -> None:
        if row.stream is not None and isinstance(key := row.data.get(_ID), str):
            self.records_of[self._origins[-1]].add((row.stream, key))
            self.shared_records.append((row.stream, key, self._origins[-1]))

    def owned_elsewhere(self, stream: StreamHandle, key: str) -> bool:
        if self._is_unique:
            return False
        parts = self._tables.parts_of((stream.manifest.name, key))
        return any(part not in self._gone and part != self._origins[-1] for part in parts)

    def file(self, report: FileReport) -> None:
        name = self._parts.get(report.name, report.name)  # not that of a temporary file
        self.lines += [f"{name}: {note}" for note in report.notes]
        self.lines += [f"{name} line {line}: {why}" for line, why in report.refusals if line]
        self.lines += [why for line, why in report.refusals if not line]
        if report.refused and self._current is not None:
            self.faulty.add(self._current)
