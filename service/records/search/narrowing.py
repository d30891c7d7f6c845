"""The part of a grant that one search covers: its streams, filter and time range."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evidence.cached import cached_property
from evidence.errors import InvalidRequest
from evidence.question import Period
from service.port_rules import several_streams
from service.ports import NARROWING, SearchQuery
from service.records.view.choices import count, require_shared
from service.records.view import filters
from service.records.engine import Order, Scope, Snapshot
from service.records.engine.selections import Selection, Test
from evidence.manifest.values import EARLIEST
from evidence.times import microseconds
from service.records.view import View
from service.records.view.streams import StreamView
from service.records.view.coverage import Coverage


@dataclass(frozen=True)
class Searched:
    """The part of a grant that one search covers."""

    snapshot: Snapshot
    view: View
    request: SearchQuery

    @cached_property
    def streams(self) -> Sequence[StreamView]:
        """The streams; 403 for a stream name outside the grant."""
        view, request = self.view, self.request
        streams: Sequence[StreamView] = view.within(request.connection_id)
        if request.streams:
            names = dict.fromkeys(request.streams)
            by_name = (view.stream(name, request.connection_id, param="streams") for name in names)
            streams = [stream for group in by_name for stream in group]
        if request.filter and len({stream.name for stream in streams}) != 1:
            raise several_streams()
        if request.filter:
            require_shared(view, streams, request.filter, "filter")
        return streams

    @cached_property
    def times(self) -> tuple[int | None, int | None]:
        """`since` and `until` in microseconds; 400 for text that is no date."""
        return self._time("since"), self._time("until")

    def _time(self, name: str) -> int | None:
        text = getattr(self.request, name)
        if text is None:
            return None
        timestamp = microseconds(text)
        if timestamp is None:
            raise InvalidRequest(
                f"{name} must be a date such as 2026-03-01 or a date-time such as "
                "2026-03-01T09:00:00Z.",
                param=name,
            )
        return timestamp

    @cached_property
    def selections(self) -> dict[int, Selection]:
        """The covered records, by stream; streams without event times drop out of a time range."""
        selections = {}
        for stream in self.streams:
            tests = self._tests(stream)
            bounds = tuple(self._bounds(stream)) if self._timed else ()
            if self._timed and not bounds:
                continue
            selections[stream.id] = stream.selection((*tests, *bounds))
        return selections

    @property
    def narrowed(self) -> bool:
        """Whether the request leaves out a part of the grant."""
        return not NARROWING.keys().isdisjoint(self.request.identity())

    @property
    def _timed(self) -> bool:
        return self.times != (None, None)

    def _tests(self, stream: StreamView) -> tuple[Test, ...]:
        conditions = self.request.filter
        return filters.tests_of(stream, conditions) if conditions else ()

    def _bounds(self, stream: StreamView) -> Iterator[Test]:
        ordinal = stream.event_ordinal
        if ordinal is not None:
            for value, operator in zip(self.times, ("gte", "lt")):
                if value is not None:
                    yield Test(ordinal, operator, value)

    @cached_property
    def timeless(self) -> int:
        """How many records a time range leaves out because they have no event time."""
        if not self._timed:
            return 0
        whole, dated = list[Selection](), list[Selection]()
        for stream in self.streams:
            tests = self._tests(stream)
            whole.append(stream.selection(tests))
            if stream.event_ordinal is not None:
                at = Test(stream.event_ordinal, "gte", EARLIEST)
                dated.append(stream.selection((*tests, at)))
        return count(self.snapshot, whole) - count(self.snapshot, dated)

    @cached_property
    def covered(self) -> Coverage:
        """The streams with their selections."""
        return Coverage(self.streams, self.selections) if self.narrowed else self.view.covered

    def scope(self, role: str | None = None) -> Scope:
        """The searched fields, or those with a role; see `Coverage`."""
        return self.covered.scope(role)

    def newest_in(self, period: Period, limit: int) -> tuple[list[int], bool]:
        """The newest records of a period, at most `limit` of each stream; whether they are all."""
        seqs, are_all = list[int](), True
        for stream in self.streams:
            selection, ordinal = self.selections.get(stream.id), stream.event_ordinal
            if selection is None or ordinal is None:
                continue
            tests = Test(ordinal, "gte", period.since), Test(ordinal, "lt", period.until)
            selection = replace(selection, tests=(*selection.tests, *tests))
            order = Order(by_cursor=True, descending=True)
            rows = self.snapshot.page([selection], order, None, limit + 1)
            seqs += [row.seq for row in rows[:limit]]
            are_all = are_all and len(rows) <= limit
        return seqs, are_all

    @property
    def sources(self) -> int:
        """How many connections it covers."""
        if self.streams is self.view.streams:
            return self.view.sources
        return len({stream.connection_id for stream in self.streams})
