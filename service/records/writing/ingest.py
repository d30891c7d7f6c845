"""Imports rows into the store: validates them and determines what each changes, in batches.

A row equal to the stored record changes nothing. A different one replaces it, and the change log
gets the names of the changed fields. A transaction takes about half a second, so that others can
write in between.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from evidence.work import Deadline
from evidence.names import Refused, check_name
from service.records.intake import Counts, Row, check_nesting, record_key
from service.records.writing.arrivals import Arrival, Change, compare, dump
from service.records.writing.attachments import Attachment, take_attachments
from service.records.writing.languages import Sample
from service.records.engine.scopes import StreamHandle
from service.records.writing.streams import require_current
from evidence.times import microseconds, to_the_second
from service.records.writing import Writing

BATCH_RECORDS = 2_000
BATCH_BYTES = 1_048_576
#: How long others wait for a transaction. The share of a full batch that fits into one is measured,
#: starting with the least share, because in a large store a change takes many times longer than a
#: new row.
BATCH_SECONDS = 0.5
LEAST_SHARE = 1 / 32


class Batch:
    """Rows to import. `add` them, then `flush`; full batches flush themselves.

    Each transaction calls `on_rows` with its rows.
    """

    def __init__(
        self,
        writer: Writing,
        *,
        now: datetime | None = None,
        timer: Callable[[float], Deadline] = Deadline.after,
        on_rows: Callable[[Sequence[Arrival]], None] = lambda rows: None,
    ) -> None:
        self.writer = writer
        self._on_rows = on_rows
        self._timer = timer
        self._share = LEAST_SHARE
        self.counts = Counts()
        self._now = to_the_second(now or datetime.now(UTC))
        self._rows: dict[tuple[int, str], Arrival] = {}
        self._bytes = 0
        self._good_names: set[str] = set()
        self._digests: list[tuple[int, int, int]] = []
        self._sample = Sample()

    def add(self, stream: StreamHandle, row: Row, *, line: int = 0, origin: int = 0) -> None:
        """Adds a row, or counts it as refused with its line number."""
        try:
            arrival = self._check(stream, row)._replace(origin=origin)
        except Refused as refused:
            self.counts.refuse(line, str(refused))
            return
        key = stream.id, arrival.key
        if key in self._rows:
            self.counts.repeated += 1
            del self._rows[key]
        self._rows[key] = arrival
        self._bytes += _size(arrival)
        if len(self._rows) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
            self.flush()

    def changes(self, stream: int, key: str, data: dict[str, Any]) -> bool:
        """Whether a row that waits makes a record different from this one, which is stored."""
        arrival = self._rows.get((stream, key))
        return arrival is not None and arrival.json != dump(data)

    def flush(self) -> None:
        """Writes the rows so far, in transactions of about half a second."""
        rows = deque(self._rows.values())
        streams = {arrival.stream.id: arrival.stream for arrival in rows}
        self._rows.clear()
        self._bytes = 0
        while rows:
            with self.writer.transaction():
                deadline = self._timer(BATCH_SECONDS)
                require_current(self.writer, streams)
                changes: list[Change] = []
                load = 0.0
                while rows and load < self._share and not deadline.expired():
                    arrivals = _next_arrivals(rows, self._share - load)
                    self._on_rows(arrivals)
                    for change in self._decide(arrivals):
                        changes.append(change)
                        load += _load(change.arrival)
                if changes:
                    self.writer.apply(changes, self._sample)
                self.writer.save_digests(self._digests)
                self._digests.clear()
            seconds = BATCH_SECONDS + deadline.clock() - deadline.at
            if load >= self._share or seconds > BATCH_SECONDS:
                share = self._share * BATCH_SECONDS / max(seconds, BATCH_SECONDS / 2)
                self._share = min(max(share, LEAST_SHARE), 1.0)

    def _check(self, stream: StreamHandle, row: Row) -> Arrival:
        data = row.data
        key = record_key(row, stream.manifest.primary_key)
        emitted_at = row.emitted_at or self._now
        if emitted_at is not self._now and microseconds(emitted_at) is None:
            raise Refused(f"emitted_at {emitted_at[:40]!r} is not an ISO 8601 date-time.")
        if row.deleted:
            return Arrival(stream, key, None, emitted_at)
        if not data.keys() <= self._good_names:
            for name in data.keys() - self._good_names:
                self._good_names.add(check_name(name, what="field"))
        attachments: list[Attachment] = []
        if check_nesting(data):
            data = dict(data)
            attachments = take_attachments(data)
        # A copy: bytes from orjson keep several times their length in memory.
        json = bytes(memoryview(dump(data)))
        return Arrival(stream, key, json, emitted_at, attachments, row.digest)

    def _decide(self, arrivals: list[Arrival]) -> Iterator[Change]:
        """Determines what the rows change; rows that change nothing are only counted."""
        records = self.writer.find(arrivals)
        for arrival in arrivals:
            stored = records.get((arrival.stream.id, arrival.key))
            live = None if stored is None or stored.deleted else stored
            if arrival.json is None:
                if live is None:
                    self.counts.unchanged += 1
                else:
                    self.counts.deleted += 1
                    yield Change(arrival, live.seq, live)
            elif live is None:
                self.counts.new += 1
                seq = self.writer.new_seq() if stored is None else stored.seq
                self._note(arrival, seq)
                yield Change(arrival, seq, exists=stored is not None)
            elif fields := compare(live, arrival.json, self.writer.read_large):
                self.counts.changed += 1
                self._note(arrival, live.seq)
                yield Change(arrival, live.seq, live._replace(json=b""), frozenset(fields))
            else:
                self.counts.unchanged += 1
                self._note(arrival, live.seq)
                self.writer.keep(arrival.stream.connection, live.seq, arrival.attachments)

    def _note(self, arrival: Arrival, seq: int) -> None:
        if arrival.digest is not None:
            self._digests.append((arrival.digest, arrival.stream.connection, seq))


def stored(
    writer: Writing, stream: StreamHandle, records: Sequence[tuple[str, dict[str, Any]]]
) -> list[bool]:
    """Whether each record is in a stream with a key and with these members."""
    rows = [Arrival(stream, key, dump(members), "") for key, members in records]
    with writer.transaction():
        old_records = writer.find(rows)
        return [
            (old := old_records.get((stream.id, key))) is not None
            and not old.deleted
            and not compare(old, row.json or b"", writer.read_large) & members.keys()
            for row, (key, members) in zip(rows, records)
        ]


def _size(arrival: Arrival) -> int:
    blobs = sum(len(blob.content or b"") for blob in arrival.attachments)
    return len(arrival.json or b"") + blobs


def _load(arrival: Arrival) -> float:
    """The share of a full batch that a row takes."""
    return max(1 / BATCH_RECORDS, _size(arrival) / BATCH_BYTES)


def _next_arrivals(rows: deque[Arrival], load: float) -> list[Arrival]:
    """The next rows, at least one, up to a share of a full batch."""
    arrivals = [rows.popleft()]
    while rows and (load := load - _load(arrivals[-1])) > 0:
        arrivals.append(rows.popleft())
    return arrivals
