"""The word index as search uses it: words and their counts, rows, passages and neighbors.

The grant acts inside every statement: by lexemes of the scope, which the index can cut by, and by
the fields of every row that it finds.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

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
from service.records.engine.selections import FIELDS_APART_MOST, Value
from service.records.engine.later import Later, ready
from service.records.writing.passages import STRIDE
from service.records.postgres.asking import Asking
from service.records.postgres.catalog import SETS_MOST, Counts
from service.records.postgres.ddl import WHOLE
from service.records.postgres.keys import key_of, value_of
from service.records.postgres.terms import query
from service.records.sql.conditions import Condition
from service.records.sql.shares import shared

_STATISTICS = """
SELECT (SELECT coalesce(sum(records), 0)::bigint FROM stream WHERE id = ANY(%s::integer[])),
  (SELECT coalesce(sum(words), 0)::bigint FROM scope WHERE ordinal = ANY(%s::integer[]))
"""
_LIKE = """
SELECT p.first, w.word, w.n FROM unnest(%s::text[], %s::text[]) AS p(first, last)
CROSS JOIN LATERAL (SELECT c.word, sum(c.n)::bigint AS n FROM word_count_seen c
  WHERE c.word >= p.first AND c.word < p.last AND c.ordinal{} = ANY(%s::integer[])
  GROUP BY c.word HAVING sum(c.n) > 0 ORDER BY 1 LIMIT %s) w
"""
_COUNTS = """
SELECT word, sum(n)::bigint FROM word_count_seen
WHERE word = ANY(%s) AND ordinal{} = ANY(%s::integer[]) GROUP BY word HAVING sum(n) > 0
"""
_BY_KEY = """
SELECT DISTINCT word FROM word_key_seen
WHERE key = ANY(%s::integer[]) AND ordinal{} = ANY(%s::integer[]) LIMIT %s
"""
_SIZES = f"""
SELECT p.seq, coalesce(last.start / {STRIDE} + 1, 0), coalesce(t.words, 0)
FROM unnest(%s::bigint[], %s::integer[]) AS p(seq, ordinal)
LEFT JOIN term_seen t USING (seq, ordinal)
LEFT JOIN LATERAL (SELECT s.start FROM passage_seen s
  WHERE t.seq IS NULL AND s.seq = p.seq AND s.ordinal = p.ordinal
  ORDER BY s.start DESC LIMIT 1) last ON true
"""
#: Short values with their texts, and long ones with the number of their passages.
_TEXTS = f"""
SELECT seq, ordinal, 0, text FROM folded_seen
WHERE seq = ANY(%s::bigint[]) AND ordinal{{0}} = ANY(%s::integer[]) AND start = {WHOLE}
UNION ALL SELECT r.seq, s.ordinal, last.start / {STRIDE} + 1, ''
FROM record r JOIN scope s ON s.stream = r.stream AND s.ordinal{{0}} = ANY(%s::integer[])
CROSS JOIN LATERAL (SELECT start FROM passage_seen p WHERE p.seq = r.seq AND p.ordinal = s.ordinal
  ORDER BY start DESC LIMIT 1) last
