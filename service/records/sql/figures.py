"""Reads field values for aggregates; the SQL is the same in every engine. See `engine.Snapshot`."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Final

from service.records.engine.later import Later, all_of
from service.records.engine.selections import Cells, Grouped, GroupPage, GroupRow, Value
from service.records.sql.conditions import Condition, Conditions, on_field

#: Groups in their order, and the numbers of all groups and of the records after a group.
_GROUPS: Final = """
WITH f AS MATERIALIZED (
  SELECT {kind} AS kind, name, CAST(sum(n) AS bigint) AS n, {figure} AS figure FROM ({rows}) x
  GROUP BY {keys})
SELECT t.groups, t.records, p.kind, p.name, p.n, p.figure
FROM (SELECT count(*) AS groups, sum(n) FILTER (WHERE {after}) AS records FROM f) t
LEFT JOIN (SELECT * FROM f WHERE {after} ORDER BY {order} LIMIT {limit}) p ON true
ORDER BY {order}
"""
#: Buckets of time in their order, and the numbers of all buckets and of the records after one.
_UNITS: Final = """
WITH u AS (SELECT {unit} AS unit, count(*) AS n FROM ({rows}) x GROUP BY 1),
f AS MATERIALIZED ({buckets})
SELECT t.buckets, t.records, p.first, p.n, p.last
FROM (SELECT count(*) AS buckets, sum(n) FILTER (WHERE first > {after}) AS records FROM f) t
LEFT JOIN (SELECT * FROM f WHERE first > {after} ORDER BY first LIMIT {limit}) p ON true
ORDER BY p.first
"""
_ONE_UNIT: Final = "SELECT unit AS first, n, unit AS last FROM u"
_SEVERAL_UNITS: Final = """
SELECT {first} AS first, CAST(sum(n) AS bigint) AS n, max(unit) AS last FROM u GROUP BY 1
"""
#: Earlier than any local time, in microseconds since 1970.
_EARLIER: Final = -(2**56)
_ORDER: Final = "figure DESC NULLS LAST, kind, name"
_LATER: Final = "(kind > {kind} OR kind = {kind} AND name > ?)"
_DISTINCT: Final = "SELECT count(*) FROM (SELECT DISTINCT kind, name FROM ({rows}) x) y"


class Figures(Conditions):
    """The methods of a snapshot for aggregates, which need only `later`."""

    #: The column of a `cell` with its value as a whole number.
    whole: ClassVar[str]
    #: Whether one statement reads the values of several fields.
    merges_fields: ClassVar[bool]
    #: SQL of the metrics of a group over `value`.
    metrics: ClassVar[dict[str, str]]
    #: SQL of the first day of the bucket of the day `unit`, by granularity.
    calendar: ClassVar[dict[str, str]]
    #: The parameter of a figure.
    figure: ClassVar[str]

    def later(self, sql: str, *values: Any) -> Later[list[tuple[Any, ...]]]:
        """All rows of a statement."""
        raise NotImplementedError

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The same at once."""
        raise NotImplementedError

    def decode(self, value: Any) -> Value:
        """A value as it was before `encode`; 0 for `no_cursor`."""
        decoded: Value = value
        return decoded

    def figure_of(self, value: Any) -> Value | None:
        """A figure as `GroupRow` has it."""
        figure: Value | None = value
        return figure

    def figure_parameter(self, figure: Value) -> Any:
        """The parameter for a figure."""
        return figure

    def number(self, is_decimal: bool, mixed: bool) -> str:
        """SQL of the number in `cell v`; with `mixed` also comparable with the other form."""
        raise NotImplementedError

    def units(
        self,
        fields: Sequence[Cells],
        offsets: Sequence[tuple[int, int]],
        width: int,
        granularity: str,
        after: int,
        limit: int,
    ) -> GroupPage:
        zero = _EARLIER // width * width  # SQL divides towards 0: no value is below
        unit = f"({_local(offsets)} - ({zero})) / {width} + ({zero // width})"
        statements, values = list[str](), list[Any]()
        for some in self._merged(fields):
            source, where = self._from(some, "JOIN")
            statements.append(f"SELECT {self.whole} AS at {source} WHERE {where.sql()}")
            values += where.values
        rows = " UNION ALL ".join(statements)
        first = self.calendar.get(granularity)
        buckets = _SEVERAL_UNITS.format(first=first) if first else _ONE_UNIT
        sql = _UNITS.format(unit=unit, rows=rows, buckets=buckets, after=after, limit=limit)
        bucket_rows = self.run(sql, *values)
        groups = [
            GroupRow(0, int(begin), int(n), int(last))
            for *_, begin, n, last in bucket_rows
            if begin is not None
        ]
        return GroupPage(groups, int(bucket_rows[0][0]), int(bucket_rows[0][1] or 0))

    def next_value(self, ordinals: Sequence[int], least: int) -> int | None:
        key = f"v.{self.compared}"
        where = f"WHERE v.ordinal = s.ordinal AND {key} >= ? ORDER BY {key} LIMIT 1"
        first = f"SELECT {self.whole} FROM cell v {where}"
        among = f"FROM scope s WHERE {self.in_list.format('s.ordinal')}"
        sql = f"SELECT min(at) FROM (SELECT ({first}) AS at {among}) a"
        ((smallest,),) = self.run(sql, self.encode(least), self.list_parameter(ordinals))
        return None if smallest is None else int(smallest)

    def distinct(self, fields: Sequence[Grouped]) -> Later[int]:
        rows, values = self._union(fields, "count", grouped=True)
        return self.later(_DISTINCT.format(rows=rows), *values).then(lambda rows: int(rows[0][0]))

    def groups(
        self, fields: Sequence[Grouped], metric: str, after: GroupRow | None, limit: int
    ) -> GroupPage:
        statements = len(self._alike(fields))
        rows, values = self._union(fields, metric, grouped=metric == "count" and statements > 1)
        kinds = {field.kind for field in fields}
        behind, bounds = self._behind(after)
        sql = _GROUPS.format(
            kind="kind" if len(kinds) > 1 else min(kinds),
            keys="kind, name" if len(kinds) > 1 else "name",
            figure=self._metric(fields, metric),
            rows=rows,
            after=behind,
            order=_ORDER,
            limit=limit,
        )
        group_rows = self.run(sql, *values, *bounds, *bounds)
        return GroupPage(
            [
                GroupRow(kind, self.decode(name), int(n), self.figure_of(figure))
                for _, _, kind, name, n, figure in group_rows
                if kind is not None
            ],
            int(group_rows[0][0]),
            int(group_rows[0][1] or 0),
        )

    def _behind(self, after: GroupRow | None) -> tuple[str, list[Any]]:
        """The condition that a group comes after another."""
        if after is None:
            return "true", []
        later, name = _LATER.format(kind=int(after.kind)), self.encode(after.value)
        if after.figure is None:
            return f"figure IS NULL AND {later}", [name]
        figure = self.figure_parameter(after.figure)
        less = f"figure IS NULL OR figure < {self.figure}"
        return f"({less} OR figure = {self.figure} AND {later})", [figure, figure, name]

    def _metric(self, fields: Sequence[Grouped], metric: str) -> str:
        if metric != "count_distinct":
            return self.metrics[metric]
        kinds = sorted({field.computed_kind for field in fields})
        return " + ".join(f"count(DISTINCT value) FILTER (WHERE form = {kind})" for kind in kinds)

    def _union(
        self, fields: Sequence[Grouped], metric: str, *, grouped: bool
    ) -> tuple[str, list[Any]]:
        """A statement with the kind, the value, the number and the computed value of records."""
        mixed = len({field.is_decimal for field in fields}) > 1
        statements, values = list[str](), list[Any]()
        for some in self._alike(fields):
            first = some[0]
            name = f"{'g' if first.field.group is None else 'v'}.{self.compared}"
            columns = f"{int(first.kind)} AS kind, {name} AS name, "
            if first.computed is None:
                columns += f"{'count(*)' if grouped else '1'} AS n, NULL AS value, 0 AS form"
            else:
                value = f"v.{self.compared}"
                if metric != "count_distinct":
                    value = self.number(first.is_decimal, mixed)
                columns += f"1 AS n, {value} AS value, {int(first.computed_kind)} AS form"
            if first.field.group is None:
                tables = [
                    grouped_field.field._replace(
                        ordinal=grouped_field.computed or 0, group=grouped_field.field.ordinal
                    )
                    for grouped_field in some
                ]
                source, where = self._from(tables, "" if first.computed is None else "LEFT JOIN")
            else:
                source, where = self._from([grouped_field.field for grouped_field in some], "JOIN")
            ending = f" GROUP BY {name}" if grouped else ""
            statements.append(f"SELECT {columns} {source} WHERE {where.sql()}{ending}")
            values += where.values
        return " UNION ALL ".join(statements), values

    def _alike(self, fields: Sequence[Grouped]) -> list[list[Grouped]]:
        """Fields in groups that one statement reads."""
        alike = dict[object, list[Grouped]]()
        for number, field in enumerate(fields):
            key: object = number
            if self.merges_fields:
                tests = on_field(field.field.selection, _base(field.field))
                shape = (field.field.group is None, field.kind, field.computed is None, *field[3:])
                key = number if tests is None else (*tests, *shape)
            alike.setdefault(key, []).append(field)
        return list(alike.values())

    def cells(
        self, fields: Sequence[Cells], columns: str, tail: str = ""
    ) -> Later[list[tuple[Any, ...]]]:
        """Columns of `cell v` for the values of some fields; `tail` ends each statement."""
        statements = list[Later[list[tuple[Any, ...]]]]()
        for some in self._merged(fields):
            source, where = self._from(some, "JOIN")
            sql = f"SELECT {columns} {source} WHERE {where.sql()} {tail}"
            statements.append(self.later(sql, *where.values))
        return all_of(statements).then(lambda rows: list(chain.from_iterable(rows)))

    def _merged(self, fields: Sequence[Cells]) -> list[list[Cells]]:
        """Fields in groups that one statement reads."""
        alike = dict[object, list[Cells]]()
        for number, field in enumerate(fields):
            key: object = number
            if self.merges_fields:
                tests = on_field(field.selection, _base(field))
                key = number if tests is None else (*tests, field.group is None)
            alike.setdefault(key, []).append(field)
        return list(alike.values())

    def _from(self, fields: Sequence[Cells], join: str) -> tuple[str, Condition]:
        """The tables of some fields, as `cell v` and `cell g`, and the condition on them.

        Several fields are of selections with the same comparisons of their first table.
        """
        selection, _, group = fields[0]
        condition, source, base = Condition(), "", "v" if group is None else "g"
        bases = [_base(field) for field in fields]
        if group is not None and join:
            same, ordinals = self.equals_any("v.ordinal", [field.ordinal for field in fields])
            source = f" {join} cell v ON v.seq = g.seq AND {same}"
            condition.values.append(ordinals)
        direct = self.selected_values(selection, bases, cell=base)
        if direct is not None:
            condition.clauses, condition.values = direct.clauses, condition.values + direct.values
            return f"FROM cell {base}{source}", condition
        first = [test for test in selection.tests if test.ordinal == group]
        rest = tuple(test for test in selection.tests if test.ordinal != group)
        if first:  # the tests of the group read an index
            tests = replace(selection, tests=tuple(first), limit=type(selection.limit)())
            inner = self.selected_values(tests, bases, cell=base)
            assert inner is not None
            outer = self.selected(replace(selection, tests=rest))
            condition.add("r.seq = g.seq")
            condition.clauses += [*inner.clauses, *outer.clauses]
            condition.values += [*inner.values, *outer.values]
            return f"FROM cell g CROSS JOIN record r{source}", condition
        outer = self.selected(selection)
        condition.clauses, condition.values = outer.clauses, condition.values + outer.values
        table = f"FROM record r JOIN cell {base} ON {base}.seq = r.seq AND {base}.ordinal = ?"
        condition.values.insert(0, bases[0])
        return table + source, condition


def _base(field: Cells) -> int:
    """The field whose cells a statement reads first."""
    return field.ordinal if field.group is None else field.group


def _local(offsets: Sequence[tuple[int, int]]) -> str:
    """SQL of the local time of the column `at`; see `engine.Snapshot.units`."""
    if len(offsets) == 1:
        return f"at + ({offsets[0][1]})"
    middle = len(offsets) // 2
    earlier, later = _local(offsets[:middle]), _local(offsets[middle:])
    return f"CASE WHEN at < {offsets[middle][0]} THEN {earlier} ELSE {later} END"
