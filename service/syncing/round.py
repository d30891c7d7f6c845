"""One round of a source: imports what is new or changed, then removes what is gone.

Each transaction that stores rows also notes whose they are. The versions of parts and the position
follow, when all their rows are stored. A round that is killed therefore leaves a store from which
the next one goes on: a part without a version is read again, and what it no longer has is removed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import orjson

from evidence.cached import cached_property
from evidence.errors import InvalidRequest, NotFound
from evidence.manifest import StreamManifest, parse
from evidence.times import to_the_second
from service.importing.plan import Plan
from service.importing.process.parsing import Parser
from service.importing.run import import_into
from service.records.engine.scopes import StreamHandle
from service.records.intake import Counts, Row
from service.records.sql.sources import RecordKey, SourceTables
from service.records.writing import Writing
from service.records.writing.arrivals import Arrival
from service.records.writing.ingest import Batch
from service.records.writing.streams import Streams
from service.syncing.connector import KEEP, Connector, Fetched, Listing, SourceSettings
from service.syncing.following import Follower

#: More missing records than this, and than this share of all, need the owner's consent.
MISSING_MOST, MISSING_SHARE = 20, 5
DELETED_AT: Final = "deleted_at_source"


@dataclass(slots=True)
class Outcome:
    """What a round did. `lines` are reports for the owner, `declared` new or changed streams.

    `missing` records wait for the owner's consent; `nothing_listed` if the source lists nothing.
    """

    counts: Counts = field(default_factory=Counts)
    marked: int = 0
    missing: int = 0
    nothing_listed: bool = False
    declared: bool = False
    lines: list[str] = field(default_factory=list)

    @property
    def is_paused(self) -> bool:
        """Whether the source waits for the owner."""
        return bool(self.missing or self.nothing_listed)


class Round:
    """One round of a source in an open store. With `accept`, any number of records may go."""

    def __init__(
        self, writer: Writing, source: SourceSettings, connector: Connector, *, accept: bool = False
    ) -> None:
        self._writer, self._source, self._connector = writer, source, connector
        self._accept, self._outcome = accept, Outcome()
        self._tables = SourceTables(writer, source.name)
        #: Records that parts which were read again no longer have.
        self._stale = dict[str, set[RecordKey]]()
        #: Records that are in fewer parts than before.
        self._leaving = set[RecordKey]()

    def run(self) -> Outcome:
        """Does the round; raises `EvidenceError`s."""
        stored = self._tables.source()
        if stored and (stored.kind, stored.connection) != (
            self._source.kind,
            self._source.connection,
        ):
            raise InvalidRequest(
                f"The store has another source {self._source.name!r}: {stored.kind}, into "
                f"{stored.connection!r}. Choose another name, or remove that one: rung source "
                f"remove {self._source.name}"
            )
        position = stored.position if stored else {}
        listing = self._connector.list_parts(position, lambda: self._versions)
        if listing is not None:
            self._bring(listing)
        return self._outcome

    @cached_property
    def _versions(self) -> dict[str, str]:
        """The versions of the parts in the store before this round."""
        return self._tables.versions()

    def _bring(self, listing: Listing) -> None:
        versions = self._versions
        before = self._manifests()
        gone = sorted(versions.keys() - listing.versions.keys())
        new = [part for part, version in listing.versions.items() if versions.get(part) != version]
        gone, new = self._rename(listing, versions, gone, new)
        count = self._tables.count() if gone or versions.keys() & set(new) else 0
        if self._tables.source() is None:
            with self._writer.transaction():
                self._tables.save(self._source.kind, self._source.connection, {})
        if new:
            for fetched in self._connector.fetch(new):
                self._import(fetched, listing, versions, gone)
        self._outcome.declared = self._manifests() != before
        lost = self._lost(gone)
        self._outcome.nothing_listed = not listing.versions and bool(versions)
        if len(lost) > MISSING_MOST and len(lost) * MISSING_SHARE > count:
            self._outcome.missing = len(lost)
        if self._outcome.is_paused and not self._accept:
            return
        self._outcome.missing, self._outcome.nothing_listed = 0, False
        self._remove(lost)
        self._settle(self._leaving - lost, gone)
        self._finish(listing, gone)

    def _rename(
        self, listing: Listing, versions: dict[str, str], gone: list[str], new: list[str]
    ) -> tuple[list[str], list[str]]:
        """(parts that are gone, parts to read), without those that only have another name."""
        by_version = {listing.versions[part]: part for part in new if part not in versions}
        for part in list(gone):
            name = by_version.get(versions[part])
            if name is not None and name in new and self._connector.moved(part, name):
                with self._writer.transaction():
                    self._tables.rename_part(part, name)
                gone.remove(part)
                new.remove(name)
        return gone, new

    def _import(
        self, fetched: Fetched, listing: Listing, versions: dict[str, str], gone: list[str]
    ) -> None:
        """Imports the files of some parts, and notes the versions of those."""
        parts = list(dict.fromkeys(fetched.parts.values()))
        old = {part: self._tables.records(part) for part in parts if part in versions}
        with self._writer.transaction():
            self._tables.save_versions((part, "") for part in parts if part not in versions)
        follower = Follower(self._tables, self._connector, fetched.parts, gone)
        self._read(fetched, follower)
        self._outcome.lines += follower.lines
        if follower.shared_records:
            with self._writer.transaction():
                self._tables.add_records(follower.shared_records)
        records = set[RecordKey]().union(*follower.records_of.values())
        self._settle(records)  # before the versions: a round that is killed here does it again
        complete = list[tuple[str, str]]()
        with self._writer.transaction():
            for part in parts:
                present = follower.records_of.get(part, set())
                if part not in follower.faulty and (stale := old.get(part, set()) - present):
                    self._stale[part] = stale
                else:
                    complete.append((part, listing.versions[part]))
            self._tables.save_versions(complete)

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
        for name in ("new", "changed", "unchanged", "deleted", "refused"):
            total = getattr(self._outcome.counts, name) + getattr(report.counts, name)
            setattr(self._outcome.counts, name, total)

    def _lost(self, gone: Collection[str]) -> set[RecordKey]:
        """The records that are in no part any more."""
        leaving = {part: self._tables.records(part) for part in gone} | self._stale
        candidates = set[RecordKey]().union(*leaving.values())
        self._leaving = candidates
        return {
            record
            for record in candidates
            if all(record in leaving.get(part, ()) for part in self._tables.parts_of(record))
        }

    def _remove(self, lost: set[RecordKey]) -> None:
        """Removes records, or marks them as deleted at the source."""
        if self._source.deletions != KEEP:
            rows = ((record, Row({}, key=record[1], deleted=True)) for record in sorted(lost))
            self._outcome.counts.deleted += self._write(rows).deleted
            return
        self._declare_mark()
        now = to_the_second(datetime.now(UTC))
        self._outcome.marked = self._change(lost, lambda stream, key: {DELETED_AT: now})

    def _settle(self, records: set[RecordKey], gone: Collection[str] = ()) -> None:
        """Updates the members of records that depend on all parts that they are in."""
        if not self._connector.joins:
            return
        parts_of = {record: set(self._tables.parts_of(record)) for record in records}
        several = {record for record, parts in parts_of.items() if len(parts) > 1}

        def members(stream: str, key: str) -> dict[str, Any]:
            return self._connector.members(parts_of[stream, key].difference(gone)).get(stream, {})

        self._change(several, members)

    def _change(
        self, records: set[RecordKey], members: Callable[[str, str], dict[str, Any]]
    ) -> int:
        """Sets members of stored records; returns how many change."""

        def rows() -> Iterator[tuple[RecordKey, Row]]:
            for stream, key in sorted(records):
                new, handle = members(stream, key), self._open(stream)
                if new and handle is not None:
                    if (data := _record(self._writer, handle, key)) is not None:
                        yield (stream, key), Row({**data, **new}, key=key)

        return self._write(rows()).changed

    def _write(self, rows: Iterable[tuple[RecordKey, Row]]) -> Counts:
        batch = Batch(self._writer)
        for stream, group in groupby(rows, key=lambda pair: pair[0][0]):
            if handle := self._open(stream):
                for _, row in group:
                    batch.add(handle, row)
        batch.flush()
        return batch.counts

    def _finish(self, listing: Listing, gone: Collection[str]) -> None:
        """Notes what the parts have now, and the position."""
        if self._source.deletions == KEEP:
            self._declare_mark()
        with self._writer.transaction():
            for part in gone:
                self._tables.drop_part(part)
            for part, records in self._stale.items():
                self._tables.drop_records(part, records)
                self._tables.save_versions([(part, listing.versions[part])])
            self._tables.save(self._source.kind, self._source.connection, listing.position)
        if gone or self._stale:
            self._writer.finish()

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
                Streams(self._writer, self._source.connection).declare(
                    parse({"streams": [document]})
                )
                self._outcome.declared = True

    def _manifests(self) -> list[StreamManifest]:
        return self._writer.manifests(self._source.connection)

    def _open(self, stream: str) -> StreamHandle | None:
        try:
            return Streams(self._writer, self._source.connection).open(stream)
        except NotFound:  # the owner removed it
            return None


def _record(writer: Writing, stream: StreamHandle, key: str) -> dict[str, Any] | None:
    """The whole data of a record; None if it is not there."""
    with writer.transaction():
        stored = writer.find([Arrival(stream, key, None, "")]).get((stream.id, key))
        if stored is None or stored.deleted:
            return None
        data: dict[str, Any] = orjson.loads(stored.json)
        for name, location in stored.places.items():
            text = writer.read_large(location)
            data[name] = text if location[4] == "string" else orjson.loads(text)
    return data
