"""Which full-text rows match, inside the grant: the SQL of the first search step.

A row id is ordinal << 32 | seq. The grant acts inside the statement: one range of row ids where
its scopes are one block, else a list of ordinals; time and record limits by a join to `record`.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from evidence.limits import BUDGETS
from evidence.query import Query, Term
from service.upstreams.store.ddl import SEQ_BITS, SEQ_MASK
from service.upstreams.store.filters import Condition
from service.upstreams.store.visible import StreamView, limits


@dataclass(slots=True)
class Scope:
    """The part of the index a search may touch, as SQL with parameters."""

    ordinals: frozenset[int]
    sql: str
    values: list[Any]
    join: str = ""
    conditions: list[str] = field(default_factory=list)
    bound: list[Any] = field(default_factory=list)

    @property
    def wide(self) -> bool:
        return len(self.ordinals) >= BUDGETS.wide_scopes


@dataclass(frozen=True, slots=True)
class Ranked:
    """Matching rows, best first: (row id, score); `bounded` when only the newest were ranked."""

    rows: list[tuple[int, float]]
    exhausted: bool
    bounded: bool


def scope_of(
    db: sqlite3.Connection, streams: Sequence[StreamView], filters: dict[int, Condition]
) -> Scope:
    """The scope of some granted streams; `filters` are conditions by stream id."""
    ordinals = sorted(ordinal for stream in streams for ordinal in stream.searchable)
    scope = Scope(frozenset(ordinals), *_rows_of(db, ordinals))
    if filters or any(limits(stream)[1] for stream in streams):
        _limit(scope, streams, filters)
    return scope


def rank(db: sqlite3.Connection, scope: Scope, query: Query, limit: int) -> Ranked:
    """The best `limit` rows by bm25; in a wide scope only the newest matches are ranked."""
    source, where, values = _matched(scope, query.wanted, query.excluded)
    bounded = False
    if scope.wide:
        cut = _newest(db, source, where, values)
        if cut is not None:
            bounded = True
            where += f" AND fts.rowid & {SEQ_MASK} >= ?"
            values.append(cut)
    rows = db.execute(
        f"SELECT fts.rowid, bm25(fts) AS score FROM {source} WHERE {where} "
        f"ORDER BY score, fts.rowid & {SEQ_MASK} DESC LIMIT ?",
        (*values, limit),
    ).fetchall()
    return Ranked(rows, len(rows) < limit, bounded)


def count_up_to(
    db: sqlite3.Connection, scope: Scope, pairs: Iterable[tuple[Sequence[Term], Sequence[Term]]]
) -> list[int]:
    """How many rows match each (wanted, excluded), counted no further than `word_matches`."""
    counts, bound = [], list[Any]()
    for wanted, excluded in pairs:
        source, where, values = _matched(scope, wanted, excluded)
        counts.append(f"(SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?))")
        bound += [*values, BUDGETS.word_matches]
    return list(db.execute(f"SELECT {', '.join(counts)}", bound).fetchone())


def _matched(
    scope: Scope, wanted: Sequence[Term], excluded: Sequence[Term]
) -> tuple[str, str, list[Any]]:
    """(source, condition, parameters) of the rows in scope that hold the one and not the other."""
    where = f"fts MATCH ? AND {scope.sql}"
    values: list[Any] = [expression(wanted), *scope.values]
    for clause in scope.conditions:
        where += f" AND {clause}"
    values += scope.bound
    if excluded:
        where += (
            f" AND fts.rowid & {SEQ_MASK} NOT IN (SELECT x.rowid & {SEQ_MASK} FROM fts AS x "
            f"WHERE x.fts MATCH ? AND {scope.sql.replace('fts.rowid', 'x.rowid')})"
        )
        values += [expression(excluded, joined=" OR "), *scope.values]
    return f"fts {scope.join}", where, values


def expression(terms: Sequence[Term], *, joined: str = " AND ") -> str:
    """The FTS5 expression of folded terms: each a quoted phrase, a prefix with a star."""
    return joined.join(
        '"' + " ".join(term.words) + '"' + (" *" if term.prefix else "") for term in terms
    )


def _rows_of(db: sqlite3.Connection, ordinals: Sequence[int]) -> tuple[str, list[Any]]:
    if not ordinals:
        return "0", []
    low, high = ordinals[0], ordinals[-1]
    inside = db.execute(
        "SELECT count(*) FROM scope WHERE searchable AND ordinal BETWEEN ? AND ?", (low, high)
    ).fetchone()[0]
    if inside == len(ordinals):
        return "fts.rowid BETWEEN ? AND ?", [low << SEQ_BITS, high << SEQ_BITS | SEQ_MASK]
    listed = orjson.dumps(list(ordinals)).decode()
    return f"fts.rowid >> {SEQ_BITS} IN (SELECT value FROM json_each(?))", [listed]


def _limit(scope: Scope, streams: Sequence[StreamView], filters: dict[int, Condition]) -> None:
    """Adds the join to `record` and the limits of each stream."""
    scope.join = f"CROSS JOIN record r ON r.seq = fts.rowid & {SEQ_MASK}"
    groups: dict[tuple[str, str], tuple[list[int], list[Any]]] = {}
    for stream in streams:
        clause, values = limits(stream)
        if stream.id in filters:
            clause += f" AND {filters[stream.id].sql()}"
            values += filters[stream.id].values
        key = (clause, orjson.dumps(values).decode())
        groups.setdefault(key, ([], values))[0].append(stream.id)
    either = []
    for (clause, _), (ids, values) in groups.items():
        either.append(f"(r.stream IN (SELECT value FROM json_each(?)) AND {clause})")
        scope.bound += [orjson.dumps(ids).decode(), *values]
    scope.conditions.append(f"({' OR '.join(either)})")


def _newest(db: sqlite3.Connection, source: str, where: str, values: list[Any]) -> int | None:
    """The lowest seq among the newest `rank_cap` matches, or None where there are no more."""
    cap = BUDGETS.rank_cap
    found = db.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?)", (*values, cap + 1)
    ).fetchone()[0]
    if found <= cap:
        return None
    newest = f"SELECT fts.rowid & {SEQ_MASK} AS seq FROM {source} WHERE {where} ORDER BY 1 DESC"
    row = db.execute(f"SELECT min(seq) FROM ({newest} LIMIT ?)", (*values, cap)).fetchone()
    return int(row[0])
