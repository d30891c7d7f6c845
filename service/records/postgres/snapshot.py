"""The methods of a snapshot over PostgreSQL; see `engine.Snapshot` for what each returns."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from evidence.limits import CONTRACT
from service.records.engine import Big, Cells, Place, Selection, Stored, StreamRow, Value
from service.records.postgres.keys import kept_value
from service.records.postgres.search import SearchMethods
from service.records.sql.snapshot import RECORDS, stored
from service.records.texts import chunks_of

#: Documents, and chunks of a large value, read at a time.
DOCUMENTS: Final = 10
CHUNKS: Final = 64

_NAMES = """
SELECT c.connection_id, s.name FROM stream s JOIN connection c ON c.id = s.conn
ORDER BY c.connection_id COLLATE "C", s.name COLLATE "C"
"""
_LOAD = f"{RECORDS} WHERE d.seq = ANY(%s)"
_CHUNKS = "SELECT text FROM chunk WHERE value = %s AND no BETWEEN %s AND %s ORDER BY no"
_FETCH = """
WITH place AS MATERIALIZED (SELECT (d.big::jsonb -> s.field ->> 0)::bigint AS value, p.no
  FROM unnest(%s::bigint[], %s::integer[], %s::integer[]) p(seq, ordinal, no)
  JOIN document d ON d.seq = p.seq AND d.big IS NOT NULL JOIN scope s ON s.ordinal = p.ordinal)
SELECT value, no, c.text FROM place JOIN chunk c USING (value, no)
"""


class PostgresSnapshot(SearchMethods):
    """One consistent view of a store. See `engine.Snapshot`."""

    engine = "postgres"
    whole = "v.number::bigint"
    commit_order = "version, generation"
    no_cursor = "''::bytea"
    merges_fields = True

    def stream(self, connection_id: str, name: str) -> StreamRow | None:
        if self._named is not None and connection_id not in self._named:
            return None
        return self.catalog.stream(self.rows_of, connection_id, name)

    def names(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.rows_of(_NAMES)]

    # Records

    def find(self, selection: Selection, record_key: str) -> int | None:
        found = self.selected(selection)
        found.add("r.record_key = ?", record_key)
        row = self.row(f"{RECORDS} WHERE {found.sql()}", *found.values)
        if row is None:
            return None
        self.know([row], _LOAD, [row[0]])  # it will be read
        return int(row[0])

    def load(self, seqs: Iterable[int]) -> dict[int, Stored]:
        wanted, known = list(seqs), self._prepared
        if not known.keys() >= {*wanted}:
            return {row[0]: stored(row) for row in self.rows_of(_LOAD, wanted)}
        return {seq: stored(known[seq]) for seq in wanted}

    def prepare(self, seqs: Sequence[int]) -> None:
        self._prepared |= {row[0]: row for row in self.rows_of(_LOAD, list(seqs))}

    @cached_property
    def _prepared(self) -> dict[int, tuple[Any, ...]]:
        """The data that `prepare` has read, by record."""
        return {}

    def each(self, seqs: Iterable[int]) -> Iterator[Stored]:
        listed = list(seqs)
        for start in range(0, len(listed), DOCUMENTS):
            piece = listed[start : start + DOCUMENTS]
            found = self.load(piece)
            yield from (found.pop(seq) for seq in piece if seq in found)

    # Large values

    def chunks(self, big: Big, first: int = 0, last: int | None = None) -> Iterator[str]:
        stop = big.chunks if last is None else last + 1
        for start in range(first, stop, CHUNKS):
            numbers = range(start, min(start + CHUNKS, stop))
            known = [self._chunks.get((big.first, no)) for no in numbers]
            if None in known:
                rows = self.rows_of(_CHUNKS, big.first, start, numbers[-1])
                known = [text for (text,) in rows]
            yield from (text.decode() for text in known if text is not None)

    def fetch(self, places: Sequence[Place]) -> None:
        numbered = {
            (seq, ordinal, number)
            for seq, ordinal, start in places
            for number in chunks_of(start, start + CONTRACT.passage_chars)
        } - self._fetched
        if not numbered:
            return
        found = self.rows_of(_FETCH, *map(list, zip(*sorted(numbered))))
        self._chunks |= {(value, no): text for value, no, text in found}
        self._fetched |= numbered

    @cached_property
    def _fetched(self) -> set[tuple[int, int, int]]:
        """What `fetch` has looked for: records, ordinals and numbers of chunks."""
        return set()

    @cached_property
    def _chunks(self) -> dict[tuple[int, int], bytes]:
        """The chunks that `fetch` has read, by value and number."""
        return {}

    # Values of fields

    def total(self, fields: Sequence[Cells]) -> int | float:
        columns = "coalesce(sum(v.number), 0), coalesce(bool_or(scale(v.number) > 0), false)"
        rows = self.cells(fields, columns)
        return sum(float(total) if fractions else int(total) for total, fractions in rows)

    def extreme(self, cells: Cells, *, greatest: bool) -> tuple[Value, int] | None:
        order = "DESC" if greatest else "ASC"
        tail = f"ORDER BY v.key {order}, v.seq {order} LIMIT 1"
        rows = self.cells([cells], "v.key, v.number, v.seq", tail)
        return (kept_value(*rows[0][:2]), rows[0][2]) if rows else None

    def groups(self, fields: Sequence[Cells]) -> Iterator[tuple[Value, int]]:
        rows = self.cells(fields, "v.key, min(v.number), count(*)", "GROUP BY v.key")
        return ((kept_value(key, number), count) for key, number, count in rows)
