"""Compares arriving rows with a store to find what they change, for every engine."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from service.records.writing.attachments import Attachment
from service.records.engine.change_log import NO_TIME
from evidence.names import Refused
from service.records.writing.languages import Sample
from service.records.engine.large import LargeValue, Place, find_large
from service.records.engine.scopes import StreamHandle

#: Rows of a batch that are compared or stored together.
PIECE_RECORDS: Final = 2_000

_Row = TypeVar("_Row")
#: An entry of the change log without its version: stream, seq, connection, fields, times before
#: and of a move (see sqlite/ddl.py).
Entry = tuple[int, int, int, str | None, int, str | None]


class Arrival(NamedTuple):
    """A validated row: `json` is the whole record, None for a deletion.

    `origin` is the number of its file, for imports that note where records come from.
    """

    stream: StreamHandle
    key: str
    json: bytes | None
    emitted_at: str
    attachments: Sequence[Attachment] = ()
    digest: int | None = None
    origin: int = 0


class Stored(NamedTuple):
    """A record as stored; the document columns of a deleted one are None."""

    seq: int
    deleted: int
    json: bytes
    big: str | None
    emitted_at: str
    changed: str | None
    at: int | None

    @property
    def places(self) -> dict[str, Place]:
        return orjson.loads(self.big) if self.big else {}


class Change(NamedTuple):
    """The change of one record in a batch; `fields` are those that change, None for all."""

    arrival: Arrival
    seq: int
    old: Stored | None = None
    fields: frozenset[str] | None = None
    exists: bool = True

    def touches(self, field: str) -> bool:
        """Whether a field changes."""
        return self.fields is None or field in self.fields

    def entry(self, at: int | None) -> Entry:
        """What the change log stores: `fields` as a JSON list, sorted. `at` is the new time."""
        names = None if self.fields is None else dump(sorted(self.fields)).decode()
        stream, was_at = self.arrival.stream, self.old.at if self.old else None
        moved = self.arrival.json is None or (self.old is not None and was_at != at)
        departed_at = self.arrival.emitted_at if moved else None
        return stream.id, self.seq, stream.connection, names, time_before(was_at), departed_at

    @property
    def attachments(self) -> list[Attachment]:
        """The blobs that arrived, and those that the changed fields name."""
        return [
            blob
            for blob in self.arrival.attachments
            if blob.content is not None or self.touches(blob.field)
        ]

    @property
    def dropped(self) -> list[Place]:
        """The places of the large values that are replaced or removed."""
        old = self.old.places if self.old else {}
        return [location for name, location in old.items() if self.touches(name)]

    @property
    def times(self) -> tuple[str, str | None]:
        """(first emission, JSON of the later times at which fields changed, oldest first)."""
        now, old = self.arrival.emitted_at, self.old
        if old is None or self.fields is None:
            return now, None
        return old.emitted_at, later_times(old.changed, self.fields, now)

    def places(self, new: dict[str, Place]) -> str | None:
        """JSON of the places of all large values; `new` are those of the changed fields."""
        old = self.old.places if self.old else {}
        return _text_of({n: location for n, location in old.items() if not self.touches(n)} | new)


def time_before(at: int | None) -> int:
    """The time of a record before a change, as the log stores it; see `change_log.Change`."""
    return NO_TIME if at is None else at


def by_stream(arrivals: Iterable[Arrival]) -> dict[int, list[str]]:
    """The keys of some rows by stream."""
    keys: dict[int, list[str]] = {}
    for arrival in arrivals:
        keys.setdefault(arrival.stream.id, []).append(arrival.key)
    return keys


def compare(old: Stored, json: bytes, read: Callable[[Place], str]) -> set[str]:
    """The names of the top-level fields that differ from the stored record.

    `read` returns the text of the large value at a place.
    """
    if old.json == json and not old.big:
        return set()
    return differing(old, *split(orjson.loads(json), json), read)


def differing(
    old: Stored, small: dict[str, Any], large: dict[str, LargeValue], read: Callable[[Place], str]
) -> set[str]:
    """The same for a record whose small and large fields are separate."""
    before, places = orjson.loads(old.json), old.places
    same = {
        name
        for name in small.keys() & before.keys()
        if _canonical(small[name]) == _canonical(before[name])
    }
    same |= {name for name in large.keys() & places if large[name].is_at(places[name], read)}
    return {*before, *places, *small, *large} - same


def pieces(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Splits rows into lists of up to 2,000; empties the list, so that memory is freed early."""
    while rows:
        batch = rows[:PIECE_RECORDS]
        del rows[:PIECE_RECORDS]
        yield batch


def split(data: dict[str, Any], json: bytes) -> tuple[dict[str, Any], dict[str, LargeValue]]:
    """The fields of a record, whose whole JSON is `json`: the small and the large ones."""
    large = find_large(data, json)
    return {n: v for n, v in data.items() if n not in large} if large else data, large


def stored(
    changes: Iterable[Change], sample: Sample
) -> Iterator[tuple[Change, dict[str, Any], dict[str, LargeValue], str]]:
    """(change, data, large values, JSON without these) of each change that is not a deletion.

    Adds the texts of the records to the sample of their languages.
    """
    for change in changes:
        if (json := change.arrival.json) is not None:
            data = orjson.loads(json)
            sample.take(change.arrival.stream, data)
            small, large = split(data, json)
            yield change, data, large, (dump(small) if large else json).decode()


def dump(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise Refused(f"A value cannot be written as JSON: {error}.") from None


def later_times(changed: str | None, fields: Collection[str], at: str) -> str | None:
    """JSON of the later times at which fields changed, with a change of some of them."""
    before = orjson.loads(changed) if changed else {}
    unchanged = {name: time for name, time in before.items() if name not in fields}
    return _text_of(unchanged | dict.fromkeys(sorted(fields), at))


def _text_of(value: dict[str, Any]) -> str | None:
    """JSON for a column; None if the value is empty."""
    return dump(value).decode() if value else None


def _canonical(value: Any) -> bytes:
    """JSON that is equal for equal values."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
