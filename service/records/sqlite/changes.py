"""What a batch of rows changes: found by comparison with the store, then written in one go.

A change takes what it replaces out of the indexes, then stores and indexes the new. A batch is
large, because the full-text index takes the words of many records at once much faster than those
of few. So it holds of each row only its JSON, and goes through them in small pieces.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from service.records.intake import Refused
from service.records.sqlite.attachments import (
    Attachment,
    keep_attachments,
    release_attachments,
    sweep,
)
from service.records.sqlite.indexing import Index, order_of
from service.records.sqlite.languages import Sample
from service.records.sqlite.large import LargeValue, Place, find_large, read_chunks
from service.records.sqlite.streams import StreamHandle
from service.records.sqlite.transactions import Writer

PIECE_RECORDS = 2_000

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


def find(writer: Writer, piece: list[Arrival]) -> dict[tuple[int, str], Stored]:
    """What the store has of these rows, by stream and key."""
    db = writer.db
    wanted: dict[int, list[str]] = {}
    for arrival in piece:
        wanted.setdefault(arrival.stream.id, []).append(arrival.key)
    found = {}
    for stream, keys in wanted.items():
        if db.execute("SELECT 1 FROM record WHERE stream = ? LIMIT 1", (stream,)).fetchone():
            for key, *columns in db.execute(_FIND, (stream, orjson.dumps(keys).decode())):
                found[stream, key] = Stored(*columns)
    return found


def compare(writer: Writer, old: Stored, json: bytes) -> set[str]:
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
    same |= {name for name in large.keys() & places if _holds(writer, places[name], large[name])}
    return names - same


def _holds(writer: Writer, place: Place, value: LargeValue) -> bool:
    """Whether the chunks at a place are this value."""
    return tuple(place[1:]) == value.place(0)[1:] and value.text == read_chunks(
        writer.db, place[0], place[1]
    )


def apply(writer: Writer, changes: list[Change], sample: Sample) -> None:
    """Writes the changes, in the transaction of the caller; empties the list."""
    db, index, orphans = writer.db, Index(writer), set()
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
        _store(writer, piece, index, sample)
    index.apply_adds()
    sample.note(db)
    sweep(db, orphans)
    db.executemany(
        "UPDATE stream SET records = records + ? WHERE id = ?",
        ((count, stream) for stream, count in live.items()),
    )
    writer.note(count, removed=removed)


def _bury(writer: Writer, change: Change) -> None:
    db = writer.db
    db.execute("UPDATE record SET deleted = 1 WHERE seq = ?", (change.seq,))
    db.execute("DELETE FROM document WHERE seq = ?", (change.seq,))
    db.execute(
        "INSERT INTO tombstone (seq, deleted_at) VALUES (?, ?)",
        (change.seq, change.arrival.emitted_at),
    )


def _store(writer: Writer, piece: list[Change], index: Index, sample: Sample) -> None:
    """Writes records, documents and log, and notes for the index the fields that changed."""
    db, new, known, documents = writer.db, [], [], []
    for change in piece:
        arrival, seq = change.arrival, change.seq
        if arrival.json is None:
            _bury(writer, change)
            continue
        data = orjson.loads(arrival.json)
        sample.take(arrival.stream.connection, data)
        small, large = _split(data, arrival.json)
        order = order_of(arrival.stream.manifest, data)
        if change.known:
            known.append((*order, seq))
        else:
            new.append((seq, arrival.stream.id, arrival.key, *order))
        places = _place(writer, change, data, large, index)
        json = dump(small) if large else arrival.json
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
    db.executemany("INSERT INTO change (stream, seq, fields) VALUES (?, ?, ?)", _log(piece))


def _place(
    writer: Writer, change: Change, data: dict[str, Any], large: dict[str, LargeValue], index: Index
) -> dict[str, Place]:
    """Notes the fields that changed for the index; returns where all large values will be."""
    arrival, fields, old = change.arrival, change.fields, change.old
    used: Iterable[Attachment] = arrival.attachments
    if fields is not None:
        data = {name: value for name, value in data.items() if name in fields}
        used = [item for item in used if item.field in fields]
    if used:
        keep_attachments(writer.db, arrival.stream.connection, change.seq, used)
    places = {name: index.add_large(value) for name, value in large.items() if name in data}
    index.add(arrival.stream.manifest, arrival.stream.scopes, change.seq, data, places)
    if fields is None or old is None or not old.big:
        return places
    return {n: place for n, place in old.places.items() if n not in fields} | places


def _split(data: dict[str, Any], json: bytes) -> tuple[dict[str, Any], dict[str, LargeValue]]:
    """The fields of a record, whose whole JSON is `json`: the small and the large ones."""
    large = find_large(data, json)
    return {n: v for n, v in data.items() if n not in large} if large else data, large


def _log(piece: list[Change]) -> Iterator[tuple[int, int, str | None]]:
    """Rows of the change log."""
    for arrival, seq, _, fields, _ in piece:
        yield arrival.stream.id, seq, None if fields is None else dump(sorted(fields)).decode()


def _times(change: Change) -> tuple[str, str | None]:
    """(when the record was first emitted, when its fields changed since, oldest first)."""
    now, old = change.arrival.emitted_at, change.old
    if old is None or change.fields is None:
        return now, None
    before = orjson.loads(old.changed) if old.changed else {}
    kept = {name: at for name, at in before.items() if name not in change.fields}
    return old.emitted_at, _text(kept | dict.fromkeys(sorted(change.fields), now))


def dump(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise Refused(f"A value cannot be written as JSON: {error}.") from None


def _text(value: dict[str, Any]) -> str | None:
    """JSON as a column holds it; None for nothing."""
    return dump(value).decode() if value else None


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
