"""Filters and grant limits as SQL conditions on `record r` and `cell v`, and statements of writers.

`?` marks a parameter, for every engine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from evidence.operators import OPERATORS
from service.records.engine.selections import Limit, Selection, Test, Value

#: The comparison of each operator of `OPERATORS`, and of equality.
COMPARISONS: Final = {"eq": "=", **OPERATORS}


@dataclass(slots=True)
class Condition:
    """SQL clauses of an engine, joined by AND, with their parameters."""

    clauses: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, clause: str, *values: Any) -> None:
        self.clauses.append(clause)
        self.values += values

    def sql(self) -> str:
        return " AND ".join(self.clauses)


def bounds(limit: Limit) -> list[tuple[str, int]]:
    """The comparisons of a limit with the time of a record, in microseconds."""
    both = ((">=", limit.since), ("<", limit.until))
    return [(comparison, time) for comparison, time in both if time is not None]


def by_field(tests: Iterable[Test]) -> dict[int, list[tuple[str, Value]]]:
    """The comparisons with the values of each field."""
    fields: dict[int, list[tuple[str, Value]]] = {}
    for test in tests:
        fields.setdefault(test.ordinal, []).append((COMPARISONS[test.operator], test.value))
    return fields


def alike_in_tests(selections: Iterable[Selection]) -> list[list[Selection]]:
    """Selections in groups that have the same tests of their own fields."""
    groups: dict[object, list[Selection]] = {}
    for selection in selections:
        tests = tuple(map(tuple, by_field(selection.tests).values()))
        groups.setdefault(tests, []).append(selection)
    return list(groups.values())


def alike_in_limits(selections: Iterable[Selection]) -> list[list[Selection]]:
    """Selections in groups that have the same limits."""
    groups: dict[object, list[Selection]] = {}
    for selection in selections:
        groups.setdefault((selection.limit, selection.by_time), []).append(selection)
    return list(groups.values())


def alike(selections: Iterable[Selection]) -> list[list[Selection]]:
    """Selections in groups that have the same tests of their own fields and the same limits."""
    return [same for group in alike_in_tests(selections) for same in alike_in_limits(group)]


def on_field(selection: Selection, ordinal: int) -> list[tuple[str, Value]] | None:
    """The comparisons of a selection if all of them use one field; otherwise None.

    Only live records have values, and the times of a limit are the values of one field.
    """
    fields = by_field(selection.tests)
    times = bounds(selection.limit)
    elsewhere = fields.keys() - {ordinal} or (times and ordinal != selection.time_ordinal)
    if selection.limit.keys is not None or elsewhere:
        return None
    return [*times, *fields.get(ordinal, ())]


def _either(conditions: Sequence[Condition]) -> Condition:
    """The condition that one of some holds; none does if there are none."""
    either = " OR ".join(f"({condition.sql()})" for condition in conditions)
    values = [value for condition in conditions for value in condition.values]
    return Condition([f"({either or 'false'})"], values)


class Conditions:
    """The conditions of one engine, whose `SearchMethods` define the SQL that differs."""

    #: The column of a `cell` that is compared.
    compared: ClassVar[str]
    #: The condition that the record `{}` is not deleted, as in the indexes of live records.
    live: ClassVar[str]
    #: The condition that `{}` is in a list, which is the parameter.
    in_list: ClassVar[str]

    def encode(self, value: Value) -> Any:
        """A value in the form in which it is compared."""
        return value

    def list_parameter(self, values: Iterable[Any]) -> Any:
        """The parameter of `in_list`."""
        raise NotImplementedError

    def is_small(self, cells: str, values: list[Any]) -> bool:
        """Whether to list the records with such a value first instead of probing each record."""
        return False

    def equals_any(self, column: str, numbers: Sequence[int]) -> tuple[str, Any]:
        """(condition, parameter) that a column is one of some numbers."""
        if len(numbers) == 1:
            return f"{column} = ?", numbers[0]
        return self.in_list.format(column), self.list_parameter(numbers)

    def in_limit(
        self, limit: Limit, condition: Condition | None = None, *, record: str = "r"
    ) -> Condition:
        """The condition that a record, deleted or not, is inside a limit; `record` is its alias."""
        condition = condition or Condition()
        for comparison, time in bounds(limit):
            condition.add(f"{record}.at {comparison} ?", time)
        if limit.keys is not None:
            keys = self.list_parameter(sorted(limit.keys))
            condition.add(self.in_list.format(f"{record}.record_key"), keys)
        return condition

    def tested(
        self, selections: Sequence[Selection], *, record: str = "r"
    ) -> tuple[Condition, bool]:
        """(the condition that a record passes the tests of selections, whether it lists records).

        The selections are `alike`. A record has no values in the fields of other streams.
        """
        condition, lists = Condition(), False
        for tests in zip(*(by_field(selection.tests).items() for selection in selections)):
            comparisons = tests[0][1]
            compared = [f"c.{self.compared} {comparison} ?" for comparison, _ in comparisons]
            field, ordinals = self.equals_any("c.ordinal", [ordinal for ordinal, _ in tests])
            body = " AND ".join([field, *compared])
            values = [ordinals, *(self.encode(value) for _, value in comparisons)]
            if self.is_small(body, values):
                cells, lists = f"{record}.seq IN (SELECT c.seq FROM cell c WHERE {body})", True
            else:
                # The sum makes it read the cells of the record, not look for each of many fields.
                column = "c.ordinal" if len(tests) == 1 else "c.ordinal + 0"
                field, _ = self.equals_any(column, [ordinal for ordinal, _ in tests])
                body = " AND ".join([field, *compared])
                cells = f"EXISTS (SELECT 1 FROM cell c WHERE c.seq = {record}.seq AND {body})"
            condition.add(cells, *values)
        return condition, lists

    def selected(self, *selections: Selection) -> Condition:
        """The condition that the record `r` is in one of some selections, which are `alike`."""
        condition, lists = self.tested(selections)
        limited = self._limited(selections, lists)
        condition.add(limited.sql(), *limited.values)
        return condition

    def _limited(self, selections: Sequence[Selection], lists: bool) -> Condition:
        """The condition that the record `r` is in the streams and inside the limit of all."""
        first, condition = selections[0], Condition()
        # The sign makes it read the listed records, not the whole stream in its order.
        column = "+r.stream" if lists else "r.stream"
        condition.add(*self.equals_any(column, [selection.stream for selection in selections]))
        condition.add(self.live.format("r"))
        self.in_limit(first.limit, condition)
        if first.by_time:  # lets the index on the cursor start at the limit
            for comparison, time in bounds(first.limit):
                condition.add(f"r.cursor {comparison} ?", self.encode(time))
        return condition

    def selected_by_any(
        self, selections: Iterable[Selection], *, probed: bool = False
    ) -> Condition:
        """The condition that one of some selections contains the record `r`.

        With `probed`, another condition lists the records.
        """
        alternatives = []
        for group in alike_in_tests(selections):
            condition, lists = self.tested(group)
            limits = alike_in_limits(group)
            either = _either([self._limited(same, lists or probed) for same in limits])
            condition.add(either.sql(), *either.values)
            alternatives.append(condition)
        return _either(alternatives)

    def selected_values(
        self, selection: Selection, ordinals: Sequence[int], *, cell: str = "v"
    ) -> Condition | None:
        """The condition on a `cell` alone that its record is selected; None if there is none.

        Several ordinals are of selections with the same comparisons.
        """
        comparisons = on_field(selection, ordinals[0])
        if comparisons is None:
            return None
        condition = Condition()
        condition.add(*self.equals_any(f"{cell}.ordinal", ordinals))
        for comparison, value in comparisons:
            condition.add(f"{cell}.{self.compared} {comparison} ?", self.encode(value))
        return condition


class Statements:
    """The statements of the steps of a writer; `writing.Writing` describes its methods.

    `owner` is the column with a stream's connection, `visible` the condition that a stream is not
    hidden.
    """

    meta = "SELECT value FROM meta WHERE key = ?"
    stream_name = "SELECT name FROM stream WHERE id = ?"
    languages = "SELECT languages FROM scope WHERE ordinal = ?"
    save_languages = "UPDATE scope SET languages = ? WHERE ordinal = ?"
    references = (
        "SELECT u.field, u.blob_id, b.sha256, b.id FROM blob_use u JOIN blob b ON b.id = u.blob"
        " WHERE u.seq = ?"
    )
    save_digests = (
        "INSERT INTO parsed (digest, connection, seq) VALUES (?, ?, ?)"
        " ON CONFLICT (digest) DO UPDATE SET seq = excluded.seq"
    )
    digests = (
        "SELECT digest FROM parsed p JOIN connection c ON c.id = p.connection"
        " WHERE c.connection_id = ? AND digest > ? ORDER BY digest LIMIT 10000"
    )
    with_digest = (
        "SELECT s.name, s.id, r.record_key, d.data, d.big FROM parsed p JOIN record r"
        " ON r.seq = p.seq JOIN document d ON d.seq = p.seq JOIN stream s ON s.id = r.stream"
        " WHERE p.digest = ?"
        " AND p.connection = (SELECT id FROM connection WHERE connection_id = ?)"
    )
    #: Add to the records of a stream, and set them.
    add_records = "UPDATE stream SET records = records + ? WHERE id = ?"
    set_records = "UPDATE stream SET records = ? WHERE id = ?"
    #: Sets the sort keys of a record.
    reorder = "UPDATE record SET at = ?, cursor = ?, thread = ?, place = ? WHERE seq = ?"

    def __init__(self, owner: str, visible: str) -> None:
        streams = f"stream s JOIN connection c ON c.id = s.{owner}"
        source = f"FROM {streams} WHERE connection_id = ?"
        self.connection_ids = (
            f"SELECT DISTINCT connection_id FROM {streams} WHERE {visible} ORDER BY 1"
        )
        self.manifest_rows = f"SELECT name, manifest {source} ORDER BY {visible} DESC, name"
        self.find_stream = f"SELECT s.id, c.id, manifest {source} AND name = ?"
        self.save_stream = (
            f"INSERT INTO stream ({owner}, name, manifest) VALUES (?, ?, ?)"
            f" ON CONFLICT ({owner}, name) DO UPDATE SET manifest = excluded.manifest"
        )
        self.find_blob = f"SELECT id FROM blob WHERE sha256 = ? AND {owner} = ?"
        self.save_blob = (
            f"INSERT INTO blob (sha256, {owner}, size_bytes) VALUES (?, ?, ?) RETURNING id"
        )
        self.counts = (
            "SELECT connection_id, name, count(seq) FILTER (WHERE NOT deleted),"
            f" count(seq) FILTER (WHERE deleted) FROM {streams}"
            f" LEFT JOIN record r ON r.stream = s.id WHERE {visible}"
            " GROUP BY s.id, c.id ORDER BY 1, 2"
        )
