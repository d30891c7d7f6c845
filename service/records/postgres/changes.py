"""What a batch of rows changes, written in one go; see `ingest` for how it is found."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from service.records import arrivals, languages
from service.records.arrivals import Arrival, Change, Stored, dump, pieces, split, text_of, times
from service.records.attachments import Attachment
from service.records.languages import Sample
from service.records.large import LargeValue, Place
from service.records.postgres import attachments
from service.records.postgres.indexing import Index, ordered, read_value
from service.records.postgres.transactions import Transactions

_LOCK = "SELECT 1 FROM connection WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
_FIND = """
SELECT r.record_key, r.seq, r.deleted, d.data, d.big, d.emitted_at, d.changed
FROM record r LEFT JOIN document d USING (seq) WHERE r.stream = %s AND r.record_key = ANY(%s)
"""
_CHANGE_RECORD = """
UPDATE record SET at = %s, cursor = %s, thread = %s, place = %s, deleted = false WHERE seq = %s
"""


def find(writer: Transactions, piece: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
    """What the store has of these rows, by stream and key. Nobody else changes it meanwhile."""
    writer.rows_of(_LOCK, sorted({arrival.stream.connection for arrival in piece}))
    wanted: dict[int, list[str]] = {}
    for arrival in piece:
        wanted.setdefault(arrival.stream.id, []).append(arrival.key)
    found = {}
    for stream, keys in wanted.items():
        for key, seq, deleted, data, *rest in writer.rows_of(_FIND, stream, keys):
            found[stream, key] = Stored(seq, deleted, data and data.encode(), *rest)
    return found


def compare(writer: Transactions, old: Stored, json: bytes) -> set[str]:
    """The names of the top-level fields in which a record differs from the stored one."""

    def holds(place: Place, value: LargeValue) -> bool:
        same = tuple(place[1:]) == value.place(0)[1:]
        return same and value.text == read_value(writer, place[0])

    return arrivals.compare(old, json, holds)


def apply(writer: Transactions, changes: list[Change], sample: Sample) -> None:
    """Writes the changes, in the transaction of the caller; empties the list."""
    index, live, released = Index(writer), Counter[int](), list[tuple[int, str | None]]()
    for change in changes:
        live[change.arrival.stream.id] += (change.arrival.json is not None) - bool(change.old)
        if change.old is not None:
            index.drop(change.arrival.stream.scopes, change.seq, change.fields)
            for name, place in change.old.places.items():
                if change.fields is None or name in change.fields:
                    index.drop_value(place)
            released += [(change.seq, name) for name in change.fields or (None,)]
    index.apply_drops()
    orphans = attachments.release(writer, released)
    for piece in pieces(changes):
        _store(writer, piece, index, sample)
        index.apply_adds()
    index.apply_adds()
    _note_languages(writer, sample)
    attachments.sweep(writer, orphans)
    writer.write_each(
        "UPDATE stream SET records = records + %s WHERE id = %s",
        [(count, stream) for stream, count in sorted(live.items())],
    )


def _store(writer: Transactions, piece: list[Change], index: Index, sample: Sample) -> None:
    """Writes records, documents and log, and notes for the index the fields that changed."""
    new, known, documents, buried = [], [], [], []
    for change in piece:
        arrival, seq, conn = change.arrival, change.seq, change.arrival.stream.connection
        if arrival.json is None:
            buried.append((seq, conn, arrival.emitted_at))
            continue
        data = orjson.loads(arrival.json)
        sample.take(conn, data)
        small, large = split(data, arrival.json)
        order = ordered(arrival.stream.manifest, data)
        if change.known:
            known.append((*order, seq))
        else:
            new.append((seq, conn, arrival.stream.id, arrival.key, *order))
        places = _place(writer, change, data, large, index)
        json = dump(small) if large else arrival.json
        documents.append((seq, conn, *times(change), json.decode(), text_of(places)))
    gone = [row[0] for row in buried]
    if known or buried:
        old = [row[-1] for row in known]
        writer.write("DELETE FROM document WHERE seq = ANY(%s)", old + gone)
        writer.write("DELETE FROM tombstone WHERE seq = ANY(%s)", old)
        writer.write("UPDATE record SET deleted = true WHERE seq = ANY(%s)", gone)
    writer.write_each(_CHANGE_RECORD, known)
    for into, rows in (
        ("tombstone (seq, conn, deleted_at)", buried),
        ("record (seq, conn, stream, record_key, at, cursor, thread, place)", new),
        ("document (seq, conn, emitted_at, changed, data, big)", documents),
    ):
        if rows:
            writer.copy(into, rows)
    writer.log(
        (
            arrival.stream.id,
            seq,
            arrival.stream.connection,
            None if fields is None else dump(sorted(fields)).decode(),
        )
        for arrival, seq, _, fields, _ in piece
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
    conn = arrival.stream.connection
    used: Sequence[Attachment] = arrival.attachments
    if fields is not None:
        data = {name: value for name, value in data.items() if name in fields}
        used = [item for item in used if item.field in fields]
    attachments.keep(writer, conn, change.seq, used)
    places = {name: index.add_large(conn, large[name]) for name in large if name in data}
    stream = arrival.stream.manifest, arrival.stream.scopes
    index.add(conn, stream, change.seq, data, places)
    if fields is None or old is None or not old.big:
        return places
    return {n: place for n, place in old.places.items() if n not in fields} | places


def _note_languages(writer: Transactions, sample: Sample) -> None:
    """Adds the languages of the texts of a sample to those of their connections."""
    for connection, found in sample.found():
        ((known,),) = writer.rows_of("SELECT languages FROM connection WHERE id = %s", connection)
        before = orjson.loads(known)
        after = languages.merged(before, found)
        if after != before:
            writer.changed_catalog()
            text = orjson.dumps(after).decode()
            writer.write("UPDATE connection SET languages = %s WHERE id = %s", text, connection)
