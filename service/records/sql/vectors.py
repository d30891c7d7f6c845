"""Snapshot methods for vectors; their SQL is the same in every engine."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from evidence.work import portions
from service.records.engine import Scope
from service.records.engine.later import Later, promised, ready
from service.records.engine.vectors import LOTS, Covered, VectorRow, VectorSet
from service.records.sql.conditions import Condition, alike
from service.records.sql.figures import Figures

#: A scope with at most so many records is sampled by these, a larger one by lot.
MEMBERS_MOST: Final = 5_000
#: How many times the expected share of lots is read first, and then each time that it was too few.
MARGIN, GROWTH = 2, 4
#: Blocks that are read at a time.
BLOCKS_TOGETHER: Final = 64

_SET: Final = """
SELECT id, model, dimensions, version, centre FROM vector_set WHERE complete > 0 OR version > 0
ORDER BY complete DESC, CASE WHEN complete > 0 THEN -id ELSE id END LIMIT 1
"""
_VECTORS: Final = "SELECT v.seq, v.ordinal, v.start, v.stop, v.vector FROM vector v"
_COVERED: Final = """
SELECT s.id, coalesce(c.records, 0), s.records FROM stream s LEFT JOIN ({}) c ON c.stream = s.id
WHERE {}
"""
_RECORDS: Final = "SELECT coalesce(sum(records), 0) FROM stream WHERE"


class VectorMethods(Figures):
    """See `engine.vectors.VectorReads`."""

    #: Has a row if the store has the tables of vectors.
    has_vectors: ClassVar[str]
    #: (stream, records) of the streams `{}`: the records that are in a set.
    coverage: ClassVar[str]

    def vector_set(self) -> VectorSet | None:
        if not self.run(self.has_vectors):
            return None
        return next((VectorSet(*row) for row in self.run(_SET)), None)

    def vectors(
        self, set_id: int, fields: Sequence[int], seqs: Sequence[int]
    ) -> Later[list[VectorRow]]:
        condition = self._of_set(set_id, fields, "+ v.ordinal")
        condition.add(self.in_list.format("v.seq"), self.list_parameter(seqs))
        return self._vectors(condition)

    def vectors_by_id(self, set_id: int, ids: Sequence[int]) -> Later[list[VectorRow]]:
        condition = Condition(["+ v.set_id = ?"], [set_id])
        condition.add(self.in_list.format("v.id"), self.list_parameter(ids))
        return self._vectors(condition)

    def _vectors(self, condition: Condition) -> Later[list[VectorRow]]:
        rows = self.later(f"{_VECTORS} WHERE {condition.sql()}", *condition.values)
        return rows.then(lambda rows: [VectorRow(*row) for row in rows])

    @promised
    def vector_sample(self, set_id: int, scope: Scope, most: int) -> list[bytes]:
        if not scope.fields or most < 1:
            return []
        seqs = self.members(scope, MEMBERS_MOST).get() if scope.limited else None
        if seqs is not None:
            condition = self._of_set(set_id, scope.fields, "+ v.ordinal")
            condition.add(self.in_list.format("v.seq"), self.list_parameter(seqs))
            return self._least_lots(condition, most)
        streams = [selection.stream for selection in scope.selections]
        counted, values = self.equals_any("id", streams)
        ((records,),) = self.run(f"{_RECORDS} {counted}", values)
        bound, vectors = LOTS * most * MARGIN // max(1, records), list[bytes]()
        while bound:
            condition = self._of_set(set_id, scope.fields)
            condition.add("v.lot < ?", min(bound, LOTS))
            if scope.limited:
                selected = self.selected_by_any(scope.selections, probed=True)
                condition.add(selected.sql(), *selected.values)
            vectors = self._least_lots(condition, most, joined=scope.limited)
            bound = bound * GROWTH if len(vectors) < most and bound < LOTS else 0
        return vectors

    def _least_lots(self, condition: Condition, most: int, *, joined: bool = False) -> list[bytes]:
        records = "JOIN record r ON r.seq = v.seq" if joined else ""
        sql = f"SELECT v.id FROM vector v {records} WHERE v.start = 0 AND {condition.sql()}"
        ids = f"{sql} ORDER BY v.lot, v.id LIMIT ?"
        rows = self.run(
            f"SELECT v.vector FROM vector v WHERE v.id IN ({ids}) ORDER BY v.lot, v.id",
            *condition.values,
            most,
        )
        return [vector for (vector,) in rows]

    def vector_blocks(self, set_id: int, fields: Sequence[int]) -> Iterator[bytes]:
        condition = self._of_set(set_id, fields)
        order = "ORDER BY v.ordinal, v.id"
        sql = f"SELECT v.id FROM vector_block v WHERE {condition.sql()} {order}"
        ids = [id for (id,) in self.run(sql, *condition.values)]
        chosen = self.in_list.format("v.id")
        sql = f"SELECT v.entries FROM vector_block v WHERE {chosen} {order}"
        for some in portions(ids, BLOCKS_TOGETHER):
            yield from (entries for (entries,) in self.run(sql, self.list_parameter(some)))

    def within(self, scope: Scope, seqs: Sequence[int]) -> Later[list[int]]:
        condition = self.selected_by_any(scope.selections, probed=True)
        condition.add(self.in_list.format("r.seq"), self.list_parameter(seqs))
        sql = f"SELECT r.seq FROM record r WHERE {condition.sql()}"
        return self.later(sql, *condition.values).then(lambda rows: [seq for (seq,) in rows])

    def members(self, scope: Scope, most: int) -> Later[list[int] | None]:
        conditions = [self.selected(*group) for group in alike(scope.selections)]
        if not conditions:
            return ready([])
        selected = " UNION ALL ".join(
            f"SELECT r.seq FROM record r WHERE {condition.sql()}" for condition in conditions
        )
        values = [value for condition in conditions for value in condition.values]
        rows = self.later(f"SELECT seq FROM ({selected}) m LIMIT ?", *values, most + 1)
        return rows.then(lambda rows: None if len(rows) > most else [seq for (seq,) in rows])

    def vector_coverage(self, set_id: int, streams: Sequence[int]) -> Later[list[Covered]]:
        counted, values = self.equals_any("stream", streams)
        sql = _COVERED.format(self.coverage.format(counted), self.equals_any("s.id", streams)[0])
        rows = self.later(sql, set_id, values, values)
        return rows.then(lambda rows: [Covered(*row) for row in rows])

    def _of_set(self, set_id: int, fields: Sequence[int], column: str = "v.ordinal") -> Condition:
        condition = Condition(["v.set_id = ?"], [set_id])
        condition.add(*self.equals_any(column, fields))
        return condition
