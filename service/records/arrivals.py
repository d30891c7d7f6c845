"""What rows change in a store: found by comparison with what it has, whatever engine keeps it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from service.records.attachments import Attachment
from service.records.intake import Refused
from service.records.large import LargeValue, Place, find_large
from service.records.scopes import StreamHandle

#: Rows of a batch that are compared or stored together.
PIECE_RECORDS: Final = 2_000

Holds = Callable[[Place, LargeValue], bool]
_Row = TypeVar("_Row")


class Arrival(NamedTuple):
    """A checked row: `json` is the whole record, None for a deletion."""

    stream: StreamHandle
    key: str
    json: bytes | None
    emitted_at: str
    attachments: Sequence[Attachment] = ()


class Stored(NamedTuple):
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


class Change(NamedTuple):
    """What a batch does to one record; `fields` are those that change, None for all."""

    arrival: Arrival
    seq: int
    old: Stored | None = None
    fields: frozenset[str] | None = None
    known: bool = True


def compare(old: Stored, json: bytes, holds: Holds) -> set[str]:
    """The names of the top-level fields in which a record differs from the stored one.

    `holds` tells whether the chunks at a place are a large value.
    """
    if old.json == json and not old.big:
        return set()
    data, places = orjson.loads(json), old.places
    small, large = split(data, json)
    before = orjson.loads(old.json)
    names = {*before, *places, *data}
    same = {
        name
        for name in small.keys() & before.keys()
        if _canonical(small[name]) == _canonical(before[name])
    }
    same |= {name for name in large.keys() & places if holds(places[name], large[name])}
    return names - same


def pieces(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Splits rows into lists of up to 2,000; empties the list, so that memory is freed early."""
    while rows:
        piece = rows[:PIECE_RECORDS]
        del rows[:PIECE_RECORDS]
        yield piece


def split(data: dict[str, Any], json: bytes) -> tuple[dict[str, Any], dict[str, LargeValue]]:
    """The fields of a record, whose whole JSON is `json`: the small and the large ones."""
    large = find_large(data, json)
    return {n: v for n, v in data.items() if n not in large} if large else data, large


def times(change: Change) -> tuple[str, str | None]:
    """(when the record was first emitted, when its fields changed since, oldest first)."""
    now, old = change.arrival.emitted_at, change.old
    if old is None or change.fields is None:
        return now, None
    before = orjson.loads(old.changed) if old.changed else {}
    kept = {name: at for name, at in before.items() if name not in change.fields}
    return old.emitted_at, text_of(kept | dict.fromkeys(sorted(change.fields), now))


def dump(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise Refused(f"A value cannot be written as JSON: {error}.") from None


def text_of(value: dict[str, Any]) -> str | None:
    """JSON as a column holds it; None for nothing."""
    return dump(value).decode() if value else None


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
