"""Data derived from records: rows of words, passages and cells, kept consistent with records."""

from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from evidence.fold import fold
from evidence.pointer import top_level
from evidence.work import portions
from service.records.writing.derived import cells_of, texts_of
from service.records.engine.large import LargeValue, Place
from service.records.writing.passages import fold_passages, starts
from service.records.postgres.ddl import WHOLE
from service.records.postgres.keys import key_of, number_of
from service.records.postgres.terms import vector
from service.records.postgres.transactions import Transactions
from service.records.engine.scopes import Scopes, StreamHandle
from service.records.writing.vocabulary import Vocabulary, keys_of

BATCH_RECORDS: Final = 1_000

_DOCUMENTS = "SELECT seq, data, big FROM document WHERE seq = ANY(%s)"
_LEAVE = """
DELETE FROM {table} t USING unnest(%s::bigint[], %s::integer[]) AS d(seq, ordinal)
WHERE t.seq = d.seq AND t.ordinal = d.ordinal
"""
_COUNT = """
INSERT INTO word_count AS w (word, ordinal, n, conn)
SELECT c.word, c.ordinal, c.n, o.conn
FROM unnest(%s::text[], %s::integer[], %s::integer[]) AS c(word, ordinal, n)
JOIN scope o USING (ordinal)
ON CONFLICT (word, ordinal) DO UPDATE SET n = w.n + excluded.n RETURNING word, ordinal, n, conn
"""
_UNCOUNT = """
DELETE FROM word_count w USING unnest(%s::text[], %s::integer[]) AS d(word, ordinal)
WHERE w.word = d.word AND w.ordinal = d.ordinal AND w.n <= 0
"""
_DROP_KEYS = """
DELETE FROM word_key k
USING unnest(%s::integer[], %s::integer[], %s::text[]) AS d(key, ordinal, word)
WHERE k.key = d.key AND k.ordinal = d.ordinal AND k.word = d.word
"""


