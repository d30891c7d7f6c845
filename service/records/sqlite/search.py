"""The full-text index as search asks for it: words and their counts, rows, passages, neighbours.

A row id is ordinal << 32 | seq in `fts`, and ordinal << 32 | passage number in `fts_passage`, so
the grant acts inside the statement: one range of row ids if its fields are one block, else a list.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from service.records.engine import Found, Scope, Spellings
from service.records.sqlite.conditions import of_records
from service.records.sqlite.ddl import SEQ_BITS, SEQ_MASK
from service.records.sqlite.expressions import expression

WORDS_MOST: Final = 5_000
#: The greatest code point: behind every word that begins with a prefix.
_LAST: Final = "\U0010ffff"

_STATISTICS = """
SELECT
  (SELECT coalesce(sum(records), 0) FROM stream WHERE id IN (SELECT value FROM json_each(?))),
  (SELECT coalesce(sum(words), 0) FROM scope WHERE ordinal IN (SELECT value FROM json_each(?)))
"""
_LIKE = """
SELECT w.text, sum(c.n) FROM word w JOIN word_count c ON c.word = w.id
WHERE w.text >= ? AND w.text < ? AND {fields} GROUP BY w.id LIMIT ?
"""
_COUNTS = """
SELECT w.text, sum(c.n) FROM json_each(?) j JOIN word w ON w.text = j.value
JOIN word_count c ON c.word = w.id WHERE {fields} GROUP BY w.id
"""
#: One and two places before and after a record in its thread, by index.
_SIDES = """
SELECT * FROM (SELECT r.seq, {away} FROM record r WHERE r.stream = ? AND r.thread = ?
  AND (r.place, r.record_key) {beyond} (?, ?) AND {selected}
  ORDER BY r.place {order}, r.record_key {order} LIMIT 2)
