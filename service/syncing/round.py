"""One round of a source: imports what is new or changed, then removes what is gone.

Each transaction that stores rows also notes whose they are. The versions of parts and the position
follow, when all their rows are stored. A round that is killed therefore leaves a store from which
the next one goes on: a part without a version is read again, and what it no longer has is removed.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import orjson

from evidence.cached import cached_property
from evidence.errors import InvalidRequest, NotFound
from evidence.manifest import StreamManifest, parse
from evidence.model import DELETED_AT, members
from evidence.times import to_the_second
from service.importing.finding import FileEntry
from service.importing.formats import FORMATS
from service.importing.plan import Listener, Plan
from service.importing.process.parsing import FileReport, Parser
from service.importing.run import import_into
from service.records.engine.scopes import StreamHandle
from service.records.intake import Row
from service.records.sql.sources import RecordKey, SourceTables
from service.records.writing import Writing
from service.records.writing.arrivals import Arrival
from service.records.writing.ingest import Batch
from service.records.writing.streams import declare, open_stream
from service.syncing.connector import KEEP, Connector, Fetched, Listing, SourceSettings, Stored

#: The key of records of formats in which several files may have the same one.
_ID: Final = "id"
#: More missing records than this, and than this share of all, need the owner's consent.
MISSING_MOST, MISSING_SHARE = 20, 5


@dataclass(slots=True)
class Outcome:
    """What a round did: the number of records by what became of them, and reports for the owner.

    `declared` if streams are new or changed. `waits` is why the source waits for the owner's
    consent; empty if it does not.
    """

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    declared: bool = False
    waits: str = ""


class Follower(Listener):
    """Follows the import of the parts of one source, whose files are `parts` by path.

    Other parts are `gone`. `records_of` are the records of each part so far. `faulty` parts have
    rows that were refused. `shared_records` are (stream, record, part) of records that an earlier
    file has. `lines` are reports for the owner.
    """

    def __init__(
        self, tables: SourceTables, connector: Connector, parts: Mapping[str, str], gone: list[str]
    ) -> None:
        self._tables, self._connector, self._parts = tables, connector, parts
        self._gone, self._is_unique = frozenset(gone), False
        self._current: str | None = None
        self._origins = list[str]()
        self.records_of = defaultdict[str, set[RecordKey]](set)
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


class Round:
    """One round of a source in an open store."""

    def __init__(self, writer: Writing, source: SourceSettings, connector: Connector) -> None:
        self._writer, self._source, self._connector = writer, source, connector
        self._tables, self._outcome = SourceTables(writer, source.name), Outcome()
        #: Records that parts no longer have: parts that were read again, then those that are gone.
        self._leaving = dict[str, set[RecordKey]]()

    def run(self, *, accept: bool = False) -> Outcome:
        """Does the round; raises `EvidenceError`s. With `accept`, any number of records may go."""
        stored, source = self._tables.source(), self._source
        if stored and (stored.kind, stored.connection) != (source.kind, source.connection):
            raise InvalidRequest(
                f"The store already has a source named {source.name!r}, of the kind {stored.kind}, "
                f"for the connection {stored.connection!r}. Choose another name, or remove the old "
                f"source: rung source remove {source.name}"
            )
        position = stored.position if stored else {}
        listing = self._connector.list_parts(Stored(position, lambda: self._versions))
        if listing is not None and listing != (self._versions, position):
            if stored is None:
                with self._writer.transaction():
                    self._tables.save(source.kind, source.connection, {})
            before = self._manifests()
            self._bring(listing, accept)
            self._outcome.declared = self._manifests() != before
        return self._outcome

    @cached_property
    def _versions(self) -> dict[str, str]:
        """The versions of the parts in the store before this round."""
        return self._tables.versions()

    def _bring(self, listing: Listing, accept: bool) -> None:
        versions = self._versions
        gone = sorted(versions.keys() - listing.versions.keys())
        new = [part for part, version in listing.versions.items() if versions.get(part) != version]
        count = self._tables.count() if gone or versions.keys() & set(new) else 0
        for fetched in self._connector.fetch(new) if new else ():
            self._import(fetched, listing, gone)
        self._leaving |= {part: self._tables.records(part) for part in gone}
        leaving = set[RecordKey]().union(*self._leaving.values())
        lost = {record for record in leaving if self._is_lost(record)}
        if not accept:
            if versions and not listing.versions:
                self._outcome.waits = "The source lists no records"
            elif len(lost) > MISSING_MOST and len(lost) * MISSING_SHARE > count:
                self._outcome.waits = f"{len(lost):,} records are missing from the source"
        if self._outcome.waits:
            return
        self._remove(lost)
        self._settle(leaving - lost, gone)
        with self._writer.transaction():
            for part, records in self._leaving.items():
                if part in listing.versions:
                    self._tables.drop_records(part, records)
                    self._tables.save_versions([(part, listing.versions[part])])
                else:
                    self._tables.drop_part(part)
            self._tables.save(self._source.kind, self._source.connection, listing.position)
        if self._leaving:
            self._writer.finish()

    def _is_lost(self, record: RecordKey) -> bool:
        """Whether a record is in no part any more."""
        parts = self._tables.parts_of(record)
        return all(record in self._leaving.get(part, ()) for part in parts)

    def _import(self, fetched: Fetched, listing: Listing, gone: list[str]) -> None:
        """Imports the files of some parts, and notes the versions of those."""
        parts = list(dict.fromkeys(fetched.parts.values()))
        old = {part: self._tables.records(part) for part in parts if part in self._versions}
        with self._writer.transaction():
            self._tables.save_versions((part, "") for part in parts if part not in self._versions)
        follower = Follower(self._tables, self._connector, fetched.parts, gone)
        self._read(fetched, follower)
        self._outcome.lines += follower.lines
        if follower.shared_records:
            with self._writer.transaction():
                self._tables.add_records(follower.shared_records)
        records = set[RecordKey]().union(*follower.records_of.values())
        self._settle(records)  # before the versions: a round that is killed here does it again
        for part in old.keys() - follower.faulty:
            if stale := old[part] - follower.records_of[part]:
                self._leaving[part] = stale
        complete = [part for part in parts if part not in self._leaving]
        with self._writer.transaction():
            self._tables.save_versions((part, listing.versions[part]) for part in complete)

    def _read(self, fetched: Fetched, follower: Follower) -> None:
        plan = Plan(self._source.connection, label=self._source.label)
        with Parser([str(fetched.path)], self._connector.format) as parser:
            try:
                parser.find()
                report = import_into(self._writer, parser, plan, follower)
            except InvalidRequest as error:
                if self._connector.strict:
                    raise
                self._outcome.lines.append(error.message)
                follower.faulty |= set(fetched.parts.values())
                return
        counts = members(report.counts, "new", "changed", "deleted", "refused")
        self._outcome.counts.update(counts)

    def _remove(self, lost: set[RecordKey]) -> None:
        """Removes records, or marks them as deleted at the source."""
        if self._source.deletions == KEEP:
            self._declare_mark()
            mark = {DELETED_AT: to_the_second(datetime.now(UTC))}
            self._outcome.counts["marked as deleted"] = self._change(dict.fromkeys(lost, mark))
        else:
            deleted = delete(self._writer, self._source.connection, lost)
            self._outcome.counts["deleted"] += deleted

    def _settle(self, records: set[RecordKey], gone: Collection[str] = ()) -> None:
        """Updates the members of records that depend on all parts that they are in."""
        new = dict[RecordKey, dict[str, Any]]()
        for record in records if self._connector.joins else ():
            if len(parts := self._tables.parts_of(record)) > 1:
                present = self._connector.members(set(parts).difference(gone))
                new[record] = present.get(record[0], {})
        self._change(new)

    def _change(self, new: Mapping[RecordKey, dict[str, Any]]) -> int:
        """Sets members of stored records; returns how many change."""
        batch = Batch(self._writer)
        for stream, key in _present(self._writer, self._source.connection, new):
            with self._writer.transaction():
                rows = self._writer.find([Arrival(stream, key, None, "")])
                stored = rows.get((stream.id, key))
                if stored is None or stored.deleted:
                    continue
                data = self._writer.whole(stored.json, stored.big)
            batch.add(stream, Row({**data, **new[stream.manifest.name, key]}, key=key))
        batch.flush()
        return batch.counts.changed

    def _declare_mark(self) -> None:
        """Adds the field `deleted_at_source` to the streams of the source that lack it."""
        names = set(self._tables.streams())
        for manifest in self._manifests():
            if manifest.name in names and DELETED_AT not in manifest.fields:
                document = orjson.loads(orjson.dumps(manifest.document))
                kind = {"type": "string", "format": "date-time"}
                document["schema"]["properties"][DELETED_AT] = kind
                ranges = document.setdefault("query", {}).setdefault("range_filters", {})
                ranges[DELETED_AT] = ["gte", "gt", "lte", "lt"]
                declare(self._writer, self._source.connection, parse({"streams": [document]}))

    def _manifests(self) -> list[StreamManifest]:
        return self._writer.manifests(self._source.connection)


def delete(writer: Writing, connection: str, records: Iterable[RecordKey]) -> int:
    """Removes records; returns how many there were."""
    batch = Batch(writer)
    for stream, key in _present(writer, connection, records):
        batch.add(stream, Row({}, key=key, deleted=True))
    batch.flush()
    return batch.counts.deleted


def _present(
    writer: Writing, connection: str, records: Iterable[RecordKey]
) -> Iterator[tuple[StreamHandle, str]]:
    """The streams and keys of records, in order, without those of streams that were removed."""
    for stream, group in groupby(sorted(records), key=itemgetter(0)):
        with suppress(NotFound):
            handle = open_stream(writer, connection, stream)
            yield from ((handle, key) for _, key in group)
