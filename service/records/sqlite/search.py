"""The full-text index as search uses it: words and their counts, rows, passages and neighbors.

A row id is ordinal << 32 | seq in `fts`, and ordinal << 32 | passage number in `fts_passage`, so
the grant acts inside the statement: one range of row ids if its fields are one block, else a list.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import orjson

from evidence.question import Term
from service.records.engine import (
    LAST,
    WORDS_MOST,
    PassageKey,
    Rows,
    Scope,
    Size,
    Spellings,
    ValueText,
)
from service.records.engine.later import Later, promised
from service.records.engine.selections import FIELDS_APART_MOST
from service.records.writing.passages import STRIDE
from service.records.sql.conditions import Condition
from service.records.sql.shares import share, shared
from service.records.sql.snapshot import SharedMethods
from service.records.sqlite.vectors import SqliteVectors
from service.records.sqlite.ddl import EVERY_FIELD, SEQ_BITS, SEQ_MASK

#: From this many matching records on, candidates are probed one by one instead of listed first.
FEW: Final = 2_000
#: The tables of whole values and of the passages of long ones.
TABLES: Final = ("fts", "fts_passage")
#: Up to so many matching rows, many limited fields are searched at once for the newest ones.
AT_ONCE_MOST: Final = 20_000

_STATISTICS = """
SELECT
  (SELECT coalesce(sum(records), 0) FROM stream WHERE id IN (SELECT value FROM json_each(?))),
  (SELECT coalesce(sum(words), 0) FROM scope WHERE ordinal IN (SELECT value FROM json_each(?)))
"""
#: How many values of some fields hold a word `w`.
_COUNT = "(SELECT sum(c.n) FROM word_count c WHERE c.word = w.id AND {fields})"
_LIKE = """
SELECT json_group_array(text) FROM (SELECT w.text FROM word w WHERE w.text >= ? AND w.text < ?
{only} LIMIT ?)
"""
#: Takes most of the time, so it is left out where there are not too many words without it.
_INSIDE = "AND EXISTS (SELECT 1 FROM word_count c WHERE c.word = w.id AND {fields})"
_COUNTS = f"""
SELECT w.text, {_COUNT} AS total FROM json_each(?) j CROSS JOIN word w ON w.text = j.value
WHERE total > 0
"""
_BY_KEY = f"""
SELECT w.text FROM (SELECT DISTINCT word FROM (
    SELECT k.word FROM json_each(?1) j CROSS JOIN word_key k
    ON k.key = j.value AND k.ordinal = {EVERY_FIELD}
    WHERE EXISTS (SELECT 1 FROM word_count c WHERE c.word = k.word AND {{shared}})
    UNION ALL SELECT k.word FROM json_each(?1) j CROSS JOIN word_key k
    ON k.key = j.value WHERE {{own}}
  ) LIMIT ?) f CROSS JOIN word w ON w.id = f.word
"""
#: The values of some records in some fields: folded texts of short ones, passages of long ones.
_TEXTS = f"""
SELECT r.seq, s.ordinal, coalesce(v.passages, 0), coalesce(c.c0, ''), v.first_passage
FROM json_each(?) j CROSS JOIN record r ON r.seq = j.value
CROSS JOIN scope s ON s.stream = r.stream AND {{fields}}
CROSS JOIN value v ON v.id = s.ordinal << {SEQ_BITS} | r.seq
LEFT JOIN fts_content c ON c.id = v.id
"""
_LONG = f"""
SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM passage
  WHERE id BETWEEN value << {SEQ_BITS} AND value << {SEQ_BITS} | {SEQ_MASK})
"""
_PASSAGES = """
SELECT c.id, c.c0 FROM json_each(?) j CROSS JOIN fts_passage_content c ON c.id = j.value
"""
_SIZES = f"""
SELECT json_group_array(v.id & {SEQ_MASK}), json_group_array(coalesce(v.passages, 0)),
  json_group_array(coalesce(v.words, 0))
