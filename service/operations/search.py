"""search: hits with proven windows over everything the grant shows."""

from functools import partial
from typing import Any

from evidence.hits import SearchPage
from evidence.limits import CONTRACT
from renderers import search as renderer
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session, run_of
from evidence import routes
from service.ports import Answer, SearchQuery


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


def ask(session: Session, *, query: str, **args: Any) -> Answer[SearchPage]:
    """Return the page of the source."""
    return session.rs.search(SearchQuery(query, **args))


OPERATION = RecordOperation(
    name="search",
    title="Search records",
    description=(
        "Finds records in all sources this token can read, best match first; no word is "
        "required. Each hit has its id, the matching text and the call that opens it there."
    ),
    arguments=SearchArguments(),
    ask=ask,
    run=run_of(ask, cut_tail=True, widen=True),
    render=renderer.render,
    fit=renderer.fit,
    route=Route(
        "/v1/search",
        names={"query": "q"},
        defaults={"limit": CONTRACT.search_rest_default},
        link=routes.link_excerpts,
        posted=True,
        clamped=("limit",),
    ),
    rewrite=partial(arguments.renamed, q="query", order="sort"),
    examples=({"query": "quorum elm", "limit": 5},),
)
