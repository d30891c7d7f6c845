"""Which records an engine reads, and which of their values an aggregate computes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from evidence.cached import cached_property
from service.records.engine.change_log import NO_TIME

#: What a scalar of a record is compared as: see `values.sortable`.
Value = str | int | float
#: Fields that are searched one by one for the newest rows of a word.
FIELDS_APART_MOST: Final = 32


@dataclass(frozen=True, slots=True)
class Limit:
    """Which records of a stream a grant shows: event times in microseconds, or record keys."""

    since: int | None = None
    until: int | None = None
    keys: frozenset[str] | None = None

    def __bool__(self) -> bool:
        return self.is_timed or self.keys is not None

    @property
    def is_timed(self) -> bool:
        """Whether it limits the times of records."""
        return not (self.since is None and self.until is None)

    def spans(self, at: int | None) -> bool:
        """Whether it shows records of a time, None or `NO_TIME` for those without one."""
        if at in (None, NO_TIME):
            return not self.is_timed
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison with the value of a field; `operator` is `eq` or a key of `OPERATORS`."""

    ordinal: int
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class Selection:
    """The live records of one stream inside a limit that pass every test.

    `time_ordinal` is the field the limit's times are of, `by_time` whether that field is the order
    of the stream too.
    """

    stream: int
    limit: Limit = Limit()
    tests: tuple[Test, ...] = ()
    time_ordinal: int | None = None
    by_time: bool = False


@dataclass(frozen=True)
class Scope:
    """What a search may touch: the searchable fields of some streams, and which of their records.

    `fields` are ordinals, ascending; `selections` hold for the records of each stream, and every
    stream of the fields has one. `stream_of` gives the stream of each field.
    """

    fields: tuple[int, ...]
    selections: tuple[Selection, ...]
    stream_of: Mapping[int, int] = field(default_factory=dict, compare=False)

    @cached_property
    def limited(self) -> bool:
        """Whether some records of the streams are outside the scope."""
        return any(selection.limit or selection.tests for selection in self.selections)

    def selection_of(self, ordinal: int) -> Selection:
        """The selection of the stream of a field."""
        return self._by_stream[self.stream_of[ordinal]]

    @cached_property
    def _by_stream(self) -> dict[int, Selection]:
        return {selection.stream: selection for selection in self.selections}

    @property
    def apart(self) -> bool:
        """Whether the newest rows are searched field by field; many fields are scanned at once."""
        return self.limited or len(self.fields) <= FIELDS_APART_MOST


class Cells(NamedTuple):
    """The values of a field, which an ordinal names, in the selected records of its stream.

    With `group`, only in the records that have a value in that field; tests of it select fast.
    """

    selection: Selection
    ordinal: int
    group: int | None = None


class Grouped(NamedTuple):
    """Records that are grouped by the values of `field`, and the field that is computed, if any.

    Equal values of different kinds are different groups. `is_decimal` tells that the computed
    values are keys of decimals, `computed_kind` is their kind.
    """

    field: Cells
    kind: int
    computed: int | None = None
    computed_kind: int = 0
    is_decimal: bool = False


class GroupRow(NamedTuple):
    """A group: its kind and value, how many records it has, and its figure, which orders it.

    Sums and averages are keys of decimals. A least or greatest value is as it is compared.
    """

    kind: int
    value: Value
    records: int
    figure: Value | None


class GroupPage(NamedTuple):
    """Groups of a page, the number of all groups, and of the records after the last page."""

    rows: list[GroupRow]
    groups: int
    records_left: int
