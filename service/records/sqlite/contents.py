"""Compares everything in a store with its records: the deepest check.

A text counts as indexed if the full-text table has its words and finds it by one of them.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import orjson

from evidence.fold import fold
from evidence.limits import CONTRACT
from evidence.pointer import find, searched_text
from evidence.manifest import StreamManifest, parse_stored
from service.records.writing.passages import fold_passages
from service.records.sqlite.ddl import EVERY_FIELD, SEQ_BITS, SEQ_MASK, row_id
from service.records.sqlite.index_check import IndexRow, finds_one
from service.records.sqlite.indexing import read_chunks
from service.records.sqlite.vectors import vector_faults
from evidence.manifest.values import sortable
from service.records.writing.vocabulary import Vocabulary, keys_of

#: (problem, query that must return nothing).
_RULES: Final = (
    (
        "records without a document",
        "SELECT 1 FROM record LEFT JOIN document USING (seq)"
        " WHERE deleted = 0 AND document.seq IS NULL",
    ),
    (
        "deleted records without a deletion time",
        "SELECT 1 FROM record LEFT JOIN tombstone USING (seq)"
        " WHERE deleted = 1 AND tombstone.seq IS NULL",
    ),
    (
        "records that are missing from the change log",
        "SELECT 1 FROM record r"
        " WHERE NOT EXISTS (SELECT 1 FROM change c WHERE c.seq = r.seq AND c.stream = r.stream)",
    ),
    (
        "streams with a wrong record count",
        "SELECT 1 FROM stream s WHERE records <>"
        " (SELECT count(*) FROM record WHERE stream = s.id AND deleted = 0)",
    ),
    (
        "full-text rows without text",
        "SELECT 1 FROM fts_docsize LEFT JOIN value USING (id) WHERE passages IS NOT NULL"
        " OR value.id IS NULL UNION ALL"
        " SELECT 1 FROM fts_passage_docsize d LEFT JOIN passage p ON p.id = d.id"
        " WHERE p.id IS NULL",
    ),
    (
        "values without a record",
        f"SELECT 1 FROM value v LEFT JOIN document d ON d.seq = v.id & {SEQ_MASK}"
        " WHERE d.seq IS NULL",
    ),
    (
        "keys of words that no record contains",
        f"SELECT 1 FROM word_key k WHERE NOT EXISTS (SELECT 1 FROM word_count c"
        f" WHERE c.word = k.word AND k.ordinal IN ({EVERY_FIELD}, c.ordinal))",
    ),
    (
        "blobs that records use but that are missing",
        "SELECT 1 FROM blob_use LEFT JOIN blob ON blob.id = blob WHERE blob.id IS NULL",
    ),
)
_DOCUMENTS = """
SELECT seq, data, big FROM document JOIN record USING (seq) WHERE stream = ? AND deleted = 0
"""
_VALUE = "SELECT first_passage, passages FROM value WHERE id = ?"
_WORDS = "SELECT text, n FROM word_count CROSS JOIN word ON word.id = word WHERE ordinal = ?"
_KEYS = f"""
SELECT c.ordinal, count(*) FROM word_key k CROSS JOIN word_count c ON c.word = k.word
WHERE k.ordinal IN ({EVERY_FIELD}, c.ordinal) GROUP BY 1
"""
_CELLS = "SELECT ordinal, value FROM cell WHERE seq = ?"


def faults_of(db: sqlite3.Connection) -> list[str]:
    """The faults of the store, in one snapshot and without a lock; empty if it is sound."""
    db.execute("BEGIN")
    try:
        pages = [text for (text,) in db.execute("PRAGMA integrity_check(5)") if text != "ok"]
        if pages:
            return [f"the file has a damaged page: {text}" for text in pages]
        return [*_broken_rules(db), *_index_faults(db), *_blob_faults(db), *vector_faults(db)]
    except sqlite3.DatabaseError as error:
        return [f"the file or an index is damaged: {error}"]


def _broken_rules(db: sqlite3.Connection) -> Iterator[str]:
    for text, query in _RULES:
        (number,) = db.execute(f"SELECT count(*) FROM ({query})").fetchone()
        if number:
            yield f"{text}: {number}"


def _index_faults(db: sqlite3.Connection) -> Iterator[str]:
    """The missing and superfluous rows of the indexes, the words and the cells of each stream."""
    streams = db.execute("SELECT id, manifest FROM stream WHERE name >= char(1)").fetchall()
    keys = dict(db.execute(_KEYS))
    for stream, text in streams:
        manifest = parse_stored(text)
        faults = _Stream(db, stream, manifest, keys).faults()
        yield from (f"{manifest.name}: {what}: {n}" for what, n in faults.items() if n > 0)


class _Stream:
    """One stream, and the problems found in its indexes so far."""

    def __init__(
        self, db: sqlite3.Connection, id: int, manifest: StreamManifest, keys: dict[int, int]
    ) -> None:
        self.db, self.id, self.manifest, self._keys = db, id, manifest, keys
        fields = "SELECT field, ordinal FROM scope WHERE stream = ?"
        self._ordinals: dict[str, int] = dict(db.execute(fields, (id,)))
        self._words = Vocabulary()
        self._values = Counter[int]()
        self._faults = Counter[str]()

    def faults(self) -> Counter[str]:
        """The number of times each problem occurs."""
        for seq, document, big in self.db.execute(_DOCUMENTS, (self.id,)):
            data = orjson.loads(document)
            for name, location in (orjson.loads(big) if big else {}).items():
                if location[4] == "string":
                    data[name] = read_chunks(self.db, location[0], location[1])
                    self._faults["truncated texts"] += len(data[name]) != location[2]
            for name in self.manifest.lexical_fields:
                if text := searched_text(find(data, name)):
                    self._check_text(row_id(self._ordinals[name], seq), text)
            self._check_cells(seq, data)
        for name in self.manifest.lexical_fields:
            self._check_field(self._ordinals[name])
        return self._faults

    def _check_text(self, row: int, text: str) -> None:
        ordinal, folded = row >> SEQ_BITS, fold(text)
        self._words.add(ordinal, text, folded)
        self._values[ordinal] += 1
        first, passages = self.db.execute(_VALUE, (row,)).fetchone() or (0, None)
        rows = [("fts", row, folded)]
        if passages is not None:
            numbers = enumerate(fold_passages(text), start=row_id(ordinal, first))
            rows = [("fts_passage", number, words) for number, words in numbers]
        self._faults["texts that search does not find"] += not all(map(self._is_indexed, rows))

    def _is_indexed(self, index_row: tuple[str, int, str]) -> bool:
        table, row, folded = index_row
        words = folded.split()
        content = self.db.execute(f"SELECT c0 FROM {table}_content WHERE id = ?", (row,)).fetchone()
        if content is None or content[0] != folded:
            return False
        return finds_one(self.db, IndexRow(table, row), words)

    def _check_cells(self, seq: int, data: dict[str, Any]) -> None:
        cells = {
            self._ordinals[name]: sortable(find(data, name), self.manifest.paths[name])
            for name in self.manifest.cell_fields
        }
        cells = {ordinal: value for ordinal, value in cells.items() if value is not None}
        stored = dict(self.db.execute(_CELLS, (seq,)))
        self._faults["records with wrong values for filters"] += cells != stored

    def _check_field(self, ordinal: int) -> None:
        """Compares the counts of a field with those of its texts."""
        most = CONTRACT.query_chars
        counts = {word: n for word, n in self._words.added[ordinal].items() if len(word) <= most}
        self._faults["fields with wrong word counts"] += counts != dict(
            self.db.execute(_WORDS, (ordinal,))
        )
        keys = sum(len(keys_of(word)) for word in counts)
        self._faults["fields with wrong word keys"] += keys != self._keys.get(ordinal, 0)
        ids = (ordinal << SEQ_BITS, ordinal << SEQ_BITS | SEQ_MASK)
        count = "SELECT count(*) FROM value WHERE id BETWEEN ? AND ?"
        indexed = self.db.execute(count, ids).fetchone()[0]
        self._faults["indexed texts that no record contains"] += indexed - self._values[ordinal]
        length = self.db.execute("SELECT words FROM scope WHERE ordinal = ?", (ordinal,))
        wrong = length.fetchone()[0] != self._words.lengths[ordinal]
        self._faults["fields with a wrong length"] += wrong


def _blob_faults(db: sqlite3.Connection) -> Iterator[str]:
    for id, size, sha256 in db.execute("SELECT id, size_bytes, sha256 FROM blob").fetchall():
        digest, length = hashlib.sha256(), 0
        for (part,) in db.execute("SELECT data FROM blob_part WHERE blob = ? ORDER BY no", (id,)):
            digest.update(part)
            length += len(part)
        if (length, digest.hexdigest()) != (size, sha256):
            yield f"the bytes of blob {sha256} differ from the imported bytes"
