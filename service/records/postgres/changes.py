"""What a batch of rows changes, written in one go; see `ingest` for how it is found."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evidence.errors import Unavailable
from service.records import languages
from service.records.arrivals import Arrival, Change, Stored, by_stream, pieces, stored
from service.records.languages import Sample
from service.records.large import LargeValue
from service.records.postgres import attachments
from service.records.postgres.indexing import Index, ordered
from service.records.postgres.transactions import Transactions

#: The keys of rows that came in while streams are staged; see staging.py.
ARRIVED = "arrived"
#: Locks the connections of streams, so that nobody else changes their records or removes them.
LOCK = """
SELECT s.id FROM stream s JOIN connection c ON c.id = s.conn WHERE s.id = ANY(%s) ORDER BY c.id
FOR NO KEY UPDATE OF c FOR KEY SHARE OF s
"""
_FIND = """
SELECT r.record_key, r.seq, r.deleted, d.data, d.big, d.emitted_at, d.changed
FROM record r LEFT JOIN document d USING (seq) WHERE r.stream = %s AND r.record_key = ANY(%s)
"""
_CHANGE_RECORD = """
UPDATE record SET at = %s, cursor = %s, thread = %s, place = %s, deleted = false WHERE seq = %s
"""


def find(writer: Transactions, piece: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
    """What the store has of these rows, by stream and key. Nobody else changes it meanwhile."""
    streams, found = by_stream(piece), {}
    if len(writer.rows_of(LOCK, list(streams))) < len(streams):
        raise Unavailable("The stream was removed while rows were written to it.")
    for stream, keys in streams.items():
        if writer.staged:
            writer.copy(f"{ARRIVED} (stream, record_key)", [(stream, key) for key in keys])
        for key, seq, deleted, data, *rest in writer.rows_of(_FIND, stream, keys):
            found[stream, key] = Stored(seq, deleted, data and data.encode(), *rest)
    return found


def apply(writer: Transactions, changes: list[Change], sample: Sample) -> None:
    """Writes the changes, in the transaction of the caller; empties the list."""
    index, live, released = Index(writer), Counter[int](), list[tuple[int, str | None]]()
    for change in changes:
        live[change.arrival.stream.id] += (change.arrival.json is not None) - bool(change.old)
        if change.old is not None:
            index.drop(change.arrival.stream.scopes, change.seq, change.fields)
            for place in change.dropped:
                index.drop_value(place)
            released += [(change.seq, name) for name in change.fields or (None,)]
    index.apply_drops()
    orphans = attachments.release(writer, released)
    for piece in pieces(changes):
        _store(writer, piece, index, sample)
        index.apply_adds()
    index.apply_adds()
    note_languages(writer, sample)
    attachments.sweep(writer, orphans)
    writer.write_each(
        "UPDATE stream SET records = records + %s WHERE id = %s",
        [(count, stream) for stream, count in sorted(live.items())],
    )


def _store(writer: Transactions, piece: list[Change], index: Index, sample: Sample) -> None:
    """Writes records, documents and log, and notes for the index the fields that changed."""
    new, known, documents = [], [], []
    buried = [
        (seq, arrival.stream.connection, arrival.emitted_at)
        for arrival, seq, *_ in piece
        if arrival.json is None
    ]
    for change, data, large, json in stored(piece, sample):
        arrival, seq, conn = change.arrival, change.seq, change.arrival.stream.connection
        order = ordered(arrival.stream.manifest, data)
        if change.known:
            known.append((*order, seq))
        else:
            new.append((seq, conn, arrival.stream.id, arrival.key, *order))
        places = _place(writer, change, data, large, index)
        documents.append((seq, conn, *change.times, json, places))
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
    for change in piece:
        stream = change.arrival.stream
        writer.log((stream.id, change.seq, stream.connection, change.names))


def _place(
    writer: Transactions,
    change: Change,
    data: dict[str, Any],
    large: dict[str, LargeValue],
    index: Index,
) -> str | None:
    """Notes the fields that changed for the index; returns `Change.places` of the record."""
    stream, conn = change.arrival.stream, change.arrival.stream.connection
    data = {name: value for name, value in data.items() if change.touches(name)}
    attachments.keep(writer, conn, change.seq, change.attachments)
    places = {name: index.add_large(conn, large[name]) for name in large if name in data}
    index.add(conn, (stream.manifest, stream.scopes), change.seq, data, places)
    return change.places(places)


def note_languages(writer: Transactions, sample: Sample) -> None:
    """Adds the languages of the texts of a sample to those of their connections."""
    for connection, found in sample.found():
        ((known,),) = writer.rows_of("SELECT languages FROM connection WHERE id = %s", connection)
        if text := languages.merged(known, found):
            writer.changed_catalog()
            writer.write("UPDATE connection SET languages = %s WHERE id = %s", text, connection)
