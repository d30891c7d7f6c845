"""The call of a window of a hit: run, it lands on that window.

A field that one read shows whole needs no more than its name. In a longer one the first hits print
the query with the number of their match, so that `next_match` walks on; others print offsets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

from evidence.limits import CONTRACT
from evidence.model import Continuation, window_read
from evidence.question import Question
from evidence.ranking import Group
from service.records.blocks import Ranked
from service.records.engine import Snapshot, Spellings
from service.records.finding import matches
from service.records.texts import Piece, Text, text_of
from service.records.view import View

#: Matches of a field that are looked through for that of a window.
MATCHES_TRIED: Final = 10
#: Phrases, prefixes and the like of a query; a call of one with more carries offsets.
PARTS_MAX: Final = 4
#: Pieces of a large value that are read for it.
PIECES_READ: Final = 16


@dataclass(frozen=True, slots=True)
class Window:
    """A passage of one field with the text around it; offsets are code points of the field.

    `read_from` is where a read by offset begins. `held` are the numbers of the groups it proves.
    """

    field: str
    shown: str
    start: int
    end: int
    total: int
    match_start: int
    match_end: int
    read_from: int
    worth: float
    held: frozenset[int]

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.end >= self.total


class Reads:
    """The calls for the hits of one question; `groups` are its words as a read has them."""

    def __init__(
        self, snapshot: Snapshot, view: View, question: Question, groups: Sequence[Group] | None
    ) -> None:
        self._snapshot, self._view, self._question = snapshot, view, question
        self._given = groups
        #: Whether the records that match each part of the query are counted quickly.
        self._is_plain = len(question.required) <= PARTS_MAX
        self._starts: dict[tuple[int, str], list[tuple[int, int]]] = {}

    def of(self, id: str, one: Ranked, window: Window, *, walks: bool) -> Continuation:
        """The call of a window; one that `walks` carries the query if it leads there."""
        path = window.field
        if window.total <= CONTRACT.window_chars:
            return window_read(id, path, {})
        number = self._number(one, window) if walks and self._is_plain else None
        if number is not None:
            return window_read(id, path, self._by_query(number))
        last = max(window.end, window.match_end + CONTRACT.match_after_chars)
        size = min(last, window.total) - window.read_from
        return window_read(
            id,
            path,
            {
                "offset_chars": window.read_from,
                "limit_chars": min(size, CONTRACT.window_chars_max),
            },
        )

    def _by_query(self, number: int) -> dict[str, Any]:
        return {
            "query": self._question.text,
            **({"match": number} if number > 1 else {}),
            "before_chars": CONTRACT.match_before_chars,
            "after_chars": CONTRACT.match_after_chars,
        }

    @cached_property
    def _groups(self) -> Sequence[Group]:
        if self._given is not None:
            return self._given
        return self._view.groups(self._snapshot, self._question)

    def _number(self, one: Ranked, window: Window) -> int | None:
        """Which match of its field a window shows; None if it is none of the first."""
        place = one.record.seq, window.field
        if place not in self._starts:
            self._starts[place] = self._first_matches(one, window.field)
        for number, (start, end) in enumerate(self._starts[place], start=1):
            if start == window.match_start and end >= window.end - CONTRACT.match_after_chars:
                return number
        return None

    def _first_matches(self, one: Ranked, field: str) -> list[tuple[int, int]]:
        """The first matches of a field; none if too much would have to be read for them."""
        ordinal = one.stream.search_ordinal(field)
        text = _Bounded(text_of(self._snapshot, one.record, field, ordinal))
        try:
            possible = -1 if self._given is None else one.possible
            found = matches(text, self._question.text, self._groups, possible)
            return list(islice(found, MATCHES_TRIED))
        except _TooLong:
            return []


class _TooLong(Exception):
    """More of a text would have to be read than a search may."""


class _Bounded:
    """A text of which only some pieces are read."""

    def __init__(self, text: Text) -> None:
        self._text, self.total = text, text.total
        self._left = PIECES_READ

    def read(self, start: int, end: int) -> str:
        return self._text.read(start, end)

    def pieces(self, groups: Sequence[Spellings]) -> Iterator[Piece]:
        for piece in self._text.pieces(groups):
            self._left -= 1
            if self._left < 0:
                raise _TooLong
            yield piece
