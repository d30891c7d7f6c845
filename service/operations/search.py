"""search: hits with proven windows over everything the grant shows."""

from typing import Any

from evidence.envelope import Envelope
from evidence.limits import CONTRACT
from evidence.model import SearchPage
from service.pdpp.decode import search as reading
from renderers import search as renderer
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session
from evidence import routes
from service.ports import SearchQuery


class SearchArguments(Arguments):
    query = arguments.Text(
        'Words that must all occur; "a phrase", prefix*, -without.',
        longest=CONTRACT.query_chars,
        required=True,
    )
    streams = arguments.Names("Only these streams.")
    connection_id = arguments.connection_id()
    filter = arguments.TypedFilter()
    limit = arguments.page_limit(CONTRACT.search_default)
    cursor = arguments.cursor()


def ask(session: Session, *, query: str, **args: Any) -> Envelope:
    """The search envelope."""
    names: dict[str, Any] = {name: tuple(args.pop(name)) for name in ("streams",) if name in args}
    return session.rs.search(SearchQuery(query, **names, **args))


def run(session: Session, **args: Any) -> SearchPage:
    return reading.read(ask(session, **args), args=args)


OPERATION = RecordOperation(
    name="search",
    title="Search records",
    description=(
        "Finds records by words in all sources this token may read. Each hit shows its id, the "
        "matching text and the read_record_field call that opens it there; fetch takes the id too."
    ),
    arguments=SearchArguments(),
    ask=ask,
    run=run,
    render=renderer.render,
    fits=renderer.fits,
    route=Route(
        "/v1/search",
        names={"query": "q"},
        defaults={"limit": CONTRACT.search_rest_default},
        link=routes.link_excerpts,
        posted=True,
        clamped=("limit",),
    ),
    examples=({"query": "quorum elm", "limit": 5},),
)
