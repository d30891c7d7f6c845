"""Putting records into the store, a batch in a transaction.

A row that says nothing new leaves no trace; one that does replaces the document and enters the
change log with the names of the fields that changed. A batch runs in three steps: decide what
each row means, take what it replaces out of the indexes, then store and index the new.

A batch is as large as half a second allows: others write between two batches. Of each row it holds
only the JSON.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from service.records.sqlite.attachments import (
    Attachment,
    keep_attachments,
    release_attachments,
    sweep,
    take_attachments,
)
from service.records.sqlite.indexing import Index, order_of
from service.records.intake import Refused, Row, check_name, check_nesting, record_key
from service.records.sqlite.languages import Sample
from service.records.sqlite.large import LargeValue, Place, find_large, read_chunks
from service.records.sqlite.streams import StreamHandle, require_current
from service.records.values import microseconds
from service.records.sqlite.writer import Writer

#: What is written within half a second, so that no other writer waits for long.
BATCH_RECORDS = 2_000
BATCH_BYTES = 1_048_576
PIECE_RECORDS = 2_000
REPORTED_REFUSALS = 20

_FIND = """
SELECT r.record_key, r.seq, r.deleted, CAST(d.data AS BLOB), d.big, d.emitted_at, d.changed
FROM record r LEFT JOIN document d ON d.seq = r.seq
WHERE r.stream = ? AND r.record_key IN (SELECT value FROM json_each(?))
"""
_ADD_RECORD = """
INSERT INTO record (seq, stream, record_key, at, cursor, thread, place) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_CHANGE_RECORD = """
UPDATE record SET at = ?, cursor = ?, thread = ?, place = ?, deleted = 0 WHERE seq = ?
"""


@dataclass(slots=True)
class Counts:
    """What became of the rows of an import. `repeated` rows gave way to a later one beside them."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    repeated: int = 0
    refused: int = 0
    refusals: list[tuple[int, str]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        taken = self.new + self.changed + self.unchanged + self.deleted + self.repeated
        return taken + self.refused

    def refuse(self, line: int, message: str) -> None:
        """Counts a row that did not go in; the first 20 are kept with their line."""
        self.refused += 1
        if len(self.refusals) < REPORTED_REFUSALS:
            self.refusals.append((line, message))


class _Arrival(NamedTuple):
    """A checked row: `json` is the whole record, None for a deletion."""

    stream: StreamHandle
    key: str
    json: bytes | None
    emitted_at: str
    attachments: Sequence[Attachment] = ()


class _Stored(NamedTuple):
    """A record as the store has it; the columns of a deleted one's document are None."""

    seq: int
    deleted: int
    json: bytes
    big: str | None
    emitted_at: str
    changed: str | None

    @property
    def places(self) -> dict[str, Place]:
        return orjson.loads(self.big) if self.big else {}


class _Change(NamedTuple):
    """What a batch does to one record; `fields` are those that change, None for all."""

    arrival: _Arrival
    seq: int
    old: _Stored | None = None
    fields: frozenset[str] | None = None
    known: bool = True


