"""Pages of the two paper searches: a size by either name; a cursor, an offset or a page number."""

from typing import Any

from marshmallow import post_load

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from service.operations import arguments
from service.operations.base import Arguments


class PagedArguments(Arguments):
    """The arguments of both searches. Loading returns `limit`, and `offset` or `cursor`."""

    limit = arguments.page_limit(CONTRACT.papers_default)
    page_size = arguments.Number("The same as limit.", 1, CONTRACT.page_items)
    offset = arguments.Number(
        f"Papers to skip; offset + limit must be at most {CONTRACT.paper_offset_items:,}.",
        0,
        CONTRACT.paper_offset_items,
    )
    page = arguments.Number("Page number from 1, instead of offset.", 1)
    cursor = arguments.cursor()

    @post_load
    def in_one_way(self, given: dict[str, Any], **_: Any) -> dict[str, Any]:
        """The page by `limit`, and by `offset` or `cursor`; raises `InvalidRequest` on a clash."""
        limit = _one(given, "limit", "page_size") or CONTRACT.papers_default
        start = _one(given, "offset", "page", "cursor")
        kept = {key: value for key, value in given.items() if key not in ("page_size", "page")}
        if start is None or "cursor" in given:
            return {**kept, "limit": limit}
        offset = start if "offset" in given else (start - 1) * limit
        if offset + limit > CONTRACT.paper_offset_items:
            raise InvalidRequest(
                f"offset + limit is {offset + limit:,}; the maximum is "
                f"{CONTRACT.paper_offset_items:,}.",
                param="offset" if "offset" in given else "page",
                hint="Narrow the search with more words, or with author:, venue: or year: terms.",
            )
        return {**kept, "limit": limit, "offset": offset}


def _one(paging: dict[str, Any], *names: str) -> Any:
    """The value of the single given name; None if none is given."""
    given = [name for name in names if name in paging]
    if len({paging[name] for name in given}) > 1 or (len(given) > 1 and names[0] != "limit"):
        raise InvalidRequest(f"Use {' or '.join(given)}, not both.", param=given[1])
    return paging[given[0]] if given else None
