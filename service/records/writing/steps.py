"""The steps that the writers of all engines share. An engine adds its SQL and its index."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import orjson

from evidence.fold import FOLD_VERSION
from service.records.writing.arrivals import Change, Entry, pieces, stored
from service.records.writing.attachments import Attachment
from service.records.writing.languages import Sample, merged
from service.records.engine.large import LargeValue, Place
from evidence.manifest import StreamManifest, link, parse_stored
from service.records.engine.scopes import Scopes, StreamHandle
from service.records.sql.conditions import Statements
from service.records.writing.streams import all_streams
from service.records.writing import StreamCount, Writing


class Rows(NamedTuple):
    """Rows of records; the second column of all except `existing` is the connection."""

    #: seq, connection, stream, key, at, cursor, thread, place
    new: list[tuple[Any, ...]]
    #: at, cursor, thread, place, seq
    existing: list[tuple[Any, ...]]
    #: seq, connection, time of the first emission, times of changes, JSON, places
    documents: list[tuple[Any, ...]]
    #: seq, connection, time of the deletion
    buried: list[tuple[Any, ...]]


class Index(Protocol):
    """A batch of derived data to remove and to add."""

    def drop(self, scopes: Scopes, seq: int, fields: frozenset[str] | None = None) -> None:
        """Notes the data derived from a record's fields, by default all, for removal."""

    def drop_value(self, location: Place) -> None:
        """Notes a large value for removal."""

    def apply_drops(self) -> None:
        """Removes the noted data, before its records change."""

    def add_large(self, connection: int, large: LargeValue) -> Place:
        """Notes the chunks of a large value under new numbers; returns their future place."""

    def add(
        self, stream: StreamHandle, seq: int, data: dict[str, Any], places: dict[str, Place]
    ) -> None:
        """Notes the data derived from the fields in `data`, which has whole values."""

    def write(self) -> None:
        """Writes what need not wait for the whole batch."""

    def apply_adds(self) -> None:
        """Adds the noted data, after the records are stored."""


