"""Pages of a search: offsets, sizes and cursors."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from evidence.model import Continuation
from evidence.errors import Gone, InvalidRequest
from evidence.limits import CONTRACT
from evidence.papers import PaperHit, PaperPage
from service.papers.snapshot import Snapshot
from service.ports import PaperSearch

T = TypeVar("T")

_CURSOR = re.compile(r"([0-9a-f]{10})\.([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Paging:
    """A page of `limit` papers from `offset` on, of one snapshot generation."""

    operation: str
    args: dict[str, Any]
    tag: str
    offset: int
    limit: int

    @staticmethod
    def of(snapshot: Snapshot, operation: str, word: str, wanted: PaperSearch) -> "Paging":
        """The requested page; `word` is the name of its text among the arguments.

        Raises `InvalidRequest` (`invalid_cursor`, or `invalid_request` past the deepest page)
        and `Gone` (`cursor_expired`) for a cursor of another generation.
        """
        args = {word: wanted.text, "limit": wanted.limit}
        offset, limit = wanted.offset, wanted.limit
        deepest = CONTRACT.paper_offset_items
        if wanted.cursor is not None:
            offset = _opened(snapshot.tag, wanted.cursor, Continuation(operation, args, "retry"))
            limit = max(1, min(limit, deepest - offset))  # the last page may be a short one
        if offset + limit > deepest:
            raise InvalidRequest(
                f"Paging ends at {deepest} papers. Add words or fields to narrow the search.",
                param="offset" if wanted.cursor is None else "cursor",
            )
        return Paging(operation, args, snapshot.tag, offset, limit)

    def cut(self, items: Iterable[T]) -> list[T]:
        """The items of the page, plus one if more follow."""
        return list(islice(items, self.offset, self.offset + self.limit + 1))

    def page(self, hits: list[PaperHit], *, more: bool, did_you_mean: list[str]) -> PaperPage:
        """The page. Past the deepest page it has no cursor."""
        following = self.offset + self.limit
        reachable = following < CONTRACT.paper_offset_items
        return PaperPage(
            operation=self.operation,
            args=self.args,
            hits=hits,
            offset=self.offset,
            has_more=more,
            next_cursor=f"{self.tag}.{following}" if more and reachable else None,
            did_you_mean=did_you_mean,
        )


def _opened(tag: str, cursor: str, again: Continuation) -> int:
    """The offset in a cursor."""
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidRequest(
            "The cursor is invalid. Send it exactly as it was returned, or leave it out to "
            "start over.",
            code="invalid_cursor",
            param="cursor",
            calls=(again,),
        )
    if match[1] != tag:
        raise Gone(
            "The papers have changed since this cursor was issued.",
            code="cursor_expired",
            hint="Search again from the start.",
            calls=(again,),
        )
    return int(match[2])
