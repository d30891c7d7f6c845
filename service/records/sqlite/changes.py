"""What a batch of rows changes: found by comparison with the store, then written in one go.

A change takes what it replaces out of the indexes, then stores and indexes the new. A batch is
large, because the full-text index takes the words of many records at once much faster than those
of few. So it holds of each row only its JSON, and goes through them in small pieces.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import orjson

from service.records import arrivals
from service.records.arrivals import Arrival, Change, Stored, dump, pieces, split, text_of, times
from service.records.attachments import Attachment
from service.records.derived import order_of
from service.records.languages import Sample
from service.records.large import LargeValue, Place
from service.records.sqlite import languages
from service.records.sqlite.attachments import keep_attachments, release_attachments, sweep
from service.records.sqlite.chunks import read_chunks
from service.records.sqlite.indexing import Index
from service.records.sqlite.transactions import Transactions

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


def find(writer: Transactions, piece: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
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


def compare(writer: Transactions, old: Stored, json: bytes) -> set[str]:
    """The names of the top-level fields in which a record differs from the stored one."""
    return arrivals.compare(old, json, partial(_holds, writer))


def _holds(writer: Transactions, place: Place, value: LargeValue) -> bool:
    """Whether the chunks at a place are this value."""
    return tuple(place[1:]) == value.place(0)[1:] and value.text == read_chunks(
        writer.db, place[0], place[1]
    )


def apply(writer: Transactions, changes: list[Change], sample: Sample) -> None:
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
    for piece in pieces(changes):
        _store(writer, piece, index, sample)
    index.apply_adds()
    languages.note(db, sample)
    sweep(db, orphans)
    db.executemany(
        "UPDATE stream SET records = records + ? WHERE id = ?",
        ((count, stream) for stream, count in live.items()),
    )
    writer.note(count, removed=removed)


def _bury(writer: Transactions, change: Change) -> None:
    db = writer.db
    db.execute("UPDATE record SET deleted = 1 WHERE seq = ?", (change.seq,))
    db.execute("DELETE FROM document WHERE seq = ?", (change.seq,))
    db.execute(
        "INSERT INTO tombstone (seq, deleted_at) VALUES (?, ?)",
        (change.seq, change.arrival.emitted_at),
    )


def _store(writer: Transactions, piece: list[Change], index: Index, sample: Sample) -> None:
    """Writes records, documents and log, and notes for the index the fields that changed."""
    db, new, known, documents = writer.db, [], [], []
    for change in piece:
        arrival, seq = change.arrival, change.seq
        if arrival.json is None:
            _bury(writer, change)
            continue
        data = orjson.loads(arrival.json)
        sample.take(arrival.stream.connection, data)
        small, large = split(data, arrival.json)
        order = order_of(arrival.stream.manifest, data)
        if change.known:
            known.append((*order, seq))
        else:
            new.append((seq, arrival.stream.id, arrival.key, *order))
        places = _place(writer, change, data, large, index)
        json = dump(small) if large else arrival.json
        documents.append((seq, *times(change), json.decode(), text_of(places)))
    db.executemany(_ADD_RECORD, new)
    db.executemany(_CHANGE_RECORD, known)
    db.executemany("DELETE FROM tombstone WHERE seq = ?", ((row[-1],) for row in known))
    db.executemany(
        "INSERT OR REPLACE INTO document (seq, emitted_at, changed, data, big)"
        " VALUES (?, ?, ?, ?, ?)",
        documents,
    )
    index.write()
    version = writer.take("next_version", len(piece))
    db.executemany(
        "INSERT INTO change (stream, version, seq, fields) VALUES (?, ?, ?, ?)",
        _log(piece, version),
    )


def _place(
    writer: Transactions,
    change: Change,
    data: dict[str, Any],
    large: dict[str, LargeValue],
    index: Index,
) -> dict[str, Place]:
    """Notes the fields that changed for the index; returns where all large values will be."""
    arrival, fields, old = change.arrival, change.fields, change.old
    used: Iterable[Attachment] = arrival.attachments
    if fields is not None:
        data = {name: value for name, value in data.items() if name in fields}
        used = [item for item in used if item.field in fields]
    if used:
        later = writer.staged_blobs if writer.staged else None
        keep_attachments(writer.db, arrival.stream.connection, change.seq, used, later)
    places = {name: index.add_large(value) for name, value in large.items() if name in data}
    index.add(arrival.stream.manifest, arrival.stream.scopes, change.seq, data, places)
    if fields is None or old is None or not old.big:
        return places
    return {n: place for n, place in old.places.items() if n not in fields} | places


def _log(piece: list[Change], version: int) -> Iterator[tuple[int, int, int, str | None]]:
    """Rows of the change log, from a version on."""
    for number, (arrival, seq, _, fields, _) in enumerate(piece, start=version):
        names = None if fields is None else dump(sorted(fields)).decode()
        yield arrival.stream.id, number, seq, names
