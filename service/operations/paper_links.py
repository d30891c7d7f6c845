"""The next calls for papers, as REST addresses, for REST bodies and the command line."""

from typing import Any

from evidence.model import Continuation
from service.operations.bodies import filled
from service.operations.papers import PAPER_OPERATIONS

#: Links that can occur several times; they are lists. `next_page` is named `next` here.
SEVERAL = ("summary", "translation", "did_you_mean")
NAMES = {"next_page": "next"}

_OPERATIONS = {operation.name: operation for operation in PAPER_OPERATIONS}


def body(wired: dict[str, Any], url: str) -> dict[str, Any]:
    """A body with its links and its own URL; a list without a next page has a null link."""
    links = {"self": url, **wired.get("links", {})}
    if "has_more" in wired:
        links.setdefault("next", None)
    return {**wired, "links": links}


def as_links(calls: list[Continuation]) -> dict[str, Any]:
    """`{"links": {name: URL}}`; empty if there are no calls."""
    links: dict[str, Any] = {}
    for continuation in calls:
        name = NAMES.get(continuation.why, continuation.why)
        if name in SEVERAL:
            links.setdefault(name, []).append(href(continuation))
        else:
            links[name] = href(continuation)
    return {"links": links} if links else {}


def href(continuation: Continuation) -> str:
    """The address of a call: some arguments in the path of its route, the others in the query."""
    operation = _OPERATIONS[continuation.operation]
    path, rest = operation.route.path, continuation.args
    for variant, fixed in operation.route.variants.items():
        if fixed.items() <= rest.items():
            path, rest = variant, {k: v for k, v in rest.items() if k not in fixed}
    return str(filled(operation, path, rest))
