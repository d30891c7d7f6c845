"""The operations on records: their schema, lists, aggregates, searches, and one record."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from evidence import handles, pointer
from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.model import GRANULARITIES, Continuation
from evidence.records import Document, Record
from evidence.schema import Schema
from evidence.values import Preview
from evidence.wire import link_excerpts
from renderers import document, records, schema, search
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session, ask_of, run_of
from service.ports import AggregateQuery, Answer, RecordQuery, RecordRead, SchemaQuery
from service.ports import SearchQuery, WindowRequest


class SchemaArguments(Arguments):
    stream = arguments.stream()
    connection_id = arguments.connection_id()
    detail = arguments.Choice(
        "`compact` (default), or `full` for the JSON Schema of one stream.", ("compact", "full")
    )
    fields_after = arguments.Text("Continue after this field name.")
    cursor = arguments.cursor()


def _schema(session: Session, **args: Any) -> Answer[Schema]:
    """The schema; `full` without a stream is refused before anything is fetched."""
    query = SchemaQuery(**args)
    if query.detail == "full" and query.stream is None:
        raise InvalidRequest(
            'detail="full" needs a stream. Call schema {} to find one, then retry with '
            'schema(stream, connection_id, detail: "full").',
            param="detail",
            retry_with="stream",
            calls=(Continuation("schema", {}, "find_stream"),),
        )
    return session.rs.schema(query)


SCHEMA = RecordOperation(
    name="schema",
    title="Discover streams and fields",
    description=(
        "Start here. Lists the connections and streams this token can read; with stream, its "
        "fields, filters, sorting, relations and example calls."
    ),
    arguments=SchemaArguments(),
    ask=_schema,
    run=run_of(_schema),
    render=schema.render,
    route=Route(
        "/v1/schema",
        extra={"view": arguments.Choice("compact for the short form.", ("compact", "full"))},
    ),
    examples=({}, {"stream": "messages"}),
)


ORDERS = ("asc", "desc")
_ORDER = arguments.Choice("Oldest or newest first.", ORDERS)


class QueryRecordsArguments(Arguments):
    stream = arguments.stream(required=True)
    connection_id = arguments.connection_id()
    fields = arguments.Names("Only these fields of each record.")  # type: ignore[assignment]
    filter = arguments.TypedFilter()
    sort = arguments.Text("Sort field from schema; `-field` sorts newest first.")
    limit = arguments.page_limit(CONTRACT.records_default)
    cursor = arguments.cursor()
    count = arguments.Choice("`exact` also counts all matches.", ("none", "exact"))
    changes_since = arguments.Text(
        "`beginning`, or the next_changes_since of an earlier call.", longest=CONTRACT.handle_chars
    )
    view = arguments.Text("A named view from schema, instead of fields.")
    expand = arguments.Names("Relations from schema whose records to include.")
    expand_limit = arguments.ExpandLimit()


_records = ask_of("records", RecordQuery)


def _ordered(raw: dict[str, Any]) -> dict[str, Any]:
    """Applies PDPP's `order`: a direction, alone or with `sort`, or a value of `sort`."""
    order, sort = raw.get("order"), raw.get("sort")
    if order not in ORDERS:
        return arguments.renamed(raw, order="sort")
    if order == "desc" and isinstance(sort, str) and not sort.startswith("-"):
        return {**raw, "sort": f"-{sort}"}
    return raw


QUERY_RECORDS = RecordOperation(
    name="query_records",
    title="List records",
    description=(
        "Lists records of one stream, newest first. Long values are previews with the call "
        "that reads them. Use search to find words, and changes_since to follow updates."
    ),
    arguments=QueryRecordsArguments(),
    ask=_records,
    run=run_of(_records),
    render=records.render,
    fit=records.fit,
    rewrite=_ordered,
    undeclared={"order": _ORDER},
    route=Route(
        "/v1/streams/<stream>/records",
        clamped=("limit",),
        synonyms={"count": {"estimated": "exact"}},
        extra={
            "order": arguments.Choice("`asc` for oldest first, `desc` for newest first.", ORDERS),
            "window": arguments.Choice("`exact` also returns the time span.", ("none", "exact")),
        },
    ),
    examples=({"stream": "messages", "limit": 5}, {"stream": "messages", "count": "exact"}),
)


METRICS = ("count", "sum", "avg", "min", "max", "count_distinct")


class AggregateArguments(Arguments):
    stream = arguments.stream(required=True)
    metric = arguments.Choice("What to compute.", METRICS, required=True)
    field = arguments.Text("Field to compute, for all but count.")
    group_by = arguments.Text("Group by the values of this field.")
    group_by_time = arguments.Text("Group by time in this field; needs granularity.")
    granularity = arguments.Choice("Size of the time buckets.", GRANULARITIES)
    time_zone = arguments.Text("IANA time zone of the buckets, UTC by default.")
    filter = arguments.TypedFilter()
    limit = arguments.Number("Maximum groups, 10 by default.", 1, CONTRACT.page_items)
    cursor = arguments.cursor()
    connection_id = arguments.connection_id()