class Steps(Protocol):
    """What an engine provides to the steps."""

    statements: ClassVar[Statements]

    def run_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement for each row of parameters."""

    def put(self, rows: Rows) -> None:
        """Writes records and their documents."""

    def log(self, entries: Sequence[Entry]) -> None:
        """Adds changes to the log."""

    def refer(self, blob: int, seq: int, by: Attachment) -> None:
        """Notes that a field of a record delivered the bytes of a blob, unless it is noted."""

    def add_parts(self, connection: int, blob: int, content: bytes) -> None:
        """Stores the bytes of a new blob."""

    def release(self, fields: Sequence[tuple[int, str | None]]) -> set[int]:
        """Removes the uses of blobs by fields of records; by all fields if none are named."""

    def sweep(self, blobs: Iterable[int]) -> None:
        """Removes those of these blobs that no record uses any more."""

    def index(self) -> Index:
        """An empty batch."""

    def note(self, records: int) -> None:
        """Notes that the indexes of this many records change."""

    def order(self, manifest: StreamManifest, data: dict[str, Any]) -> tuple[Any, ...]:
        """(`at`, `cursor`, `thread`, `place`) of a record, as columns."""

    def documents(
        self, stream: StreamHandle, after: int
    ) -> Iterator[tuple[int, dict[str, Any], dict[str, Place]]]:
        """(seq, record with its large strings, places of all large values) of the next records."""

    def clear_derived(self) -> None:
        """Empties everything that is derived from records."""


class BaseWriter(Steps, Writing):
    """A store that is open for writing. Use as a context manager, or call `close`."""

    def __init__(self) -> None:
        self.staged = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a statement, if any."""
        rows = self.run(sql, *values)
        return rows[0] if rows else None

    def meta(self, key: str) -> Any:
        row = self.row(self.statements.meta, key)
        return None if row is None else row[0]

    # Connections and streams

    def changed_catalog(self) -> None:
        """Notes that a connection or a stream changes."""

    def connection_ids(self) -> list[str]:
        return [id for (id,) in self.run(self.statements.connection_ids)]

    def manifests(self, connection_id: str) -> list[StreamManifest]:
        manifests: dict[str, StreamManifest] = {}
        for row_name, text in self.run(self.statements.manifest_rows, connection_id):
            manifest = parse_stored(text)
            if row_name in (manifest.name, self.staged.get((connection_id, manifest.name))):
                manifests[manifest.name] = manifest
        return link(manifests.values())

    def find_stream(self, connection_id: str, row_name: str) -> tuple[int, int, str] | None:
        row = self.row(self.statements.find_stream, connection_id, row_name)
        return None if row is None else (row[0], row[1], row[2])

    def stream_name(self, stream: int) -> str | None:
        row = self.row(self.statements.stream_name, stream)
        return None if row is None else str(row[0])

    def save_stream(self, connection: int, row_name: str, manifest: StreamManifest) -> None:
        self.changed_catalog()
        document = orjson.dumps(manifest.document).decode()
        self.run(self.statements.save_stream, connection, row_name, document)

    def counts(self) -> list[StreamCount]:
        return [StreamCount(*row) for row in self.run(self.statements.counts)]

    def note_languages(self, sample: Sample) -> None:
        """Adds the languages in a sample of texts to those of their fields."""
        for ordinal, detected in sample.detected():
            ((languages,),) = self.run(self.statements.languages, ordinal)
            if text := merged(languages, detected):
                self.changed_catalog()
                self.run(self.statements.save_languages, text, ordinal)

    # Records

    def save_digests(self, digests: Sequence[tuple[int, int, int]]) -> None:
        self.run_each(self.statements.save_digests, digests)

    def digests(self, connection_id: str) -> Iterator[int]:
        last = -1 << 63
        while rows := self.run(self.statements.digests, connection_id, last):
            yield from (digest for (digest,) in rows)
            last = rows[-1][0]

    def with_digest(
        self, connection_id: str, digest: int
    ) -> tuple[str, int, str, dict[str, Any]] | None:
        row = self.row(self.statements.with_digest, digest, connection_id)
        if row is None:
            return None
        name, stream, key, json, big = row
        return name, stream, key, self.whole(json, big)

    def whole(self, json: bytes, big: str | None) -> dict[str, Any]:
        places: dict[str, Place] = orjson.loads(big) if big else {}
        large = {
            field: text if location[4] == "string" else orjson.loads(text)
            for field, location in places.items()
            for text in (self.read_large(location),)
        }
        data: dict[str, Any] = orjson.loads(json)
        return data | large

    def apply(self, changes: list[Change], sample: Sample) -> None:
        index, live, released = self.index(), Counter[int](), list[tuple[int, str | None]]()
        delivered = dict[int, list[tuple[Any, ...]]]()
        self.note(len(changes))
        for change in changes:
            live[change.arrival.stream.id] += (change.arrival.json is not None) - bool(change.old)
            if change.old is not None:
                index.drop(change.arrival.stream.scopes, change.seq, change.fields)
                for location in change.dropped:
                    index.drop_value(location)
                released += [(change.seq, name) for name in change.fields or (None,)]
                if any(blob.content is None for blob in change.attachments):
                    delivered[change.seq] = self.run(self.statements.references, change.seq)
        index.apply_drops()
        orphans = self.release(released)
        for batch in pieces(changes):
            self._store(batch, index, sample)
            for change in batch:
                stored = delivered.get(change.seq, ())
                self.keep(change.arrival.stream.connection, change.seq, change.attachments, stored)
            index.write()
        index.apply_adds()
        self.note_languages(sample)
        self.sweep(orphans)
        counted = [(count, stream) for stream, count in sorted(live.items())]
        self.run_each(self.statements.add_records, counted)

    def keep(
        self,
        connection: int,
        seq: int,
        attachments: Iterable[Attachment],
        delivered: Iterable[tuple[Any, ...]] = (),
    ) -> None:
        for blob in attachments:
            if blob.content is not None:
                row = self.row(self.statements.find_blob, blob.sha256, connection)
                id = row[0] if row else self._add_blob(connection, blob.sha256, blob.content)
                self.refer(id, seq, blob)
                continue
            for field, name, sha256, id in delivered:
                if (field, name) == (blob.field, blob.blob_id) and blob.sha256 in ("", sha256):
                    self.refer(id, seq, blob)

    def _add_blob(self, connection: int, sha256: str, content: bytes) -> int:
        ((id,),) = self.run(self.statements.save_blob, sha256, connection, len(content))
        self.add_parts(connection, id, content)
        return int(id)

    def _store(self, batch: list[Change], index: Index, sample: Sample) -> None:
        """Writes records, documents and log, and notes the changed fields for the index."""
        rows = Rows([], [], [], [])
        times = dict[int, int | None]()
        for change, data, large, json in stored(batch, sample):
            arrival, seq, connection = change.arrival, change.seq, change.arrival.stream.connection
            order = self.order(arrival.stream.manifest, data)
            times[seq] = order[0]
            if change.exists:
                rows.existing.append((*order, seq))
            else:
                rows.new.append((seq, connection, arrival.stream.id, arrival.key, *order))
            places = self._add_to_index(change, data, large, index)
            rows.documents.append((seq, connection, *change.times, json, places))
        for arrival, seq, *_ in batch:
            if arrival.json is None:
                rows.buried.append((seq, arrival.stream.connection, arrival.emitted_at))
        self.put(rows)
        self.log([change.entry(times.get(change.seq)) for change in batch])

    def _add_to_index(
        self, change: Change, data: dict[str, Any], large: dict[str, LargeValue], index: Index
    ) -> str | None:
        """Notes the changed fields for the index; returns `Change.places` of the record."""
        stream, connection = change.arrival.stream, change.arrival.stream.connection
        data = {name: value for name, value in data.items() if change.touches(name)}
        places = {name: index.add_large(connection, large[name]) for name in large if name in data}
        index.add(stream, change.seq, data, places)
        return change.places(places)

    # Derived data

    def derive(
        self,
        stream: StreamHandle,
        *,
        replaced: Scopes | None = None,
        look: Callable[[dict[str, Any]], None] = lambda data: None,
    ) -> int:
        """Fills the indexes with the records of a stream; their existing rows may be `replaced`.

        Calls `look` with each record; returns how many there are.
        """
        last = count = 0
        while True:
            index, orders = self.index(), []
            for seq, data, places in self.documents(stream, last):
                if replaced is not None:
                    index.drop(replaced, seq)
                index.add(stream, seq, data, places)
                look(data)
                orders.append((*self.order(stream.manifest, data), seq))
            if not orders:
                self.note(count)
                return count
            index.apply_drops()
            self.run_each(self.statements.reorder, orders)
            index.apply_adds()
            last = orders[-1][-1]
            count += len(orders)

    def reindex(self, stream: StreamHandle, replaced: Scopes) -> None:
        self.derive(stream, replaced=replaced)

    def rebuild(self, on_record: Callable[[], None] = lambda: None) -> None:
        """Rebuilds all derived data, for another fold or for `rung check --repair`.

        Runs in one transaction: until it commits, readers see the old state, and a killed process
        leaves it unchanged.
        """
        sample = Sample()

        with self.transaction():
            self.changed_catalog()
            self.clear_derived()
            for stream in all_streams(self):

                def look(data: dict[str, Any]) -> None:
                    sample.take(stream, data)  # noqa: B023
                    on_record()

                count = self.derive(stream, look=look)
                self.run(self.statements.set_records, count, stream.id)
            self.note_languages(sample)
            self.set_meta("fold_version", FOLD_VERSION)
