"""What is derived from records: full-text rows and cells, kept in step with them.

The full-text tables read their old text back through views. So a row must leave its index
before the record, the value or the chunk changes, and may enter only afterwards; `Index` gathers
both sides, and a caller changes the tables between `apply_drops` and `apply_adds`. Row ids go in
ascending order, which is several times faster.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import orjson

from evidence.fold import fold
from service.records.sqlite import recent_index
from service.records.sqlite.ddl import NO_CURSOR
from service.records.sqlite.large import GAP, LargeValue, Place, read_chunks
from service.records.manifest import StreamManifest
from service.records.sqlite.scopes import Scopes, row_id
from service.records.values import Stored, sortable
from service.records.sqlite.writer import Writer

REINDEX_BYTES = 67_108_864
REINDEX_RECORDS = 5_000


@dataclass(slots=True)
class Index:
    """One batch of full-text rows, chunks and cells to drop and to add."""

    dropped: list[int] = field(default_factory=list)
    dropped_chunks: list[int] = field(default_factory=list)
    dropped_cells: list[tuple[int, int]] = field(default_factory=list)
    values: list[tuple[int, int | None, int | None]] = field(default_factory=list)
    folded: list[tuple[int, str]] = field(default_factory=list)
    chunks: list[tuple[int, str]] = field(default_factory=list)
    chunk_texts: list[tuple[int, str]] = field(default_factory=list)
    cells: list[tuple[int, int, Stored]] = field(default_factory=list)

    def drop(self, scopes: Scopes, seq: int, fields: Iterable[str] | None = None) -> None:
        """Notes the full-text rows and cells of a record's fields, of all where none are named."""
        names = {*scopes.searchable, *scopes.cells} if fields is None else fields
        for name in names:
            if name in scopes.searchable:
                self.dropped.append(row_id(scopes.searchable[name], seq))
            if name in scopes.cells:
                self.dropped_cells.append((seq, scopes.cells[name]))

    def drop_chunks(self, place: Place) -> None:
        first, chunks = place[:2]
        self.dropped_chunks.extend(range(first, first + chunks))

    def apply_drops(self, db: sqlite3.Connection) -> None:
        """Takes the noted rows out, before the records they came from change."""
        recent_index.leave(db, self.dropped)
        ids = [(row,) for row in sorted(self.dropped)]
        db.executemany("DELETE FROM fts WHERE rowid = ?", ids)
        db.executemany("DELETE FROM value WHERE id = ?", ids)
        chunks = [(row,) for row in sorted(self.dropped_chunks)]
        db.executemany("DELETE FROM fts_chunk WHERE rowid = ?", chunks)
        db.executemany("DELETE FROM chunk WHERE id = ?", chunks)
        db.executemany("DELETE FROM cell WHERE seq = ? AND ordinal = ?", self.dropped_cells)

    def add_large(self, writer: Writer, large: LargeValue) -> Place:
        """Notes the chunks of a large value under fresh ids; returns where they will be."""
        first = writer.take("next_chunk", large.chunks + GAP)
        for number, (text, indexed) in enumerate(large.pieces(), start=first):
            self.chunks.append((number, text))
            self.chunk_texts.append((number, indexed))
        return large.place(first)

    def add(
        self,
        manifest: StreamManifest,
        scopes: Scopes,
        seq: int,
        data: dict[str, Any],
        places: dict[str, Place],
    ) -> None:
        """Notes the full-text rows and cells of the fields in `data`, given with whole values."""
        for name, ordinal in scopes.searchable.items():
            value = data.get(name)
            if isinstance(value, str) and value:
                row = row_id(ordinal, seq)
                first, chunks = places[name][:2] if name in places else (None, None)
                self.values.append((row, first, chunks))
                self.folded.append((row, fold(value)))
        for name, ordinal in scopes.cells.items():
            if name in data:
                stored = sortable(data[name], manifest.fields[name])
                if stored is not None:
                    self.cells.append((seq, ordinal, stored))

    def apply_adds(self, db: sqlite3.Connection) -> None:
        """Puts the noted rows in, after their records are stored."""
        self.write(db)
        self.folded.sort(key=itemgetter(0))
        db.executemany("INSERT INTO fts (rowid, body) VALUES (?, ?)", self.folded)

    def write(self, db: sqlite3.Connection) -> None:
        """Puts in what need not wait for the whole batch: all but the full-text rows of fields."""
        self.values.sort(key=itemgetter(0))
        self.cells.sort(key=itemgetter(0, 1))
        db.executemany("INSERT INTO chunk (id, text) VALUES (?, ?)", self.chunks)
        db.executemany("INSERT INTO value (id, first, chunks) VALUES (?, ?, ?)", self.values)
        db.executemany("INSERT INTO cell (seq, ordinal, value) VALUES (?, ?, ?)", self.cells)
        db.executemany(
            "INSERT INTO fts_chunk (rowid, body) VALUES (?, ?)",
            ((row, fold(text)) for row, text in self.chunk_texts),
        )
        for noted in (self.chunks, self.values, self.cells, self.chunk_texts):
            noted.clear()


def order_of(manifest: StreamManifest, data: dict[str, Any]) -> tuple[int | None, Stored]:
    """(`record.at`, `record.cursor`) of a record."""
    at = _stored(manifest, manifest.time_field, data)
    same = manifest.cursor_field == manifest.time_field
    cursor = at if same else _stored(manifest, manifest.cursor_field, data)
    return at if isinstance(at, int) else None, NO_CURSOR if cursor is None else cursor


def reindex(
    writer: Writer,
    stream: int,
    old: tuple[StreamManifest, Scopes],
    new: tuple[StreamManifest, Scopes],
) -> None:
    """Derives everything anew for the records of a stream whose manifest has changed."""
    if _derives(*old) == _derives(*new):
        return
    last = count = 0
    while True:
        index, seqs, size = Index(), [], 0
        rows = writer.db.execute(
            "SELECT seq, data, big FROM document JOIN record USING (seq)"
            " WHERE stream = ? AND deleted = 0 AND seq > ? ORDER BY seq LIMIT ?",
            (stream, last, REINDEX_RECORDS),
        )
        orders = []
        for seq, text, big in rows:
            places: dict[str, Place] = orjson.loads(big) if big else {}
            data = orjson.loads(text) | {
                name: read_chunks(writer.db, place[0], place[1])
                for name, place in places.items()
                if place[4] == "string"
            }
            index.drop(old[1], seq)
            index.add(*new, seq, data, places)
            orders.append((*order_of(new[0], data), seq))
            seqs.append(seq)
            size += len(text) + sum(place[3] for place in places.values())
            if size > REINDEX_BYTES:
                break
        if not seqs:
            if count:
                writer.note(count, removed=True)
            return
        rows.close()
        index.apply_drops(writer.db)
        writer.db.executemany("UPDATE record SET at = ?, cursor = ? WHERE seq = ?", orders)
        index.apply_adds(writer.db)
        last = seqs[-1]
        count += len(seqs)


def _derives(manifest: StreamManifest, scopes: Scopes) -> tuple[Any, ...]:
    kinds = {name: manifest.fields[name] for name in scopes.cells}
    order = manifest.time_field, manifest.cursor_field
    return scopes, kinds, order, [manifest.fields[name] for name in order if name]


def _stored(manifest: StreamManifest, name: str | None, data: dict[str, Any]) -> Stored | None:
    if name is None or name not in data:
        return None
    return sortable(data[name], manifest.fields[name])
