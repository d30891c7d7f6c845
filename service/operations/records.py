"""The operations on records: their schema, lists, aggregates, searches, and one record."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from evidence import handles, pointer
from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Continuation
from evidence.records import Document
from evidence.schema import Schema
from evidence.values import Preview
from evidence.wire import link_excerpts
from renderers import document, records, schema, search
from service.operations import arguments
from service.operations.base import RecordOperation, Route, Session
from service.ports import ORDERS, AggregateQuery, Answer, FetchRequest, RecordQuery, SchemaQuery
from service.ports import SearchQuery, WindowRequest
from service.ports.types import Choice


def _schema(session: Session, query: SchemaQuery) -> Answer[Schema]:
    """The schema; `full` without a stream is refused before anything is fetched."""
    if query.detail == "full" and query.stream is None:
        raise InvalidRequest(
            'detail="full" needs a stream. Call schema {} to find one, then retry with '
            'schema(stream, connection_id, detail: "full").',
            param="detail",
            retry_with="stream",
            calls=(Continuation("schema", {}, "find_stream"),),
        )
    return session.rs.schema(query)


def _document_over_rest(loaded: dict[str, Any]) -> dict[str, Any]:
    """Over REST, the schema is a whole document unless a caller asks for the short form."""
    view = loaded.pop("view", None)
    if view == "compact" or "detail" in loaded:
        return {"detail": "compact", **loaded}
    return {**loaded, "detail": "document"}


SCHEMA = RecordOperation(
    title="Discover streams and fields",
    description=(
        "Start here. List the connections and streams that you may read. With `stream`, list its "
        "fields, filters, sort fields, relations and example calls."
    ),
    request=SchemaQuery,
    ask=_schema,
    run=lambda session, query: replace(_schema(session, query).value, args=query.loaded),
    render=schema.render,
    answer_chars=2 * BUDGETS.schema_bytes,
    route=Route(
        "/v1/schema",
        extra={"view": Choice("Use `compact` for the short form.", ("compact", "full"))},
        meaning=_document_over_rest,
    ),
    examples=({}, {"stream": "messages"}),
)


def _ordered(raw: dict[str, Any]) -> dict[str, Any]:
    """Applies PDPP's `order`: a direction, alone or with `sort`, or a value of `sort`."""
    order, sort = raw.get("order"), raw.get("sort")
    if order not in ORDERS:
        return arguments.renamed(raw, order="sort")
    if order == "desc" and isinstance(sort, str) and not sort.startswith("-"):
        return {**raw, "sort": f"-{sort}"}
    return raw


QUERY_RECORDS = RecordOperation(
    title="List records",
    description=(
        "List records of one stream, newest first, or by id if it has no sort field. Long values "
        "appear as previews with the call for the rest. Use `search` to find words and "
        "`changes_since` to follow updates."
    ),
    request=RecordQuery,
    ask=lambda session, query: session.rs.records(query),
    run=lambda session, query: replace(session.rs.records(query).value, args=query.loaded),
    render=records.render,
    fit=records.fit,
    rewrite=_ordered,
    route=Route("/v1/streams/<stream>/records"),
    examples=({"stream": "messages", "limit": 5}, {"stream": "messages", "count": "exact"}),
)


AGGREGATE = RecordOperation(
    title="Count and summarize records",
    description=(
        "Compute one metric, such as a count or sum, of a stream: in total, per value of a field "
        "or over time, for example spending per payee or month."
    ),
    request=AggregateQuery,
    ask=lambda session, query: session.rs.aggregate(query),
    run=lambda session, query: replace(session.rs.aggregate(query).value, args=query.loaded),
    render=records.render_groups,
    fit=records.fit_groups,
    route=Route("/v1/streams/<stream>/aggregate"),
    examples=({"stream": "messages", "metric": "count"},),
)


SEARCH = RecordOperation(
    title="Search records",
    description=(
        "Search all streams that you may read, best match first. A hit may lack some of the words. "
        "If you get too few hits, try synonyms or words in the records' language. Each hit has its "
        "id, the matching text and, if there is more, the call to read it."
    ),
    request=SearchQuery,
    ask=lambda session, query: session.rs.search(query),
    run=lambda session, query: replace(session.rs.search(query).value, args=query.loaded),
    render=search.render,
    fit=search.fit,
    route=Route("/v1/search", link=link_excerpts, posted=True),
    rewrite=partial(arguments.renamed, q="query", order="sort"),
    examples=({"query": "quorum elm", "limit": 5},),
)


def _ref(session: Session, request: FetchRequest) -> handles.RecordRef:
    id = handles.from_address(request.id, session.address)
    return handles.parse(id, connection_id=request.connection_id)


def _document(session: Session, request: FetchRequest) -> Document:
    """The document; a long text field is truncated at the document's limit."""
    ref = _ref(session, request)
    record = session.rs.record(ref, request).value
    owned = ref._replace(connection_id=record.ref.connection_id)
    text, name = None, record.text_field
    if name and isinstance(record.data[name], Preview):
        window = WindowRequest(limit_chars=CONTRACT.document_chars)
        text = session.rs.field_window(owned, pointer.path_of(name), window).value.text
    following = _following(session, owned, request.fields)
    return document.lay_out(record, url=owned.url, body_text=text, following=following)


def _following(session: Session, ref: handles.RecordRef, fields: Sequence[str]) -> list[str]:
    """The fields of the record after the last requested one, if the request names the maximum.

    The call for the fields left out of a wide record then leads to all of them.
    """
    if len(fields) < CONTRACT.names_in_list:
        return []
    order = list(session.rs.record(ref).value.data)
    requested = frozenset(fields)
    last = max((index for index, name in enumerate(order) if name in requested), default=len(order))
    return order[last + 1 :]


FETCH = RecordOperation(
    title="Fetch a record",
    description=(
        "Return one record as a document with id, title, text, url and metadata. If the text is "
        "cut, metadata.next_read is the call for the rest."
    ),
    request=FetchRequest,
    ask=lambda session, request: session.rs.record(_ref(session, request), request),
    run=_document,
    render=document.render,
    rewrite=arguments.with_id,
    route=Route("/v1/streams/<stream>/records/<record_id>"),
    examples=({"id": "gmail-home/messages:m_0042"},),
)