@dataclass(slots=True)
class Index:
    """A batch of rows to remove and to add, of one or several connections. See `writer.Index`."""

    writer: Transactions
    dropped: dict[int, tuple[Scopes, frozenset[str] | None]] = field(default_factory=dict)
    dropped_values: list[int] = field(default_factory=list)
    terms: list[tuple[Any, ...]] = field(default_factory=list)
    folded: list[tuple[Any, ...]] = field(default_factory=list)
    passages: list[tuple[Any, ...]] = field(default_factory=list)
    cells: list[tuple[Any, ...]] = field(default_factory=list)
    chunks: list[tuple[Any, ...]] = field(default_factory=list)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)

    def drop(self, scopes: Scopes, seq: int, fields: frozenset[str] | None = None) -> None:
        self.dropped[seq] = scopes, fields

    def drop_value(self, location: Place) -> None:
        self.dropped_values.append(location[0])

    def apply_drops(self) -> None:
        writer, seqs = self.writer, list(self.dropped)
        for batch in portions(seqs, BATCH_RECORDS):
            gone = [self._forget(*row) for row in writer.rows_of(_DOCUMENTS, batch)]
            pairs = [(seq, ordinal) for seq, ordinals in gone for ordinal in ordinals]
            columns = [list(column) for column in zip(*pairs)]
            for table in ("term", "passage", "folded", "cell") if pairs else ():
                writer.write(_LEAVE.format(table=table), *columns)
        if self.dropped_values:
            writer.write("DELETE FROM chunk WHERE value = ANY(%s)", self.dropped_values)

    def _forget(self, seq: int, text: str, big: str | None) -> tuple[int, set[int]]:
        """Subtracts the words of a record's fields; returns their ordinals."""
        scopes, fields = self.dropped[seq]
        searched = {
            name: ordinal
            for name, ordinal in scopes.searchable.items()
            if fields is None or top_level(name) in fields
        }
        data, places = whole(self.writer, text, big, set(map(top_level, searched)))
        for ordinal, value, _ in texts_of(Scopes(searched, {}), data, places):
            self.vocabulary.remove(ordinal, value)
        cells = (n for f, n in scopes.cells.items() if fields is None or top_level(f) in fields)
        return seq, {*searched.values(), *cells}

    def add_large(self, connection: int, large: LargeValue) -> Place:
        value = self.writer.fresh("value_seq")
        pieces = enumerate(large.pieces())
        self.chunks += [(value, no, connection, text.encode()) for no, text in pieces]
        return large.place(value)

    def add(
        self, stream: StreamHandle, seq: int, data: dict[str, Any], places: dict[str, Place]
    ) -> None:
        conn = stream.connection
        for ordinal, text, _ in texts_of(stream.scopes, data, places):
            self._add_text(conn, ordinal, seq, text)
        for ordinal, value in cells_of(stream, data, places):
            self.cells.append((seq, ordinal, conn, key_of(value), number_of(value)))

    def _add_text(self, conn: int, ordinal: int, seq: int, text: str) -> None:
        folded, marks = fold(text), [f"@c{conn}", f"@{ordinal}"]
        words = self.vocabulary.add(ordinal, text, folded)
        places = starts(len(text))
        if not places:
            self.terms.append((seq, ordinal, conn, words, vector(folded, marks)))
            self.folded.append((seq, ordinal, WHOLE, conn, folded))
            return
        marks.append(f"@s{seq}")
        # The fold of an ASCII text folds to itself, character by character.
        for at, passage in zip(places, fold_passages(folded if text.isascii() else text)):
            self.passages.append((seq, ordinal, at, conn, vector(passage, marks)))
            self.folded.append((seq, ordinal, at, conn, passage))

    def apply_adds(self) -> None:
        self.write()

    def write(self) -> None:
        writer = self.writer
        for into, rows in (
            ("chunk (value, no, conn, text)", self.chunks),
            ("cell (seq, ordinal, conn, key, number)", self.cells),
            ("term (seq, ordinal, conn, words, terms)", self.terms),
            ("passage (seq, ordinal, start, conn, terms)", self.passages),
            ("folded (seq, ordinal, start, conn, text)", self.folded),
        ):
            if rows:
                writer.copy(into, rows)
                rows.clear()
        self._count_words()

    def _count_words(self) -> None:
        """Writes the words in a fixed order, so that writers with common words only wait."""
        writer, rows = self.writer, sorted(self.vocabulary.changes())
        counted = writer.write(_COUNT, *map(list, zip(*rows))) if rows else []
        changes = {*rows}
        # Their counts are those that were added.
        new = [row for row in counted if row[:3] in changes]
        keys = ((key, at, word, conn) for word, at, _, conn in new for key in keys_of(word))
        writer.copy("word_key (key, ordinal, word, conn)", keys)
        if gone := [row[:2] for row in counted if row[2] <= 0]:
            writer.write(_UNCOUNT, *map(list, zip(*gone)))
            if dropped := [(key, at, word) for word, at in gone for key in keys_of(word)]:
                writer.write(_DROP_KEYS, *map(list, zip(*dropped)))
        lengths = sorted(self.vocabulary.lengths.items())
        writer.run_each(
            "UPDATE scope SET words = words + %s WHERE ordinal = %s",
            [(length, ordinal) for ordinal, length in lengths if length],
        )
        self.vocabulary.clear()


def whole(
    writer: Transactions, text: str, big: str | None, names: set[str]
) -> tuple[dict[str, Any], dict[str, Place]]:
    """(record with the named large strings, places of all large values)."""
    places: dict[str, Place] = orjson.loads(big) if big else {}
    data = orjson.loads(text)
    for name, location in places.items():
        if location[4] == "string" and name in names:
            data[name] = read_value(writer, location[0])
    return data, places


def read_value(writer: Transactions, value: int) -> str:
    """The whole text of a large value."""
    rows = writer.rows_of("SELECT text FROM chunk WHERE value = %s ORDER BY no", value)
    return b"".join(text for (text,) in rows).decode()
