"""Which full-text rows match, inside the grant: the SQL of the first search step.

The grant acts inside the statement: one range of row ids where its scopes are one block, else a
list of ordinals; time and record limits by a join to `record`. Where too many rows match to rank
them all, the newest are ranked: found in the window of the newest records if it holds enough of
them, which costs the same in any store, else in the whole index.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import orjson

from evidence.limits import BUDGETS
from evidence.query import Query, Term
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from service.records.sqlite import recent_index, terms
from service.records.sqlite.ddl import (
    CONNECTION_BLOCK,
    ORDINAL_BITS,
    ORDINAL_MASK,
    SEQ_BITS,
    SEQ_MASK,
)
from service.records.engine import Selection
from service.records.sqlite.conditions import of_limit, of_tests
from service.records.sqlite.terms import Bounded, Wanted, expression
from service.records.view import StreamView, View

SCOPES_REMEMBERED = 64
#: How many more of the newest rows are looked through than are expected to do.
SLACK = 1.25

_ids = attrgetter("id")


@dataclass(frozen=True, slots=True)
class Table:
    """A full-text table, and how its row ids tell ordinal and seq, as SQL to format with a row."""

    name: str
    ordinal: str
    seq: str


ALL = Table("fts", f"({{}} >> {SEQ_BITS})", f"({{}} & {SEQ_MASK})")
NEWEST = Table("fts_recent", f"({{}} & {ORDINAL_MASK})", f"({{}} >> {ORDINAL_BITS})")


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the index a search may touch; `block` where its ordinals are all in a range.

    `limit` holds for the granted records `r` of its streams, with the parameters `bound`. Up to
    `ranked_whole` matches are all ranked, any number of them where it is None. The streams are of
    so many `sources`; no record has more than `widest` rows.
    """

    ordinals: frozenset[int]
    block: tuple[int, int] | None
    listed: str
    ranked_whole: int | None
    sources: int
    widest: int
    limit: str = ""
    bound: tuple[Any, ...] = ()

    def rows(self, table: Table, row: str) -> tuple[str, list[Any]]:
        """(condition, parameters) of the rows of a table that are in scope; `row` names its id."""
        if not self.ordinals:
            return "0", []
        if self.block is None:
            inside = "IN (SELECT value FROM json_each(?))"
            return f"{table.ordinal.format(row)} {inside}", [self.listed]
        low, high = self.block
        if table is ALL:
            return f"{row} BETWEEN ? AND ?", [low << SEQ_BITS, high << SEQ_BITS | SEQ_MASK]
        return f"{table.ordinal.format(row)} BETWEEN ? AND ?", [low, high]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Matching rows, best first: (row id, score); `bounded` when only the newest were ranked.

    `wanted` are the terms they were found by, `cut` the prefixes of which not every word was.
    """

    rows: list[tuple[int, float]]
    exhausted: bool
    bounded: bool
    wanted: tuple[Wanted, ...] = ()
    cut: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class _Matches:
    """The rows of one table in scope that hold some words and not others, as SQL."""

    table: Table
    source: str
    where: str
    values: list[Any]

    def more_than(self, snapshot: Snapshot, count: int) -> bool:
        return self.counted(snapshot, count + 1) > count

    def counted(self, snapshot: Snapshot, most: int = -1) -> int:
        """How many there are, counted no further than `most`."""
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {self.source} WHERE {self.where} LIMIT ?)"
        return int(snapshot.db.execute(sql, (*self.values, most)).fetchone()[0])

    def best(self, snapshot: Snapshot, limit: int, *, since: int = 0) -> list[tuple[int, float]]:
        """The best of those with a seq of `since` or more."""
        name, seq = self.table.name, self.table.seq.format(f"{self.table.name}.rowid")
        where, values = self._since(since)
        return snapshot.db.execute(
            f"SELECT {name}.rowid, bm25({name}) AS score FROM {self.source} WHERE {where} "
            f"ORDER BY score, {seq} DESC LIMIT ?",
            (*values, limit),
        ).fetchall()

    def newest(self, snapshot: Snapshot, count: int, *, since: int = 0) -> int | None:
        """The seq of the last of the newest `count` rows; None where there are not as many."""
        seq = self.table.seq.format(f"{self.table.name}.rowid")
        order = f"{self.table.name}.rowid" if self.table is NEWEST else seq
        where, values = self._since(since)
        row = snapshot.db.execute(
            f"SELECT {seq} FROM {self.source} WHERE {where} ORDER BY {order} DESC LIMIT 1 OFFSET ?",
            (*values, count - 1),
        ).fetchone()
        return None if row is None else int(row[0])

    def _since(self, since: int) -> tuple[str, list[Any]]:
        if not since:
            return self.where, self.values
        name = self.table.name
        if self.table is NEWEST:
            return f"{self.where} AND {name}.rowid >= ?", [*self.values, since << ORDINAL_BITS]
        return f"{self.where} AND {self.table.seq.format(f'{name}.rowid')} >= ?", [
            *self.values,
            since,
        ]


def scope_of(
    snapshot: Snapshot,
    view: View,
    streams: Sequence[StreamView],
    filters: dict[int, Selection],
) -> Scope:
    """The scope of some streams of a view; `filters` are conditions by stream id.

    Remembered with the view, which ends with the next commit.
    """
    if filters:
        return _compile(snapshot, streams, filters)
    key = () if streams is view.streams else tuple(map(_ids, streams))
    known = view.remembered.get(key)
    if known is None:
        if len(view.remembered) >= SCOPES_REMEMBERED:
            view.remembered.clear()
        known = view.remembered[key] = _compile(snapshot, streams, filters)
    return known


def rank(snapshot: Snapshot, scope: Scope, query: Query, limit: int) -> Ranked:
    """The best `limit` rows by bm25, of all matches or, where those are many, of the newest."""
    wanted = _bound(snapshot, scope, query.wanted)
    excluded = terms.whole(_bound(snapshot, scope, query.excluded))
    matches = _matches(ALL, scope, wanted.terms, excluded)
    most = scope.ranked_whole
    bounded = most is not None and matches.more_than(snapshot, most)
    if bounded:
        newest = _matches(NEWEST, scope, wanted.terms, excluded)
        rows = _best_of_newest(snapshot, newest, matches, limit)
    else:
        rows = matches.best(snapshot, limit)
    return Ranked(rows, len(rows) < limit, bounded, wanted.terms, wanted.cut)


def count_up_to(
    snapshot: Snapshot, scope: Scope, pairs: Iterable[tuple[Sequence[Term], Sequence[Term]]]
) -> list[int]:
    """How many rows match each (wanted, excluded), counted no further than `word_matches`."""
    counts = []
    for wanted, excluded in pairs:
        asked = _bound(snapshot, scope, wanted).terms, _bound(snapshot, scope, excluded).terms
        counts.append(_matches(ALL, scope, *asked).counted(snapshot, BUDGETS.word_matches))
    return counts


def _bound(snapshot: Snapshot, scope: Scope, wanted: Sequence[Term]) -> Bounded:
    """The terms, with prefixes of many words replaced by words that occur in scope."""

    def occurs(term: Term) -> bool:
        return _matches(ALL, scope, (term,), ()).more_than(snapshot, 0)

    return terms.bound(snapshot.db, ALL.name, wanted, occurs)


def _best_of_newest(
    snapshot: Snapshot, window: _Matches, matches: _Matches, limit: int
) -> list[tuple[int, float]]:
    """The best of the newest `rank_newest` matches: the same rows, wherever they are found.

    `window` are the matches in the window of the newest records.
    """
    count = BUDGETS.rank_newest
    if recent_index.whole(snapshot.db):
        since = window.newest(snapshot, count)
        if since is not None:
            found = window.best(snapshot, limit, since=since)
            return [(recent_index.row_of(row), score) for row, score in found]
    guess = _guess(snapshot, count, matches.counted(snapshot))
    since = matches.newest(snapshot, count, since=guess) or matches.newest(snapshot, count)
    return matches.best(snapshot, limit, since=since or 0)


def _guess(snapshot: Snapshot, count: int, matching: int) -> int:
    """A seq from which on the newest `count` are likely to be, if rows match evenly."""
    (newest,) = snapshot.db.execute("SELECT max(seq) FROM record").fetchone()
    return max(0, int(newest * (1 - SLACK * count / matching)))


def _matches(
    table: Table, scope: Scope, wanted: Sequence[Wanted], excluded: Sequence[Wanted]
) -> _Matches:
    name, row = table.name, f"{table.name}.rowid"
    inside, inside_values = scope.rows(table, row)
    source, where = name, f"{name} MATCH ? AND {inside}"
    values: list[Any] = [expression(wanted), *inside_values]
    if scope.limit:
        source += f" CROSS JOIN record r ON r.seq = {table.seq.format(row)}"
        where += f" AND {scope.limit}"
        values += scope.bound
    if excluded:
        inside, _ = scope.rows(table, "x.rowid")
        where += (
            f" AND {table.seq.format(row)} NOT IN (SELECT {table.seq.format('x.rowid')} "
            f"FROM {name} AS x WHERE x.{name} MATCH ? AND {inside})"
        )
        values += [expression(excluded, joined=" OR "), *inside_values]
    return _Matches(table, source, where, values)


def _compile(
    snapshot: Snapshot, streams: Sequence[StreamView], filters: dict[int, Selection]
) -> Scope:
    ordinals = sorted(ordinal for stream in streams for ordinal in stream.searchable)
    block, listed = _block(snapshot, ordinals), orjson.dumps(ordinals).decode()
    limit, bound = "", tuple[Any, ...]()
    if filters or any(stream.limit for stream in streams):
        limit, bound = _limit(snapshot, streams, filters)
    return Scope(
        frozenset(ordinals),
        block,
        listed,
        _ranked_whole(ordinals),
        sources=len({stream.connection_id for stream in streams}),
        widest=max((len(stream.searchable) for stream in streams), default=0),
        limit=limit,
        bound=bound,
    )


def _ranked_whole(ordinals: Sequence[int]) -> int | None:
    """What the grant alone decides: else recall would tell of connections it does not name."""
    if len(ordinals) >= BUDGETS.wide_scopes:
        return BUDGETS.rank_cap
    if len({ordinal // CONNECTION_BLOCK for ordinal in ordinals}) == 1:
        return BUDGETS.rank_cap_narrow
    return None


def _block(snapshot: Snapshot, ordinals: Sequence[int]) -> tuple[int, int] | None:
    """(lowest, highest) of the ordinals, where no other searchable one is between them."""
    if not ordinals:
        return None
    low, high = ordinals[0], ordinals[-1]
    inside = snapshot.db.execute(
        "SELECT count(*) FROM scope WHERE searchable AND ordinal BETWEEN ? AND ?", (low, high)
    ).fetchone()[0]
    return (low, high) if inside == len(ordinals) else None


def _limit(
    snapshot: Snapshot, streams: Sequence[StreamView], filters: dict[int, Selection]
) -> tuple[str, tuple[Any, ...]]:
    """(condition, parameters) of the records of these streams that their limits let through."""
    groups: dict[tuple[str, str], tuple[list[int], list[Any]]] = {}
    for stream in streams:
        found = of_limit(stream.limit)
        if stream.id in filters:
            of_tests(snapshot.db, filters[stream.id].tests, found)
        key = (found.sql(), orjson.dumps(found.values).decode())
        groups.setdefault(key, ([], found.values))[0].append(stream.id)
    either, bound = [], list[Any]()
    for (clause, _), (ids, values) in groups.items():
        either.append(f"(r.stream IN (SELECT value FROM json_each(?)) AND {clause})")
        bound += [orjson.dumps(ids).decode(), *values]
    return f"({' OR '.join(either)})", tuple(bound)