class Batch:
    """Rows on their way in. `add` them, then `flush`; full batches flush themselves."""

    def __init__(self, writer: Writer, *, now: datetime | None = None) -> None:
        self.writer = writer
        self.counts = Counts()
        self._now = (now or datetime.now(UTC)).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._rows: dict[tuple[int, str], _Arrival] = {}
        self._bytes = 0
        self._good_names: set[str] = set()
        self._sample = Sample()

    def add(self, stream: StreamHandle, row: Row, *, line: int = 0) -> None:
        """Takes a row in, or counts it as refused with its line number."""
        try:
            arrival = self._check(stream, row)
        except Refused as refused:
            self.counts.refuse(line, str(refused))
            return
        place = stream.id, arrival.key
        if place in self._rows:
            self.counts.repeated += 1
            del self._rows[place]
        self._rows[place] = arrival
        self._bytes += len(arrival.json or b"")
        self._bytes += sum(len(blob.content or b"") for blob in arrival.attachments)
        if len(self._rows) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the rows so far, in one transaction."""
        if not self._rows:
            return
        with self.writer.transaction():
            require_current(self.writer, {a.stream.id: a.stream for a in self._rows.values()})
            changes = [
                change
                for piece in _pieces(list(self._rows.values()))
                for change in self._decide(piece)
            ]
            self._rows.clear()
            self._bytes = 0
            if changes:
                self._apply(changes)

    def _check(self, stream: StreamHandle, row: Row) -> _Arrival:
        data = row.data
        key = record_key(row, stream.manifest.primary_key)
        emitted_at = row.emitted_at or self._now
        if emitted_at is not self._now and microseconds(emitted_at) is None:
            raise Refused(f"emitted_at {emitted_at[:40]!r} is not an ISO 8601 date-time.")
        if row.deleted:
            return _Arrival(stream, key, None, emitted_at)
        if not data.keys() <= self._good_names:
            for name in data.keys() - self._good_names:
                self._good_names.add(check_name(name, what="field"))
        attachments: list[Attachment] = []
        nested = check_nesting(data)
        json = _dump(data)
        if nested:
            data = dict(data)
            attachments = take_attachments(data, json)
            json = _dump(data) if attachments else json
        # A copy: what orjson returns keeps several times its length of memory.
        return _Arrival(stream, key, bytes(memoryview(json)), emitted_at, attachments)

    def _decide(self, piece: list[_Arrival]) -> Iterator[_Change]:
        """What the rows change; those that change nothing are only counted."""
        found = self._find(piece)
        for arrival in piece:
            stored = found.get((arrival.stream.id, arrival.key))
            live = None if stored is None or stored.deleted else stored
            if arrival.json is None:
                if live is None:
                    self.counts.unchanged += 1
                else:
                    self.counts.deleted += 1
                    yield _Change(arrival, live.seq, live)
            elif live is None:
                self.counts.new += 1
                seq = self.writer.take("next_seq") if stored is None else stored.seq
                yield _Change(arrival, seq, known=stored is not None)
            elif fields := self._compare(live, arrival.json):
                self.counts.changed += 1
                yield _Change(arrival, live.seq, live._replace(json=b""), frozenset(fields))
            else:
                self.counts.unchanged += 1

    def _find(self, piece: list[_Arrival]) -> dict[tuple[int, str], _Stored]:
        """What the store has of these rows, by stream and key."""
        db = self.writer.db
        wanted: dict[int, list[str]] = {}
        for arrival in piece:
            wanted.setdefault(arrival.stream.id, []).append(arrival.key)
        found = {}
        for stream, keys in wanted.items():
            if db.execute("SELECT 1 FROM record WHERE stream = ? LIMIT 1", (stream,)).fetchone():
                for key, *columns in db.execute(_FIND, (stream, orjson.dumps(keys).decode())):
                    found[stream, key] = _Stored(*columns)
        return found

    def _compare(self, old: _Stored, json: bytes) -> set[str]:
        """The names of the top-level fields in which a record differs from the stored one."""
        if old.json == json and not old.big:
            return set()
        data, places = orjson.loads(json), old.places
        small, large = _split(data, json)
        before = orjson.loads(old.json)
        names = {*before, *places, *data}
        same = {
            name
            for name in small.keys() & before.keys()
            if _canonical(small[name]) == _canonical(before[name])
        }
        same |= {name for name in large.keys() & places if self._holds(places[name], large[name])}
        return names - same

    def _holds(self, place: Place, value: LargeValue) -> bool:
        """Whether the chunks at a place are this value."""
        return tuple(place[1:]) == value.place(0)[1:] and value.text == read_chunks(
            self.writer.db, place[0], place[1]
        )

    def _apply(self, changes: list[_Change]) -> None:
        db, index, orphans = self.writer.db, Index(self.writer), set()
        count = len(changes)
        live = Counter[int]()
        for change in changes:
            live[change.arrival.stream.id] += (change.arrival.json is not None) - bool(change.old)
            if change.old is not None:
                index.drop(change.arrival.stream.scopes, change.seq, change.fields)
                for name, place in change.old.places.items():
                    if change.fields is None or name in change.fields:
                        index.drop_chunks(place)
                orphans |= release_attachments(db, change.seq, change.fields)
        removed = bool(index.dropped or index.dropped_chunks)
        index.apply_drops()
        while changes:  # which lets go of what is stored
            piece = changes[:PIECE_RECORDS]
            del changes[:PIECE_RECORDS]
            self._store(piece, index)
        index.apply_adds()
        self._sample.note(db)
        sweep(db, orphans)
        db.executemany(
            "UPDATE stream SET records = records + ? WHERE id = ?",
            ((count, stream) for stream, count in live.items()),
        )
        self.writer.note(count, removed=removed)

    def _bury(self, change: _Change) -> None:
        db = self.writer.db
        db.execute("UPDATE record SET deleted = 1 WHERE seq = ?", (change.seq,))
        db.execute("DELETE FROM document WHERE seq = ?", (change.seq,))
        db.execute(
            "INSERT INTO tombstone (seq, deleted_at) VALUES (?, ?)",
            (change.seq, change.arrival.emitted_at),
        )

    def _store(self, piece: list[_Change], index: Index) -> None:
        """Writes records, documents and log, and notes for the index the fields that changed."""
        db, new, known, documents = self.writer.db, [], [], []
        for change in piece:
            arrival, seq = change.arrival, change.seq
            if arrival.json is None:
                self._bury(change)
                continue
            data = orjson.loads(arrival.json)
            self._sample.take(arrival.stream.connection, data)
            small, large = _split(data, arrival.json)
            order = order_of(arrival.stream.manifest, data)
            if change.known:
                known.append((*order, seq))
            else:
                new.append((seq, arrival.stream.id, arrival.key, *order))
            places = self._place(change, data, large, index)
            json = _dump(small) if large else arrival.json
            documents.append((seq, *_times(change), json.decode(), _text(places)))
        db.executemany(_ADD_RECORD, new)
        db.executemany(_CHANGE_RECORD, known)
        db.executemany("DELETE FROM tombstone WHERE seq = ?", ((row[-1],) for row in known))
        db.executemany(
            "INSERT OR REPLACE INTO document (seq, emitted_at, changed, data, big)"
            " VALUES (?, ?, ?, ?, ?)",
            documents,
        )
        index.write()
        version = self.writer.take("next_version", len(piece))
        db.executemany(
            "INSERT INTO change (stream, version, seq, fields) VALUES (?, ?, ?, ?)",
            _log(piece, version),
        )

    def _place(
        self, change: _Change, data: dict[str, Any], large: dict[str, LargeValue], index: Index
    ) -> dict[str, Place]:
        """Notes the fields that changed for the index; returns where all large values will be."""
        arrival, fields, old = change.arrival, change.fields, change.old
        used: Iterable[Attachment] = arrival.attachments
        if fields is not None:
            data = {name: value for name, value in data.items() if name in fields}
            used = [item for item in used if item.field in fields]
        if used:
            later = self.writer.staged_blobs if self.writer.staged else None
            keep_attachments(self.writer.db, arrival.stream.connection, change.seq, used, later)
        places = {name: index.add_large(value) for name, value in large.items() if name in data}
        index.add(arrival.stream.manifest, arrival.stream.scopes, change.seq, data, places)
        if fields is None or old is None or not old.big:
            return places
        return {n: place for n, place in old.places.items() if n not in fields} | places


def _pieces(arrivals: list[_Arrival]) -> Iterator[list[_Arrival]]:
    for start in range(0, len(arrivals), PIECE_RECORDS):
        yield arrivals[start : start + PIECE_RECORDS]


def _split(data: dict[str, Any], json: bytes) -> tuple[dict[str, Any], dict[str, LargeValue]]:
    """The fields of a record, whose whole JSON is `json`: the small and the large ones."""
    large = find_large(data, json)
    return {n: v for n, v in data.items() if n not in large} if large else data, large


def _log(piece: list[_Change], version: int) -> Iterator[tuple[int, int, int, str | None]]:
    """Rows of the change log, from a version on."""
    for number, (arrival, seq, _, fields, _) in enumerate(piece, start=version):
        names = None if fields is None else _dump(sorted(fields)).decode()
        yield arrival.stream.id, number, seq, names


def _times(change: _Change) -> tuple[str, str | None]:
    """(when the record was first emitted, when its fields changed since, oldest first)."""
    now, old = change.arrival.emitted_at, change.old
    if old is None or change.fields is None:
        return now, None
    before = orjson.loads(old.changed) if old.changed else {}
    kept = {name: at for name, at in before.items() if name not in change.fields}
    return old.emitted_at, _text(kept | dict.fromkeys(sorted(change.fields), now))


def put(
    writer: Writer,
    stream: StreamHandle,
    rows: Iterable[Row],
    *,
    now: datetime | None = None,
) -> Counts:
    """Puts rows into one stream, in batches, and counts what became of them."""
    batch = Batch(writer, now=now)
    for line, row in enumerate(rows, start=1):
        batch.add(stream, row, line=line)
    batch.flush()
    return batch.counts


def _dump(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise Refused(f"A value cannot be written as JSON: {error}.") from None


def _text(value: dict[str, Any]) -> str | None:
    """JSON as a column holds it; None for nothing."""
    return _dump(value).decode() if value else None


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
