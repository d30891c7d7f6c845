"""query_records: a page of one stream, newest first, or the changes since a bookmark."""

from typing import Any

from evidence.limits import CONTRACT
from evidence.records import RecordPage
from renderers import records as renderer
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session, run_of
from service.ports import Answer, RecordQuery

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


def ask(session: Session, *, stream: str, **args: Any) -> Answer[RecordPage]:
    """A page of a stream."""
    return session.rs.records(RecordQuery(stream, **args))


def _ordered(given: dict[str, Any]) -> dict[str, Any]:
    """`order` is PDPP's: a direction, on its own or beside `sort`; or a value of `sort`."""
    order, sort = given.get("order"), given.get("sort")
    if order not in ORDERS:
        return arguments.renamed(given, order="sort")
    if order == "desc" and isinstance(sort, str) and not sort.startswith("-"):
        return {**given, "sort": f"-{sort}"}
    return given


OPERATION = RecordOperation(
    name="query_records",
    title="List records",
    description=(
        "Lists records of one stream, newest first. Long values are previews with the call "
        "that reads them. Use search to find words, and changes_since to follow updates."
    ),
    arguments=QueryRecordsArguments(),
    ask=ask,
    run=run_of(ask),
    render=renderer.render,
    fit=renderer.fit,
    rewrite=_ordered,
    undeclared={"order": _ORDER},
    route=Route(
        "/v1/streams/<stream>/records",
        clamped=("limit",),
        synonyms={"count": {"estimated": "exact"}},
        extra={
            "order": arguments.Choice(
                "`asc` for oldest first, `desc` for newest first.", ("asc", "desc")
            ),
            "window": arguments.Choice("`exact` also returns the time span.", ("none", "exact")),
        },
    ),
    examples=({"stream": "messages", "limit": 5}, {"stream": "messages", "count": "exact"}),
)