WHERE r.seq = ANY(%s::bigint[])
"""
_FOLDED = """
SELECT seq, ordinal, start, f.text
FROM unnest(%s::bigint[], %s::integer[], %s::integer[]) AS p(seq, ordinal, start)
JOIN folded_seen f USING (seq, ordinal, start)
"""
_HOLDS = "WHERE seq = ANY(%s::bigint[]) AND ordinal = ANY(%s::integer[]) AND terms @@ %s::tsquery"
_HOLDING = f"""
SELECT seq, ordinal, NULL FROM term_seen {_HOLDS}
UNION ALL SELECT seq, ordinal, start FROM passage_seen {_HOLDS}
"""
_PASSAGES = """
SELECT start FROM passage_seen WHERE terms @@ %s::tsquery AND seq = %s AND ordinal = %s
ORDER BY start LIMIT %s
"""


class SearchMethods(Asking):
    """The methods of search of a snapshot. See `engine.Snapshot`."""

    compared = "key"
    live = "NOT {}.deleted"
    in_list = "{} = ANY(?)"
    array = "array({})"
    coverage = (
        "SELECT stream, count(*) AS records FROM vectored WHERE set_id = ? AND {} GROUP BY stream"
    )
    has_vectors = "SELECT 1 WHERE has_table_privilege(to_regclass('vector_set'), 'SELECT')"

    def encode(self, value: Value) -> bytes:
        return key_of(value)

    def decode(self, value: bytes) -> Value:
        return value_of(value) if value else 0

    def list_parameter(self, values: Iterable[Any]) -> list[Any]:
        return list(values)

    def statistics(self, streams: Sequence[int], fields: Sequence[int]) -> Later[tuple[int, int]]:
        rows = self.later(_STATISTICS, _array(streams), _array(fields))
        return rows.then(lambda rows: rows[0])

    def words_like(
        self, fields: Sequence[int], prefixes: Sequence[str], most: int = WORDS_MOST
    ) -> Later[list[str]]:
        cached, rest = self._counts(fields), list[str]()
        complete = dict(cached)  # another thread may empty what is cached
        unknown = [prefix for prefix in prefixes if prefix not in complete]

        def words(rows: Sequence[tuple[Any, ...]]) -> list[str]:
            for prefix in unknown:
                counts = {word: n for first, word, n in rows if first == prefix}
                if len(counts) < most:
                    complete[prefix] = cached[prefix] = counts
                else:
                    rest.extend(counts)
            begun = (islice(complete.get(prefix, ()), most) for prefix in prefixes)
            return [*rest, *chain.from_iterable(begun)]

        if not unknown:
            return ready(words([]))
        lasts = [prefix + LAST for prefix in unknown]
        sql = _LIKE.format(_scanned(fields))
        return self.later(sql, unknown, lasts, _array(fields), most).then(words)

    def word_counts(self, fields: Sequence[int], words: Iterable[str]) -> Later[dict[str, int]]:
        totals, unknown = dict[str, int](), list[str]()
        by_prefix = dict(self._counts(fields))
        sizes = set(map(len, by_prefix))
        for word in words:
            heads = (word[:size] for size in sizes)
            counts = next((by_prefix[head] for head in heads if head in by_prefix), None)
            if counts is None:
                unknown.append(word)
            elif word in counts:
                totals[word] = counts[word]
        if not unknown:
            return ready(totals)
        asked = set(unknown)
        rows = self.look_up(_COUNTS.format(_scanned(fields)), unknown, _array(fields))
        return rows.then(lambda rows: totals | {word: n for word, n in rows if word in asked})

    def _counts(self, fields: Sequence[int]) -> Counts:
        """How many values hold each word with a prefix, as this and other snapshots found it."""
        connections = None if self._connections is None else tuple(self._connections)
        return self.catalog.counts(self.generation(), (connections, tuple(fields)))

    def words_by_key(
        self, fields: Sequence[int], keys: Iterable[int], most: int
    ) -> Later[list[str]]:
        parameters = _array(sorted(keys)), _array(fields), most
        rows = self.later(_BY_KEY.format(_scanned(fields)), *parameters)
        return rows.then(lambda rows: [word for (word,) in rows])

    def rows(
        self, scope: Scope, groups: Sequence[Spellings], limit: int, *, newest: bool = False
    ) -> Later[Rows]:
        if not scope.fields:
            return ready(Rows(([], []), ([], [], [])))
        terms = query(groups, self.catalog.scope(self.run, scope.fields))
        # As many of every field that is sought by itself, from which `shared` takes its part.
        apart = newest and scope.apart
        short, values = self._rows(scope, terms, limit, newest, apart, "term")
        passages, passage_values = self._rows(scope, terms, limit, newest, apart, "passage")
        sql = f"SELECT * FROM ({short}) s CROSS JOIN ({passages}) p"

        def by_columns(rows: Sequence[tuple[Any, ...]]) -> Rows:
            ((seqs, ordinals, *parts),) = rows
            if apart:
                return shared(scope.fields, (seqs, ordinals), tuple(parts), limit)
            return Rows((seqs, ordinals), tuple(parts), limit in (len(seqs), len(parts[0])))

        return self.later(sql, *values, *passage_values).then(by_columns)

    def _rows(
        self, scope: Scope, terms: str, limit: int, newest: bool, apart: bool, table: str
    ) -> tuple[str, list[Any]]:
        """SQL for rows of one table by columns, as in `Rows`, and its parameters."""
        columns = ("seq", "ordinal", "start")[: 3 if table == "passage" else 2]
        condition = Condition()
        fields = _ordinals(scope.fields)
        condition.add(
            f"t.ordinal{_scanned(scope.fields)} = ANY(%s::integer[])",
            fields,
        )
        if terms:
            condition.add("t.terms @@ %s::tsquery", terms)
        joined = ""
        if scope.limited:
            joined = "JOIN record r ON r.seq = t.seq"
            either = self.selected_by_any(scope.selections)
            condition.add(either.sql(), *either.values)
        selected = ", ".join(f"t.{column}" for column in columns)
        source = f"FROM {table}_seen t {joined} WHERE {condition.sql()}"
        if apart:
            newer = "PARTITION BY t.ordinal ORDER BY t.seq DESC"
            ranked = f"SELECT {selected}, row_number() OVER ({newer}) AS n {source}"
            sql = f"SELECT * FROM ({ranked}) t WHERE n <= %s ORDER BY n"
        else:
            order = "ORDER BY t.seq DESC" if newest else ""
            sql = f"SELECT {selected} {source} {order} LIMIT %s"
        arrays = ", ".join(f"coalesce(array_agg({column}), '{{}}')" for column in columns)
        return f"SELECT {arrays} FROM ({sql}) t", [*condition.values, limit]

    def sizes(self, values: Sequence[tuple[int, int]]) -> Later[list[Size]]:
        return self.later(_SIZES, *map(_array, zip(*values))) if values else ready([])

    def holding(self, scope: Scope, spellings: Spellings, seqs: Iterable[int]) -> Later[Rows]:
        parameters = [_array(seqs), _array(scope.fields), query([spellings])]
        return self.later(_HOLDING, *parameters, *parameters).then(_by_kind)

    def passages_with(
        self, seq: int, ordinal: int, groups: Sequence[Spellings], limit: int | None
    ) -> Later[list[int]]:
        terms = query(groups, f"'@s{seq}'")
        rows = self.later(_PASSAGES, terms, seq, ordinal, limit)
        return rows.then(lambda rows: [start for (start,) in rows])

    def texts(self, fields: Sequence[int], seqs: Sequence[int]) -> Later[list[ValueText]]:
        records, among = _array(seqs), _array(fields)
        return self.later(_TEXTS.format(_scanned(fields)), records, among, among, records)

    def passages(self, places: Sequence[PassageKey]) -> Later[dict[PassageKey, str]]:
        if not places:
            return ready({})
        rows = self.later(_FOLDED, *map(_array, zip(*places)))
        return rows.then(lambda rows: {(*key,): text for *key, text in rows})


def _by_kind(found: Sequence[tuple[Any, ...]]) -> Rows:
    """The rows of `_HOLDING` by columns."""
    rows = Rows(([], []), ([], [], []))
    for *row, start in found:
        columns = rows.short if start is None else rows.passages
        for column, value in zip(columns, (*row, start)):
            column.append(value)
    return rows


def _scanned(fields: Sequence[int]) -> str:
    """What keeps an index from being read anew for each of many fields.

    It also keeps the planner from comparing them with the statistics of the column, for a
    millisecond.
    """
    return " + 0" if len(fields) > FIELDS_APART_MOST else ""


def _array(numbers: Iterable[int]) -> str:
    """The literal of an array; psycopg would convert a list of numbers one by one.

    An array of the type of its column is looked up by hash.
    """
    return f"{{{','.join(map(str, numbers))}}}"


@lru_cache(SETS_MOST)
def _ordinals(fields: tuple[int, ...]) -> str:
    """The same for the fields of a scope, which every statement names."""
    return _array(fields)
