"""Putting records into the store, a batch in a transaction.

A row that says nothing new leaves no trace; one that does replaces the document and enters the
change log with the names of the fields that changed. A batch runs in three steps: decide what
each row means, take what it replaces out of the indexes, then store and index the new.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from service.upstreams.store.attachments import (
    Attachment,
    keep_attachments,
    release_attachments,
    sweep,
    take_attachments,
)
from service.upstreams.store.indexing import Index, order_of
from service.upstreams.store.intake import Refused, Row, check_name, check_nesting, record_key
from service.upstreams.store.large import LargeValue, Place, find_large, read_chunks
from service.upstreams.store.streams import StreamHandle
from service.upstreams.store.values import microseconds
from service.upstreams.store.writer import Writer

BATCH_RECORDS = 5_000
BATCH_BYTES = 67_108_864
REPORTED_REFUSALS = 20


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


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A checked row: `json` is the whole record, `data` None for a deletion."""

    stream: StreamHandle
    key: str
    data: dict[str, Any] | None
    json: bytes
    emitted_at: str
    attachments: list[Attachment]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A record as the store has it."""

    json: str
    data: dict[str, Any]
    places: dict[str, Place]
    emitted_at: str
    changed: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Change:
    """What a batch does to one record; `fields` are those that change, None for all."""

    arrival: _Arrival
    seq: int
    data: dict[str, Any] | None
    large: dict[str, LargeValue]
    old: _Stored | None = None
    fields: frozenset[str] | None = None
    known: bool = False


class Batch:
    """Rows on their way in. `add` them, then `flush`; full batches flush themselves."""

    def __init__(self, writer: Writer, *, now: datetime | None = None) -> None:
        self.writer = writer
        self.counts = Counts()
        self._now = (now or datetime.now(UTC)).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._rows: dict[tuple[int, str], _Arrival] = {}
        self._bytes = 0
        self._good_names: set[str] = set()

    def add(self, stream: StreamHandle, row: Row, *, line: int = 0) -> None:
        """Takes a row in, or counts it as refused with its line number."""
        try:
            arrival = self._check(stream, row)
        except Refused as refused:
            self.counts.refuse(line, str(refused))
            return
        place = stream.id, arrival.key
        self.counts.repeated += self._rows.pop(place, None) is not None
        self._rows[place] = arrival
        self._bytes += len(arrival.json)
        if len(self._rows) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the rows so far, in one transaction."""
        if not self._rows:
            return
        with self.writer.transaction():
            changes = [
                change for arrival in self._rows.values() if (change := self._decide(arrival))
            ]
            self._apply(changes)
        self.writer.written |= bool(changes)
        self._rows.clear()
        self._bytes = 0

    def _check(self, stream: StreamHandle, row: Row) -> _Arrival:
        data = dict(row.data)
        key = record_key(row, stream.manifest.primary_key)
        emitted_at = row.emitted_at or self._now
        if emitted_at is not self._now and microseconds(emitted_at) is None:
            raise Refused(f"emitted_at {emitted_at[:40]!r} is not an ISO 8601 date-time.")
        if row.deleted:
            return _Arrival(stream, key, None, b"", emitted_at, [])
        for name in data.keys() - self._good_names:
            self._good_names.add(check_name(name, what="field"))
        check_nesting(data)
        json = _dump(data)
        attachments = take_attachments(data, json)
        return _Arrival(
            stream, key, data, _dump(data) if attachments else json, emitted_at, attachments
        )

    def _decide(self, arrival: _Arrival) -> _Change | None:
        """What the row changes; None when it changes nothing."""
        row = self.writer.db.execute(
            "SELECT seq, deleted FROM record WHERE stream = ? AND record_key = ?",
            (arrival.stream.id, arrival.key),
        ).fetchone()
        known: int | None = row[0] if row else None
        live: int | None = row[0] if row and not row[1] else None
        data = arrival.data
        if data is None:
            if live is None:
                self.counts.unchanged += 1
                return None
            self.counts.deleted += 1
            return _Change(arrival, live, None, {}, old=self._load(live), known=True)
        large = find_large(data, arrival.json)
        small = {name: value for name, value in data.items() if name not in large}
        if live is None:
            self.counts.new += 1
            seq = self.writer.take("next_seq") if known is None else known
            return _Change(arrival, seq, small, large, known=known is not None)
        old = self._load(live)
        fields = self._compare(old, small, large, arrival.json)
        if not fields:
            self.counts.unchanged += 1
            return None
        self.counts.changed += 1
        return _Change(arrival, live, small, large, old, frozenset(fields), known=True)

    def _load(self, seq: int) -> _Stored:
        text, big, emitted_at, changed = self.writer.db.execute(
            "SELECT data, big, emitted_at, changed FROM document WHERE seq = ?", (seq,)
        ).fetchone()
        places, times = (orjson.loads(column) if column else {} for column in (big, changed))
        return _Stored(text, orjson.loads(text), places, emitted_at, times)

    def _compare(
        self, old: _Stored, data: dict[str, Any], large: dict[str, LargeValue], json: bytes
    ) -> set[str]:
        """The names of the top-level fields in which a record differs from the stored one."""
        if not old.places and not large and old.json.encode() == json:
            return set()
        names = {*old.data, *old.places, *data, *large}
        return {name for name in names if not self._is_same(name, old, data, large)}

    def _is_same(
        self, name: str, old: _Stored, data: dict[str, Any], large: dict[str, LargeValue]
    ) -> bool:
        if name in large and name in old.places:
            place, value = old.places[name], large[name]
            return tuple(place[1:]) == value.place(0)[1:] and value.text == read_chunks(
                self.writer.db, place[0], place[1]
            )
        if name in data and name in old.data:
            return _canonical(data[name]) == _canonical(old.data[name])
        return False

    def _apply(self, changes: list[_Change]) -> None:
        db, index, orphans = self.writer.db, Index(), set()
        for change in changes:
            if change.old is not None:
                index.drop(change.arrival.stream.scopes, change.seq, change.fields)
                for name, place in change.old.places.items():
                    if change.fields is None or name in change.fields:
                        index.drop_chunks(place)
                orphans |= release_attachments(db, change.seq, change.fields)
        index.apply_drops(db)
        for change in changes:
            if change.data is None:
                self._bury(change)
            else:
                self._store(change, index)
        index.apply_adds(db)
        self._log(changes)
        sweep(db, orphans)

    def _bury(self, change: _Change) -> None:
        db = self.writer.db
        db.execute("UPDATE record SET deleted = 1 WHERE seq = ?", (change.seq,))
        db.execute("DELETE FROM document WHERE seq = ?", (change.seq,))
        db.execute(
            "INSERT INTO tombstone (seq, deleted_at) VALUES (?, ?)",
            (change.seq, change.arrival.emitted_at),
        )

    def _store(self, change: _Change, index: Index) -> None:
        """Writes record and document, and notes for the index the fields that changed."""
        db, arrival, seq = self.writer.db, change.arrival, change.seq
        manifest, whole = arrival.stream.manifest, arrival.data or {}
        fields = whole.keys() if change.fields is None else change.fields
        places = {
            name: index.add_large(self.writer, large)
            for name, large in change.large.items()
            if name in fields
        }
        kept = {
            name: place
            for name, place in (change.old.places if change.old else {}).items()
            if name not in fields
        }
        at, cursor = order_of(manifest, whole)
        if change.known:
            db.execute(
                "UPDATE record SET at = ?, cursor = ?, deleted = 0 WHERE seq = ?",
                (at, cursor, seq),
            )
            db.execute("DELETE FROM tombstone WHERE seq = ?", (seq,))
        else:
            db.execute(
                "INSERT INTO record (seq, stream, record_key, at, cursor) VALUES (?, ?, ?, ?, ?)",
                (seq, arrival.stream.id, arrival.key, at, cursor),
            )
        first, times = _times(change)
        big = _dump(kept | places).decode() if kept or places else None
        json = _dump(change.data) if change.large else arrival.json
        db.execute(
            "INSERT OR REPLACE INTO document (seq, emitted_at, data, big, changed)"
            " VALUES (?, ?, ?, ?, ?)",
            (seq, first, json.decode(), big, _dump(times).decode() if times else None),
        )
        changed = {name: value for name, value in whole.items() if name in fields}
        index.add(manifest, arrival.stream.scopes, seq, changed, places)
        used = [item for item in arrival.attachments if item.field in fields]
        keep_attachments(db, arrival.stream.connection, seq, used)

    def _log(self, changes: list[_Change]) -> None:
        self.writer.db.executemany(
            "INSERT INTO change (stream, seq, fields) VALUES (?, ?, ?)",
            (
                (
                    change.arrival.stream.id,
                    change.seq,
                    None if change.fields is None else _dump(sorted(change.fields)).decode(),
                )
                for change in changes
            ),
        )


def _times(change: _Change) -> tuple[str, dict[str, str]]:
    """(when the record was first emitted, when its fields changed since, oldest first)."""
    now, old = change.arrival.emitted_at, change.old
    if old is None or change.fields is None:
        return now, {}
    kept = {name: at for name, at in old.changed.items() if name not in change.fields}
    return old.emitted_at, kept | dict.fromkeys(sorted(change.fields), now)


def put(
    writer: Writer,
    stream: StreamHandle,
    rows: Iterable[Row],
    *,
    now: datetime | None = None,
) -> Counts:
    """Puts rows into one stream, in batches of 5,000, and counts what became of them."""
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


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