_aggregate = ask_of("aggregate", AggregateQuery)

AGGREGATE = RecordOperation(
    name="aggregate",
    title="Count and summarize",
    description=(
        "Computes one metric over a stream (count, sum, average, earliest, latest), also for each "
        "value of a field or by time: spending per payee, per month."
    ),
    arguments=AggregateArguments(),
    ask=_aggregate,
    run=run_of(_aggregate),
    render=records.render_groups,
    fit=records.fit_groups,
    route=Route("/v1/streams/<stream>/aggregate"),
    examples=({"stream": "messages", "metric": "count"},),
)


class SearchArguments(Arguments):
    query = arguments.Text(
        'Words or a question. Required: "a phrase", prefix*, -without, from:name, subject:word.',
        longest=CONTRACT.query_chars,
        required=True,
    )
    words = arguments.Choice("`any` (default) requires no word, `all` every word.", ("any", "all"))
    streams = arguments.Names("Only these streams.")
    connection_id = arguments.connection_id()
    since = arguments.Moment("From this date or date-time (inclusive).")
    until = arguments.Moment("Until this date or date-time (exclusive).")
    sort = arguments.Choice("`relevance` (default) or `newest`.", ("relevance", "newest"))
    filter = arguments.TypedFilter()
    limit = arguments.page_limit(CONTRACT.search_default)
    cursor = arguments.cursor()


_search = ask_of("search", SearchQuery)

SEARCH = RecordOperation(
    name="search",
    title="Search records",
    description=(
        "Finds records in all sources this token can read, best match first; no word is "
        "required. It matches words, so try synonyms and the records' language. Each hit has its "
        "id, the matching text and the call that opens it there."
    ),
    arguments=SearchArguments(),
    ask=_search,
    run=run_of(_search, cut_tail=True, widen=True),
    render=search.render,
    fit=search.fit,
    route=Route(
        "/v1/search",
        names={"query": "q"},
        defaults={"limit": CONTRACT.search_rest_default},
        link=link_excerpts,
        posted=True,
        clamped=("limit",),
    ),
    rewrite=partial(arguments.renamed, q="query", order="sort"),
    examples=({"query": "quorum elm", "limit": 5},),
)


class FetchArguments(Arguments):
    id = arguments.record_id()
    connection_id = arguments.connection_id()
    fields = arguments.Names("Only these fields of the record.")  # type: ignore[assignment]
    expand = arguments.Names("Relations from schema whose record ids to include.")
    expand_limit = arguments.ExpandLimit()


def _record(
    session: Session, *, id: str, connection_id: str | None = None, whole: bool = False, **args: Any
) -> Answer[Record]:
    """Return the record; `whole` is explained in `RecordRead`."""
    ref = handles.parse(handles.from_address(id, session.address), connection_id=connection_id)
    return session.rs.record(RecordRead(ref, whole=whole, **args))


def _document(
    session: Session, *, id: str, connection_id: str | None = None, **args: Any
) -> Document:
    """The document; a long text field is truncated at the document's limit."""
    ref = handles.parse(handles.from_address(id, session.address), connection_id=connection_id)
    record = _record(session, id=id, connection_id=connection_id, **args).value
    owner = record.ref.connection_id
    owned = ref._replace(connection_id=owner)
    text, name = None, record.text_field
    if name and isinstance(record.data[name], Preview):
        window = WindowRequest(limit_chars=CONTRACT.document_chars)
        text = session.rs.field_window(owned, pointer.path_of(name), window).value.text
    following = _following(session, owned, args.get("fields", ()))
    return document.lay_out(record, url=owned.url, body_text=text, following=following)


def _following(session: Session, ref: handles.RecordRef, fields: Sequence[str]) -> list[str]:
    """The fields of the record after the last requested one, if the request names the maximum.

    The call for the fields left out of a wide record then leads to all of them.
    """
    if len(fields) < CONTRACT.names_in_list:
        return []
    order = list(session.rs.record(RecordRead(ref)).value.data)
    requested = frozenset(fields)
    last = max((index for index, name in enumerate(order) if name in requested), default=len(order))
    return order[last + 1 :]


FETCH = RecordOperation(
    name="fetch",
    title="Fetch a record",
    description=(
        "Returns one record as a document: id, title, text, url, metadata. If the text is cut, "
        "metadata.next_read is the call that continues."
    ),
    arguments=FetchArguments(),
    ask=_record,
    run=_document,
    render=document.render,
    rewrite=arguments.with_id,
    route=Route("/v1/streams/<stream>/records/<record_id>"),
    examples=({"id": "gmail-home/messages:m_0042"},),
)