"""


class SearchVerbs:
    """The verbs of search of a snapshot. See `engine.Snapshot`."""

    db: sqlite3.Connection

    def statistics(self, streams: Sequence[int], fields: Sequence[int]) -> tuple[int, int]:
        row = self.db.execute(_STATISTICS, (_json(streams), _json(fields))).fetchone()
        return row[0], row[1]

    def words_like(self, fields: Sequence[int], prefix: str) -> dict[str, int]:
        inside, values = self._inside(fields, "c.ordinal")
        sql = _LIKE.format(fields=inside)
        return dict(self.db.execute(sql, (prefix, prefix + _LAST, *values, WORDS_MOST)))

    def word_counts(self, fields: Sequence[int], words: Iterable[str]) -> dict[str, int]:
        inside, values = self._inside(fields, "c.ordinal")
        return dict(self.db.execute(_COUNTS.format(fields=inside), (_json(list(words)), *values)))

    def letters(self) -> str:
        row = self.db.execute("SELECT value FROM meta WHERE key = 'letters'").fetchone()
        return "" if row is None else str(row[0])

    def rows(
        self,
        scope: Scope,
        alternatives: Sequence[Sequence[Spellings]],
        limit: int,
        *,
        newest: bool = False,
    ) -> list[Found]:
        if not scope.fields:
            return []
        found: list[Found] = []
        for number, groups in enumerate(alternatives):
            match = conjunction(groups)
            for passages in (False, True):
                found += self._rows(scope, number, match, limit, passages=passages, newest=newest)
        return found

    def _rows(
        self, scope: Scope, number: int, match: str, limit: int, *, passages: bool, newest: bool
    ) -> Iterator[Found]:
        """Rows of one table for one expression."""
        blocks = [scope.fields]
        if newest and len(scope.fields) > 1:
            blocks = [(ordinal,) for ordinal in scope.fields]
        for fields in blocks:
            yield from self._block(scope, fields, number, match, limit, passages, newest)

    def _block(
        self,
        scope: Scope,
        fields: Sequence[int],
        number: int,
        match: str,
        limit: int,
        passages: bool,
        newest: bool,
    ) -> Iterator[Found]:
        table = "fts_passage" if passages else "fts"
        inside, values = self._inside(fields, f"{table}.rowid", ids=True)
        seq = "p.seq" if passages else f"{table}.rowid & {SEQ_MASK}"
        joined, where = "", f"{table} MATCH ? AND {inside}"
        start = "p.start" if passages else "NULL"
        if passages:
            joined = f"CROSS JOIN passage p ON p.id = {table}.rowid"
        if scope.limited:
            joined += f" CROSS JOIN record r ON r.seq = {seq}"
            limits, bound = self._selected(scope)
            where += f" AND {limits}"
            values += bound
        order = f"ORDER BY {table}.rowid DESC" if newest else ""
        rows = self.db.execute(
            f"SELECT {seq}, {table}.rowid >> {SEQ_BITS}, d.sz, {start} FROM {table} {joined} "
            f"JOIN {table}_docsize d ON d.id = {table}.rowid WHERE {where} {order} LIMIT ?",
            (match, *values, limit),
        )
        for record, ordinal, size, place in rows:
            yield Found(number, record, ordinal, _varint(size), place)

    def holding(self, scope: Scope, spellings: Spellings, seqs: Iterable[int]) -> set[int]:
        listed = _json(list(seqs))
        match = conjunction([spellings])
        found: set[int] = set()
        inside, values = self._inside(scope.fields, "fts.rowid", ids=True)
        rows = self.db.execute(
            f"SELECT DISTINCT fts.rowid & {SEQ_MASK} FROM fts WHERE fts MATCH ? AND {inside} "
            f"AND fts.rowid & {SEQ_MASK} IN (SELECT value FROM json_each(?))",
            (match, *values, listed),
        )
        found.update(seq for (seq,) in rows)
        inside, values = self._inside(scope.fields, "fts_passage.rowid", ids=True)
        rows = self.db.execute(
            "SELECT DISTINCT p.seq FROM fts_passage "
            "CROSS JOIN passage p ON p.id = fts_passage.rowid "
            f"WHERE fts_passage MATCH ? AND {inside} AND p.seq IN (SELECT value FROM json_each(?))",
            (match, *values, listed),
        )
        found.update(seq for (seq,) in rows)
        return found

    def passages_with(
        self, seq: int, ordinal: int, groups: Sequence[Spellings], limit: int
    ) -> list[int]:
        place = self.db.execute(
            "SELECT first_passage, passages FROM value WHERE id = ?", (ordinal << SEQ_BITS | seq,)
        ).fetchone()
        if place is None or place[0] is None:
            return []
        first = ordinal << SEQ_BITS | place[0]
        rows = self.db.execute(
            "SELECT p.start FROM fts_passage CROSS JOIN passage p ON p.id = fts_passage.rowid "
            "WHERE fts_passage MATCH ? AND fts_passage.rowid BETWEEN ? AND ? LIMIT ?",
            (conjunction(groups), first, first + place[1] - 1, limit),
        )
        return [start for (start,) in rows]

    def neighbours(self, scope: Scope, seqs: Sequence[int]) -> dict[int, dict[int, int]]:
        rows = self.db.execute(
            "SELECT seq, stream, thread, place, record_key FROM record "
            "WHERE seq IN (SELECT value FROM json_each(?)) "
            "AND thread IS NOT NULL AND place IS NOT NULL",
            (_json(seqs),),
        ).fetchall()
        by_stream = {one.stream: of_records(self.db, one) for one in scope.selections}
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for seq, stream, thread, place, key in rows:
            if stream not in by_stream:
                continue
            selected = by_stream[stream]
            for beyond, order in (("<", "DESC"), (">", "ASC")):
                sql = _SIDES.format(away=0, beyond=beyond, order=order, selected=selected.sql())
                near = self.db.execute(sql, (stream, thread, place, key, *selected.values))
                for away, (other, _) in enumerate(near, start=1):
                    found[seq][other] = away
        return found

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
        return f"{ordinal} IN (SELECT value FROM json_each(?))", [_json(fields)]

    def _is_block(self, fields: Sequence[int]) -> bool:
        """Whether no other searchable field has an ordinal between these."""
        if len(fields) == 1:
            return True
        (inside,) = self.db.execute(
            "SELECT count(*) FROM scope WHERE searchable AND ordinal BETWEEN ? AND ?",
            (fields[0], fields[-1]),
        ).fetchone()
        return bool(inside == len(fields))

    def _selected(self, scope: Scope) -> tuple[str, list[Any]]:
        """(condition, parameters) that a record `r` is in one of the selections."""
        either, values = [], list[Any]()
        for selection in scope.selections:
            found = of_records(self.db, selection)
            either.append(f"({found.sql()})")
            values += found.values
        return f"({' OR '.join(either) or '0'})", values


def conjunction(groups: Sequence[Spellings]) -> str:
    """The FTS5 expression that a row holds one term of every group."""
    return " AND ".join(f"({expression(group, joined=' OR ')})" for group in groups)


def _varint(blob: bytes) -> int:
    """The first number of a row of the table of sizes: SQLite's own variable-length integer."""
    value = 0
    for byte in blob[:9]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value


def _json(values: Any) -> str:
    return orjson.dumps(list(values)).decode()
