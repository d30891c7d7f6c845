"""Data derived from records: full-text rows, cells and words, kept consistent with the records.

The words of a value are subtracted by its text, which is read from the record. So a value must be
removed before the record or the chunk changes, and may be added only afterwards. `Index` collects
both sides, and the caller changes the tables between `apply_drops` and `apply_adds`. Row ids are
added in ascending order, which is several times faster. The counts of words change in the
transaction of the records; a word that no value contains any more is deleted.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import orjson

from evidence.fold import fold
from evidence.pointer import find, searched_text, top_level
from service.records.writing.derived import cells_of, texts_of
from service.records.engine.large import LargeValue, Place
from service.records.writing.passages import fold_passages, starts
from service.records.engine.scopes import Scopes, StreamHandle
from service.records.sqlite.ddl import EVERY_FIELD, SEQ_BITS, SEQ_MASK, SHARED_MOST, row_id
from service.records.sqlite.recent_words import RecentWords
from service.records.sqlite.transactions import INDEXES, Transactions, tune
from evidence.manifest.values import Stored
from service.records.writing.vocabulary import Vocabulary, keys_of

REINDEX_BYTES = 67_108_864
REINDEX_RECORDS = 5_000

_VALUE = "SELECT first, chunks, first_passage, passages FROM value WHERE id = ?"
_ADD_VALUE = """
INSERT INTO value (id, first, chunks, first_passage, passages, words) VALUES (?, ?, ?, ?, ?, ?)
"""
_DOCUMENTS = """
SELECT seq, data, big FROM document JOIN record USING (seq)
WHERE stream = ? AND deleted = 0 AND seq > ? ORDER BY seq LIMIT ?
"""

#: id, first chunk, chunks, first passage, passages, words; a short value has only the last.
_Value = tuple[int, int | None, int | None, int | None, int | None, int | None]


@dataclass(slots=True)
class Index:
    """A batch of full-text rows, chunks and cells to remove and to add. See `writer.Index`."""

    writer: Transactions
    dropped: list[int] = field(default_factory=list)
    dropped_chunks: list[int] = field(default_factory=list)
    dropped_cells: list[tuple[int, int]] = field(default_factory=list)
    values: list[_Value] = field(default_factory=list)
    folded: list[tuple[int, str]] = field(default_factory=list)
    long: list[tuple[int, int, str]] = field(default_factory=list)
    chunks: list[tuple[int, str]] = field(default_factory=list)
    cells: list[tuple[int, int, Stored]] = field(default_factory=list)
    vocabulary: Vocabulary = field(init=False)

    def __post_init__(self) -> None:
        self.vocabulary = Vocabulary(partial(apply_words, self.writer))

    def drop(self, scopes: Scopes, seq: int, fields: Iterable[str] | None = None) -> None:
        for name in {*scopes.searchable, *scopes.cells}:
            if fields is not None and top_level(name) not in fields:
                continue
            if name in scopes.searchable:
                self.dropped.append(row_id(scopes.searchable[name], seq))
            if name in scopes.cells:
                self.dropped_cells.append((seq, scopes.cells[name]))

    def drop_value(self, place: Place) -> None:
        first, chunks = place[:2]
        self.dropped_chunks.extend(range(first, first + chunks))

    def apply_drops(self) -> None:
        db = self.writer.db
        if self.dropped or self.dropped_chunks:
            self.writer.note_removed()
        for row in sorted(self.dropped):
            found = db.execute(_VALUE, (row,)).fetchone()
            if found is None:
                continue
            first, chunks, first_passage, passages = found
            ordinal, seq = row >> SEQ_BITS, row & SEQ_MASK
            self.vocabulary.remove(ordinal, read_text(db, seq, ordinal, first, chunks))
            if passages is None:
                db.execute("DELETE FROM fts WHERE rowid = ?", (row,))
                continue
            number = row_id(ordinal, first_passage)
            places = [(one,) for one in range(number, number + passages)]
            db.executemany("DELETE FROM fts_passage WHERE rowid = ?", places)
            db.execute("DELETE FROM passage WHERE id >= ? AND id < ?", (number, number + passages))
        ids = [(row,) for row in sorted(self.dropped)]
        db.executemany("DELETE FROM value WHERE id = ?", ids)
        db.executemany("DELETE FROM chunk WHERE id = ?", ((row,) for row in self.dropped_chunks))
        db.executemany("DELETE FROM cell WHERE seq = ? AND ordinal = ?", self.dropped_cells)

    def add_large(self, connection: int, large: LargeValue) -> Place:
        first = self.writer.take("next_chunk", large.chunks)
        self.chunks.extend(enumerate(large.pieces(), start=first))
        return large.place(first)

    def add(
        self, stream: StreamHandle, seq: int, data: dict[str, Any], places: dict[str, Place]
    ) -> None:
        for ordinal, text, place in texts_of(stream.scopes, data, places):
            self._add_text(ordinal, seq, text, *(place or (None, None))[:2])
        self.cells += [(seq, *cell) for cell in cells_of(stream, data, places)]

    def _add_text(
        self, ordinal: int, seq: int, text: str, first: int | None, chunks: int | None
    ) -> None:
        row, folded = row_id(ordinal, seq), fold(text)
        words = self.vocabulary.add(ordinal, text, folded)
        passages = len(starts(len(text)))
        if not passages:
            self.values.append((row, None, None, None, None, words))
            self.folded.append((row, folded))
            return
        number = self.writer.take("next_passage", passages)
        self.values.append((row, first, chunks, number, passages, None))
        # The fold of an ASCII text folds to itself, character by character.
        self.long.append((row_id(ordinal, number), seq, folded if text.isascii() else text))

    def apply_adds(self) -> None:
        self.write()
        db = self.writer.db
        self.folded.sort(key=itemgetter(0))
        db.executemany("INSERT INTO fts (rowid, body) VALUES (?, ?)", self.folded)
        self.long.sort(key=itemgetter(0))
        db.executemany("INSERT INTO passage (id, seq, start) VALUES (?, ?, ?)", self._passages())
        db.executemany("INSERT INTO fts_passage (rowid, body) VALUES (?, ?)", self._passage_texts())
        apply_words(self.writer, self.vocabulary)

    def write(self) -> None:
        """Adds everything except the full-text rows."""
        db = self.writer.db
        self.values.sort(key=itemgetter(0))
        self.cells.sort(key=itemgetter(0, 1))
        db.executemany("INSERT INTO chunk (id, text) VALUES (?, ?)", self.chunks)
        db.executemany(_ADD_VALUE, self.values)
        db.executemany("INSERT INTO cell (seq, ordinal, value) VALUES (?, ?, ?)", self.cells)
        for noted in (self.chunks, self.values, self.cells):
            noted.clear()

    def _passages(self) -> Iterator[tuple[int, int, int]]:
        for first, seq, text in self.long:
            for row, start in enumerate(starts(len(text)), start=first):
                yield row, seq, start

    def _passage_texts(self) -> Iterator[tuple[int, str]]:
        for first, _, text in self.long:
            for row, folded in enumerate(fold_passages(text), start=first):
                yield row, folded


def documents(
    db: sqlite3.Connection, stream: int, after: int
) -> Iterator[tuple[int, dict[str, Any], dict[str, Place]]]:
    """The next records of a stream; see `writer.BaseWriter.documents`."""
    size = 0
    with closing(db.execute(_DOCUMENTS, (stream, after, REINDEX_RECORDS))) as rows:
        for seq, text, big in rows:
            places: dict[str, Place] = orjson.loads(big) if big else {}
            yield seq, orjson.loads(text) | {
                name: read_chunks(db, place[0], place[1])
                for name, place in places.items()
                if place[4] == "string"
            }, places
            size += len(text) + sum(place[3] for place in places.values())
            if size > REINDEX_BYTES:
                break


_COUNT = """
INSERT INTO word_count (word, ordinal, n) VALUES (?, ?, ?)
ON CONFLICT (word, ordinal) DO UPDATE SET n = n + excluded.n
"""
_NOT_LEFT = "SELECT 1 FROM word_count WHERE word = ? AND ordinal = ? AND n <= 0"
_STORED = """
SELECT w.text, w.id, w.crowded FROM json_each(?) j CROSS JOIN word w ON w.text = j.value
"""
#: These ignore a row whose ordinal is NULL. `INSERT … SELECT … WHERE` from the same table takes
#: several times longer.
_ADD_SHARED_KEY = f"""
INSERT OR IGNORE INTO word_key (key, ordinal, word) VALUES (?1, CASE WHEN {SHARED_MOST} > (
  SELECT count(*) FROM word_key WHERE key = ?1 AND ordinal = ?2
) THEN ?2 ELSE add_crowded(?3) END, ?3)
"""
_ADD_KEY = f"""
INSERT OR IGNORE INTO word_key (key, ordinal, word) VALUES (?1, CASE WHEN NOT EXISTS (
  SELECT 1 FROM word_key WHERE key = ?1 AND ordinal = {EVERY_FIELD} AND word = ?3
) THEN ?2 END, ?3)
"""
_DROP_KEY = "DELETE FROM word_key WHERE key = ? AND ordinal = ? AND word = ?"
_UNUSED = """
DELETE FROM word WHERE id = ? AND NOT EXISTS (SELECT 1 FROM word_count WHERE word = word.id)
"""


def apply_words(writer: Transactions, vocabulary: Vocabulary) -> None:
    """Writes the collected changes of words."""
    db, recent = writer.db, writer.recent_words
    texts = recent.texts
    changes = list(vocabulary.changes())
    new = _add_words(db, recent, {word for word, _, _ in changes if word not in recent.ids})
    rows = sorted((recent.ids[word], ordinal, n) for word, ordinal, n in changes)
    db.executemany(_COUNT, rows)
    db.executemany(_ADD_SHARED_KEY, _key_rows(texts, ((word, EVERY_FIELD) for word in new)))
    crowded = [(word,) for word in new if word in recent.keyed]
    db.executemany("UPDATE word SET crowded = 1 WHERE id = ?", crowded)
    db.executemany(_ADD_KEY, _key_rows(texts, recent.add_keyed(rows)))
    fewer = [(word, ordinal) for word, ordinal, n in rows if n < 0]
    gone = [pair for pair in fewer if db.execute(_NOT_LEFT, pair).fetchone()]
    db.executemany("DELETE FROM word_count WHERE word = ? AND ordinal = ?", gone)
    dropped = recent.drop_keyed(gone)
    for word in {word for word, _ in gone}:
        if db.execute(_UNUSED, (word,)).rowcount:
            dropped.append((word, EVERY_FIELD))
    db.executemany(_DROP_KEY, _key_rows(texts, dropped))
    recent.drop(word for word, ordinal in dropped if ordinal == EVERY_FIELD)
    db.executemany(
        "UPDATE scope SET words = words + ? WHERE ordinal = ?",
        ((length, ordinal) for ordinal, length in vocabulary.lengths.items() if length),
    )
    vocabulary.clear()
    recent.bound()


def _add_words(db: sqlite3.Connection, recent: RecentWords, words: set[str]) -> list[int]:
    """Reads some words into `recent`; adds those that are new, and returns their ids."""
    for text, id, crowded in db.execute(_STORED, (orjson.dumps(sorted(words)).decode(),)):
        recent.add(text, id)
        if crowded:
            recent.add_crowded(id)
    texts = sorted(words - recent.ids.keys())
    (last,) = db.execute("SELECT coalesce(max(id), 0) FROM word").fetchone()
    new = list(range(last + 1, last + 1 + len(texts)))
    db.executemany("INSERT INTO word (text, id) VALUES (?, ?)", zip(texts, new))
    for text, id in zip(texts, new):
        recent.add(text, id)
    return new


def _key_rows(
    texts: dict[int, str], pairs: Iterable[tuple[int, int]]
) -> list[tuple[int, int, int]]:
    """The sorted (key, ordinal, word) of some (word, ordinal)."""
    return sorted([(key, ordinal, word) for word, ordinal in pairs for key in keys_of(texts[word])])


SHADOWS = ("data", "idx", "content", "docsize", "config")


def clear_derived(db: sqlite3.Connection) -> None:
    """Empties the full-text tables, the vocabulary, the passages and the cells."""
    for index in INDEXES:
        _renew(db, index)
    for table in ("word_key", "word_count", "word", "value", "passage", "cell"):
        db.execute(f"DELETE FROM {table}")
    db.execute("UPDATE scope SET words = 0")


def _renew(db: sqlite3.Connection, index: str) -> None:
    """Recreates a full-text table, empty.

    FTS5 cannot drop a table that it cannot open, so the table is first removed from the schema.
    """
    (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    db.execute("PRAGMA writable_schema = ON")
    try:
        db.execute("DELETE FROM sqlite_master WHERE name = ?", (index,))
    finally:
        db.execute("PRAGMA writable_schema = RESET")
    for shadow in SHADOWS:
        db.execute(f"DROP TABLE IF EXISTS {index}_{shadow}")
    db.execute(sql)
    tune(db, index)


def read_chunks(db: sqlite3.Connection, first: int, chunks: int) -> str:
    """The whole text of a large value."""
    rows = db.execute(
        "SELECT text FROM chunk WHERE id >= ? AND id < ? ORDER BY id", (first, first + chunks)
    )
    return "".join(row[0] for row in rows)


_WHERE_TEXT_IS = """
SELECT d.data, s.field FROM document d JOIN scope s ON s.ordinal = ? WHERE d.seq = ?
"""


def read_text(
    db: sqlite3.Connection, seq: int, ordinal: int, first: int | None, chunks: int | None
) -> str:
    """The whole text of a value that is indexed."""
    if first is not None:
        return read_chunks(db, first, chunks or 0)
    data, field = db.execute(_WHERE_TEXT_IS, (ordinal, seq)).fetchone()
    return searched_text(find(orjson.loads(data), field))