FROM json_each(?) j CROSS JOIN value v ON v.id = j.value
"""


class SearchMethods(SharedMethods):
    """The methods of search of a snapshot. See `engine.Snapshot`."""

    db: sqlite3.Connection
    compared = "value"
    live = "{}.deleted = 0"
    in_list = "{} IN (SELECT value FROM json_each(?))"
    has_vectors = SqliteVectors.exist
    coverage = "SELECT stream, records FROM vector_stream WHERE set_id = ? AND {}"
    array = "(SELECT json_group_array(seq) FROM ({}))"
    _blocks: dict[tuple[int, int, int], bool]
    _small: dict[tuple[Any, ...], bool]
    #: The numbers of the first passages of long values that `texts` gave, by record and ordinal.
    _first_passages: dict[tuple[int, int], int]

    def later(self, sql: str, *values: Any) -> Later[list[tuple[Any, ...]]]:
        return Later(partial(self.run, sql, *values))

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()

    def list_parameter(self, values: Iterable[Any]) -> str:
        return orjson.dumps(list(values)).decode()

    def is_small(self, cells: str, values: list[Any]) -> bool:
        key = (cells, *values)
        if key not in self._small:
            sql = f"SELECT count(*) FROM (SELECT 1 FROM cell c WHERE {cells} LIMIT ?)"
            ((matches,),) = self.run(sql, *values, FEW + 1)
            self._small[key] = matches <= FEW
        return self._small[key]

    def unpacked(self, array: str) -> list[int | None]:
        numbers: list[int | None] = orjson.loads(array)
        return numbers

    def statistics(self, streams: Sequence[int], fields: Sequence[int]) -> Later[tuple[int, int]]:
        lists = self.list_parameter(streams), self.list_parameter(fields)
        return self.later(_STATISTICS, *lists).then(lambda rows: rows[0])

    @promised
    def words_like(
        self, fields: Sequence[int], prefixes: Sequence[str], most: int = WORDS_MOST
    ) -> list[str]:
        inside, values = self._inside(fields, "c.ordinal")
        only, matches = _LIKE.format(only=_INSIDE.format(fields=inside)), list[str]()
        for prefix in prefixes:
            between = prefix, prefix + LAST
            rows = self.db.execute(_LIKE.format(only=""), (*between, most))
            words = orjson.loads(rows.fetchone()[0])
            if len(words) == most:
                rows = self.db.execute(only, (*between, *values, most))
                words = orjson.loads(rows.fetchone()[0])
            matches += words
        return matches

    def word_counts(self, fields: Sequence[int], words: Iterable[str]) -> Later[dict[str, int]]:
        inside, values = self._inside(fields, "c.ordinal")
        sql = _COUNTS.format(fields=inside)
        return self.later(sql, *values, self.list_parameter(words)).then(dict)

    def words_by_key(
        self, fields: Sequence[int], keys: Iterable[int], most: int
    ) -> Later[list[str]]:
        scanned = "+" if len(fields) > FIELDS_APART_MOST else ""
        shared, values = self._inside(fields, f"{scanned}c.ordinal")
        own, _ = self._inside(fields, f"{scanned}k.ordinal")
        sql = _BY_KEY.format(shared=shared, own=own)
        rows = self.later(sql, self.list_parameter(keys), *values, *values, most)
        return rows.then(lambda rows: [word for (word,) in rows])

    @promised
    def rows(
        self, scope: Scope, groups: Sequence[Spellings], limit: int, *, newest: bool = False
    ) -> Rows:
        if not scope.fields:
            return Rows(([], []), ([], [], []))
        match = conjunction(groups)
        if not newest or (match and not scope.apart):
            return self._rows_at_once(scope, match, limit, newest)
        is_wide = len(scope.fields) > FIELDS_APART_MOST
        if match and is_wide and self._matches_few(scope, match):
            rows = self._rows_at_once(scope, match, -1, newest)
            return shared(scope.fields, rows.short, rows.passages, limit)
        return self._newest_by_field(scope, match, limit)

    def _matches_few(self, scope: Scope, match: str) -> bool:
        """Whether few rows of all fields match, in all records."""
        remaining = AT_ONCE_MOST
        for table in TABLES:
            fields, values = self._inside(scope.fields, f"{table}.rowid", ids=True)
            where = f"{table} MATCH ? AND {fields}"
            sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {where} LIMIT ?)"
            ((matches,),) = self.run(sql, match, *values, remaining + 1)
            remaining -= matches
        return remaining >= 0

    def _rows_at_once(self, scope: Scope, match: str, limit: int, newest: bool) -> Rows:
        selected = self.selected_by_any(scope.selections) if scope.limited else None
        short, passages = (
            self._rows(scope.fields, match, table, selected=selected, newest=newest, limit=limit)
            for table in TABLES
        )
        cut = limit in (len(short[0]), len(passages[0]))
        return Rows((short[0], short[1]), (passages[0], passages[1], passages[2]), cut)

    def _newest_by_field(self, scope: Scope, match: str, limit: int) -> Rows:
        """The newest rows of each field, which share the limit."""
        short, passages = (list[int](), list[int]()), (list[int](), list[int](), list[int]())
        long = {ordinal for (ordinal,) in self.run(_LONG, self.list_parameter(scope.fields))}
        cut, selected = False, None
        for number, ordinal in enumerate(scope.fields):
            most = share(limit, len(short[0]), len(scope.fields) - number)
            if scope.limited:
                selected = self.selected(scope.selection_of(ordinal))
            for table, columns in zip(TABLES, (short, passages)):
                if table == "fts" or ordinal in long:
                    rows = self._rows(
                        (ordinal,), match, table, selected=selected, newest=True, limit=most
                    )
                    for column, values in zip(columns, rows):
                        column += values
                    cut |= len(rows[0]) == most
        return Rows(short, passages, cut)

    def _rows(
        self,
        fields: Sequence[int],
        match: str,
        table: str,
        *,
        selected: Condition | None = None,
        records: str | None = None,
        newest: bool = False,
        limit: int = -1,
    ) -> list[list[int]]:
        """Rows of one table by columns: records, ordinals, and starts of passages.

        `selected` is a condition on `record r`, `records` is a list of them. Each column comes as a
        JSON array: a thread may lose its turn after every row that it reads.
        """
        inside, values = self._inside(fields, f"{table}.rowid", ids=True)
        seq, joined = f"fts.rowid & {SEQ_MASK}", ""
        columns = [seq, f"fts.rowid >> {SEQ_BITS}"]
        if table == "fts_passage":
            columns, seq = ["p.seq", f"p.id >> {SEQ_BITS}", "p.start"], "p.seq"
            joined = "CROSS JOIN passage p ON p.id = fts_passage.rowid"
        where = f"{table} MATCH ? AND {inside}" if match else inside
        if selected is not None:
            joined += f" CROSS JOIN record r ON r.seq = {seq}"
            where += f" AND {selected.sql()}"
            values += selected.values
        if records is not None:
            where += f" AND {self.in_list.format(seq)}"
            values.append(records)
        newer = f"{table}.rowid" if len(fields) == 1 else f"{table}.rowid & {SEQ_MASK}"
        order = f"ORDER BY {newer} DESC" if newest else ""
        aliases = ", ".join(f"{column} AS c{number}" for number, column in enumerate(columns))
        source = f"{table} {joined} WHERE {where} {order} LIMIT ?"
        if selected is None and records is None:  # only the rows that are kept are joined
            source = f"(SELECT rowid FROM {table} WHERE {where} {order} LIMIT ?) {table} {joined}"
        rows = f"SELECT {aliases} FROM {source}"
        arrays = ", ".join(f"json_group_array(c{number})" for number in range(len(columns)))
        cursor = self.db.execute(
            f"SELECT {arrays} FROM ({rows})", (*filter(None, [match]), *values, limit)
        )
        return [orjson.loads(column) for column in cursor.fetchone()]

    def sizes(self, values: Sequence[tuple[int, int]]) -> Later[list[Size]]:
        ids = self.list_parameter(ordinal << SEQ_BITS | seq for seq, ordinal in values)
        return self.later(_SIZES, ids).then(lambda rows: list(zip(*map(orjson.loads, rows[0]))))

    @promised
    def holding(self, scope: Scope, spellings: Spellings, seqs: Iterable[int]) -> Rows:
        match, records = conjunction([spellings]), self.list_parameter(seqs)
        short, passages = (
            self._rows(scope.fields, match, table, records=records)
            for table in ("fts", "fts_passage")
        )
        return Rows((short[0], short[1]), (passages[0], passages[1], passages[2]))

    @promised
    def passages_with(
        self, seq: int, ordinal: int, groups: Sequence[Spellings], limit: int | None
    ) -> list[int]:
        passages = self.db.execute(
            "SELECT first_passage, passages FROM value WHERE id = ?", (ordinal << SEQ_BITS | seq,)
        ).fetchone()
        if passages is None or passages[0] is None:
            return []
        first = ordinal << SEQ_BITS | passages[0]
        rows = self.db.execute(
            "SELECT p.start FROM fts_passage CROSS JOIN passage p ON p.id = fts_passage.rowid "
            "WHERE fts_passage MATCH ? AND fts_passage.rowid BETWEEN ? AND ? LIMIT ?",
            (conjunction(groups), first, first + passages[1] - 1, -1 if limit is None else limit),
        )
        return [start for (start,) in rows]

    def texts(self, fields: Sequence[int], seqs: Sequence[int]) -> Later[list[ValueText]]:
        inside, values = self._inside(fields, "s.ordinal")
        sql = _TEXTS.format(fields=inside)
        return self.later(sql, self.list_parameter(seqs), *values).then(self._texts)

    def _texts(self, rows: Sequence[tuple[Any, ...]]) -> list[ValueText]:
        self._first_passages |= {row[:2]: row[4] for row in rows if row[2]}
        return [row[:4] for row in rows]

    @promised
    def passages(self, places: Sequence[PassageKey]) -> dict[PassageKey, str]:
        if not places:
            return {}
        first = self._first_passages
        ids = {
            ordinal << SEQ_BITS | first[seq, ordinal] + start // STRIDE: (seq, ordinal, start)
            for seq, ordinal, start in places
            if (seq, ordinal) in first  # a damaged store may lack the value
        }
        return {ids[id]: text for id, text in self.run(_PASSAGES, self.list_parameter(ids))}

    def _inside(
        self, fields: Sequence[int], column: str, *, ids: bool = False
    ) -> tuple[str, list[Any]]:
        """(condition, parameters) that ordinals, or row ids that begin with them, are fields."""
        if not fields:
            return "0", []
        low, high = fields[0], fields[-1]
        if self._is_block(fields):
            if ids:
                low, high = low << SEQ_BITS, high << SEQ_BITS | SEQ_MASK
            return f"{column} BETWEEN ? AND ?", [low, high]
        ordinal = f"({column} >> {SEQ_BITS})" if ids else column
        return f"{ordinal} IN (SELECT value FROM json_each(?))", [self.list_parameter(fields)]

    def _is_block(self, fields: Sequence[int]) -> bool:
        """Whether no other searchable field has an ordinal between these; remembered."""
        if len(fields) == 1:
            return True
        key = (fields[0], fields[-1], len(fields))
        if key not in self._blocks:
            (inside,) = self.db.execute(
                "SELECT count(*) FROM scope WHERE searchable AND ordinal BETWEEN ? AND ?", key[:2]
            ).fetchone()
            self._blocks[key] = inside == len(fields)
        return self._blocks[key]


def expression(terms: Sequence[Term], *, joined: str = " AND ") -> str:
    """The FTS5 expression of folded terms: each a quoted phrase, a prefix with a star."""
    return joined.join(
        '"' + " ".join(term.words) + '"' + (" *" if term.prefix else "") for term in terms
    )


def conjunction(groups: Sequence[Spellings]) -> str:
    """The FTS5 expression that a row holds one term of every group."""
    return " AND ".join(f"({expression(group, joined=' OR ')})" for group in groups)
