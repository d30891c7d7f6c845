"""Lists records without a search: newest first, from one stream or from several merged by time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from evidence.errors import InvalidRequest
from evidence.model import Continuation, Source, known
from evidence.records import Record
from evidence.schema import TIMES, StreamSchema
from service.operations.base import Session
from service.ports import Filter, RecordQuery, SchemaQuery

PAGE: Final = 25
#: Streams that one page merges: each takes a statement, or a request to another server.
STREAMS: Final = 60
REMOTE_STREAMS: Final = 8
CALLS: Final = 3
#: The first time there is: a merged list has only records with a time.
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of one connection."""

    schema: StreamSchema
    source: Source

    @property
    def roles(self) -> dict[str, str]:
        return {field.role: name for name, field in self.schema.fields.items() if field.role}

    @property
    def time(self) -> str | None:
        """The field that dates limit: that of the order, or else that of the event."""
        names = (self.schema.cursor_field, self.roles.get("event-time"))
        return next((name for name in names if name and self._is_dated(name)), None)

    @property
    def is_merged(self) -> bool:
        """Whether the order of the stream is that of its times."""
        return self.time is not None and self.time == self.schema.cursor_field

    def _is_dated(self, name: str) -> bool:
        field = self.schema.fields.get(name)
        is_time = field is not None and field.word in TIMES
        return field is not None and is_time and {"gte", "lt"} <= {*(field.operators or ())}

    @property
    def searches_people(self) -> bool:
        """Whether a search finds the persons of this stream; else only their exact names do."""
        actor = self.schema.fields.get(self.roles.get("actor", ""))
        return actor is None or actor.lexical or not actor.exact

    def query(self, period: "Period", person: str, **paging: Any) -> RecordQuery:
        """The newest records of a period and a person."""
        filters: Filter = {}
        if self.time and (bounds := dict(self._bounds(period))):
            filters[self.time] = bounds
        if person:
            filters[self.roles["actor"]] = person
        return RecordQuery(self.schema.name, self.source.connection_id, filter=filters, **paging)

    def _bounds(self, period: "Period") -> Iterator[tuple[str, Any]]:
        is_date = self.schema.fields[self.time or ""].word == "date"
        for operator, at in (("gte", period.since), ("lt", period.until)):
            if at is not None:
                yield operator, _day(at) if is_date else text_of(at)


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` and before `until`; None is open."""

    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Listing:
    """A page. `following` are the parameters of the next one, `left_out` counts streams.

    `tied` is true if more records have the time of the page than it has room for, `by_id` if the
    stream has no order but that of its ids.
    """

    records: list[Record]
    following: dict[str, str | None]
    calls: list[Continuation]
    left_out: int = 0
    tied: bool = False
    by_id: bool = False


def streams(session: Session, stream: str, connection_id: str) -> list[Stream]:
    """The streams of a name and a connection, each empty for all."""
    schema = session.rs.schema(SchemaQuery(stream or None, connection_id or None)).value
    return [Stream(row.stream, source) for row in schema.rows for source in row.connections]


def page(session: Session, among: list[Stream], parameters: dict[str, str]) -> Listing:
    """The newest records of these streams; raises `InvalidRequest` for dates that are none."""
    since, until, before = (moment(parameters[name], name) for name in ("since", "until", "before"))
    person = parameters["person"]
    able = [stream for stream in among if not person or not stream.searches_people]
    if len(able) == len(among) == 1 and (able[0].time or not (since or until)):
        return _single(session, able[0], Period(since, until), parameters)
    able = [stream for stream in able if stream.is_merged]
    if not able:
        raise InvalidRequest("These records cannot be listed by date. Choose a kind, or search.")
    period = Period(since or _FIRST, min(filter(None, (until, before)), default=None))
    merged_streams = able[: STREAMS if session.is_local else REMOTE_STREAMS]
    queries = [stream.query(period, person, limit=PAGE + 1) for stream in merged_streams]
    merged, floor = list[tuple[datetime, Record]](), _FIRST
    for stream, query in zip(merged_streams, queries):
        record_page = session.rs.records(query).value
        rows = [_dated(session, stream, record) for record in record_page.records]
        merged += rows
        if record_page.has_more and rows:  # what follows is not known
            floor = max(floor, rows[-1][0])
    merged.sort(key=lambda row: (row[0], row[1].id), reverse=True)
    if len(merged) > PAGE:
        floor = max(floor, merged[PAGE][0])
    is_last = floor == _FIRST
    records = merged if is_last else [row for row in merged if row[0] > floor]
    tied = not records and bool(merged)
    records = records or [row for row in merged if row[0] == merged[0][0]][:PAGE]
    return Listing(
        [record for _, record in records],
        {} if is_last or not records else {"before": text_of(records[-1][0])},
        [_call(query) for query in queries[:CALLS]],
        len(among) - len(merged_streams),
        tied,
    )


def _single(
    session: Session, stream: Stream, period: Period, parameters: dict[str, str]
) -> Listing:
    query = stream.query(
        period, parameters["person"], limit=PAGE, cursor=parameters["cursor"] or None
    )
    record_page = session.rs.records(query).value
    records = [_dated(session, stream, record)[1] for record in record_page.records]
    following = {"cursor": record_page.next_cursor}
    by_id = stream.schema.cursor_field is None
    return Listing(records, following, [_call(query)], by_id=by_id)


def _call(query: RecordQuery) -> Continuation:
    names = ("stream", "connection_id", "filter", "limit", "cursor")
    args = known({name: getattr(query, name) or None for name in names})
    return Continuation("query_records", args, "list")


def _dated(session: Session, stream: Stream, record: Record) -> tuple[datetime, Record]:
    """The time of a record in the order of its stream, and the record with its roles."""
    roles = {role: name for role, name in stream.roles.items() if name in record.data}
    text = record.data.get(stream.time or roles.get("event-time", ""))
    at = _parse(text)
    if at is None and text and session.is_local:  # a time in a form of its own
        text = session.rs.record(record.ref).value.authored_at
        at = _parse(text)
    authored_at = text if isinstance(text, str) else None
    return at or _FIRST, replace(record, roles=roles, authored_at=authored_at)


def ended(parameters: dict[str, str]) -> str:
    """The end of the period of a search: the date that was typed, or that of this page."""
    before = moment(parameters["before"], "before")
    until = moment(parameters["until"], "until") if before else None
    return text_of(min(before, until or before)) if before else parameters["until"]


def moment(text: str, name: str) -> datetime | None:
    """A parameter that is a date or a date-time; raises `InvalidRequest`."""
    at = _parse(text)
    if text and at is None:
        raise InvalidRequest(f"{name} must be a date such as 2026-03-01.", param=name)
    return at


def _parse(text: Any) -> datetime | None:
    """A time; without an offset it is UTC, as in the order of records."""
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def text_of(at: datetime) -> str:
    """A time in UTC as an argument."""
    return at.isoformat().replace("+00:00", "Z")


def _day(at: datetime) -> str:
    """The first day that does not begin before a time."""
    day = at.date()
    if at.time() > time.min and day < date.max:
        day += timedelta(days=1)
    return day.isoformat()
