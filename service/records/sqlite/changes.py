"""What a batch of rows changes: found by comparison with the store, then written in one go.

A change takes what it replaces out of the indexes, then stores and indexes the new. A batch is
large, because the full-text index takes the words of many records at once much faster than those
of few. So it holds of each row only its JSON, and goes through them in small pieces.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from service.records.arrivals import Arrival, Change, Stored, by_stream, pieces, stored
from service.records.derived import order_of
from service.records.languages import Sample
from service.records.large import LargeValue
from service.records.sqlite.catalog import Catalog
from service.records.sqlite.attachments import keep_attachments, release_attachments, sweep
from service.records.sqlite.indexing import Index

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


class Changes(Catalog):
    """The verbs of a writer for records; see `writing.Writing`."""

    def find(self, piece: Sequence[Arrival]) -> dict[tuple[int, str], Stored]:
        db = self.db
        found = {}
        for stream, keys in by_stream(piece).items():
            if db.execute("SELECT 1 FROM record WHERE stream = ? LIMIT 1", (stream,)).fetchone():
                for key, *columns in db.execute(_FIND, (stream, orjson.dumps(keys).decode())):
                    found[stream, key] = Stored(*columns)
        return found

    def apply(self, changes: list[Change], sample: Sample) -> None:
        db, index, orphans = self.db, Index(self), set()
        count = len(changes)
        live = Counter[int]()
        for change in changes:
            live[change.arrival.stream.id] += (change.arrival.json is not None) - bool(change.old)
            if change.old is not None:
                index.drop(change.arrival.stream.scopes, change.seq, change.fields)
                for place in change.dropped:
                    index.drop_chunks(place)
                orphans |= release_attachments(db, change.seq, change.fields)
        removed = bool(index.dropped or index.dropped_chunks)
        index.apply_drops()
        for piece in pieces(changes):
            self._store(piece, index, sample)
        index.apply_adds()
        self.note_languages(sample)
        sweep(db, orphans)
        db.executemany(
            "UPDATE stream SET records = records + ? WHERE id = ?",
            ((count, stream) for stream, count in live.items()),
        )
        self.note(count, removed=removed)

    def _bury(self, change: Change) -> None:
        db = self.db
        db.execute("UPDATE record SET deleted = 1 WHERE seq = ?", (change.seq,))
        db.execute("DELETE FROM document WHERE seq = ?", (change.seq,))
        db.execute(
            "INSERT INTO tombstone (seq, deleted_at) VALUES (?, ?)",
            (change.seq, change.arrival.emitted_at),
        )

    def _store(self, piece: list[Change], index: Index, sample: Sample) -> None:
        """Writes records, documents and log, and notes for the index the fields that changed."""
        db, new, known, documents = self.db, [], [], []
        for change in piece:
            if change.arrival.json is None:
                self._bury(change)
        for change, data, large, json in stored(piece, sample):
            arrival, seq = change.arrival, change.seq
            order = order_of(arrival.stream.manifest, data)
            if change.known:
                known.append((*order, seq))
            else:
                new.append((seq, arrival.stream.id, arrival.key, *order))
            places = self._place(change, data, large, index)
            documents.append((seq, *change.times, json, places))
        db.executemany(_ADD_RECORD, new)
        db.executemany(_CHANGE_RECORD, known)
        db.executemany("DELETE FROM tombstone WHERE seq = ?", ((row[-1],) for row in known))
        db.executemany(
            "INSERT OR REPLACE INTO document (seq, emitted_at, changed, data, big)"
            " VALUES (?, ?, ?, ?, ?)",
            documents,
        )
        index.write()
        first = self.take("next_version", len(piece))
        db.executemany(
            "INSERT INTO change (stream, version, seq, fields) VALUES (?, ?, ?, ?)",
            (
                (change.arrival.stream.id, version, change.seq, change.names)
                for version, change in enumerate(piece, start=first)
            ),
        )

    def _place(
        self, change: Change, data: dict[str, Any], large: dict[str, LargeValue], index: Index
    ) -> str | None:
        """Notes the fields that changed for the index; returns `Change.places` of the record."""
        stream = change.arrival.stream
        data = {name: value for name, value in data.items() if change.touches(name)}
        later = self.staged_blobs if self.staged else None
        keep_attachments(self.db, stream.connection, change.seq, change.attachments, later)
        places = {name: index.add_large(value) for name, value in large.items() if name in data}
        index.add(stream.manifest, stream.scopes, change.seq, data, places)
        return change.places(places)
