"""A ranked record as a hit: what it is, and the passages that earned its rank, each with its call.

The call of a window, run, lands on that window. A field that one read shows whole needs no more
than its name. In a longer one the first hits print the query with the number of their match, so
that `next_match` walks on; others print offsets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Final

from evidence import routes
from evidence.find import RECORD_PASSAGE_CHARS, Passage, passages
from evidence.fold import fold
from evidence.handles import RecordRef
from evidence.hits import Hit, Match
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Continuation, Source, window_read
from evidence.proven import spelling
from evidence.query import needle
from evidence.question import Question
from evidence.ranking import Group, Ranker
from evidence.text import beginning, excerpt, mark
from service.records import lists
from service.records.blocks import Part, Ranked
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


#: A further window of a hit adds at least this share of the worth of its first one.
WORTH_ADDED: Final = 0.75
#: Characters that a window shows beside the passage it proves, if there is room for them.
BESIDE_CHARS: Final = 40


def hit_of(ranker: Ranker, one: Ranked, rank: int, reads: Reads) -> Hit:
    """The hit of a ranked record, which is number `rank` of its question."""
    stream, record = one.stream, one.record
    ref = RecordRef(stream.name, record.record_key, stream.connection_id)
    size = BUDGETS.first_window_chars if rank == 1 else BUDGETS.later_window_chars
    windows = _windows(ranker.groups, one, size)
    held = [ranker.groups[number] for number in sorted(one.score.held)]
    missing = [group for n, group in enumerate(ranker.groups) if n not in one.score.held]
    id = str(ref)
    return Hit(
        ref=ref,
        id=id,
        title=lists.title_of(stream, record) or None,
        authored_at=lists.time_of(stream, record, stream.granted),
        emitted_at=record.emitted_at(stream.granted),
        source=source_of(stream.connection_id, stream.connector_key, stream.display_name),
        url=f"{routes.record(stream.name, record.record_key)}"
        f"?connection_id={routes.name(stream.connection_id)}",
        matched_fields=list(dict.fromkeys(window.field for window in windows)),
        matches=[
            _match(window, reads.of(id, one, window, walks=rank <= CONTRACT.full_hits))
            for window in _shown(windows, ranker.groups, stream.title_field)
        ],
        rank=rank,
        coverage=round(ranker.coverage(one.score.held), 2),
        matched_words=[spelling(group.word) for group in held],
        missing_words=[spelling(group.word) for group in missing],
        forms=dict(_forms(held, windows)),
    )


def _windows(groups: Sequence[Group], one: Ranked, size: int) -> list[Window]:
    """The passages of a record, best first: rarest words, then the shorter, then field order.

    The best one has `size` characters if its passage needs no more, the others have fewer.
    """
    found = [
        (part, passage)
        for part in one.parts
        for passage in passages(
            part.text,
            groups,
            folded=part.folded,
            limit=CONTRACT.windows_per_hit,
            most=RECORD_PASSAGE_CHARS,
            among=one.score.held,
        )
    ]
    found.sort(key=lambda each: (-each[1].worth, each[1].span.end - each[1].span.start))
    chosen: list[Window] = []
    for each in found:
        window = _window(*each, size=BUDGETS.later_window_chars if chosen else size)
        if not any(_overlap(window, other) for other in chosen):
            chosen.append(window)
    return chosen


def _shown(
    windows: Sequence[Window], groups: Sequence[Group], title: str | None
) -> Sequence[Window]:
    """The windows that a hit shows: not the title again, and none of little worth.

    A further one is as good as the first, or proves words that those before it do not.
    """
    beside = [window for window in windows if window.field != title] or list(windows)
    shown, proven = beside[:1], beside[0].held if beside else frozenset[int]()
    for one in beside[1:]:
        best = beside[0].worth
        added = sum(groups[number].idf for number in one.held - proven)
        if one.worth >= best or added >= WORTH_ADDED * best:
            shown.append(one)
            proven |= one.held
    return shown[: CONTRACT.windows_per_hit]


def _overlap(one: Window, other: Window) -> bool:
    return one.field == other.field and one.start < other.end and other.start < one.end


def _window(part: Part, passage: Passage, *, size: int) -> Window:
    """The window of a passage. A field of at most `excerpt_chars` is shown whole."""
    name, base, text, _, total = part
    span = passage.span
    size = max(size, span.end - span.start + BESIDE_CHARS)
    if total <= BUDGETS.excerpt_chars or size > BUDGETS.excerpt_chars:
        size = BUDGETS.excerpt_chars
    start, end = excerpt(text, span, size=size)
    shown, _ = mark(text, start=start, end=end, marks=span.marks)
    return Window(
        name,
        shown,
        base + start,
        base + end,
        total,
        base + span.start,
        base + span.end,
        base + beginning(text, span.start - CONTRACT.match_before_chars),
        passage.worth,
        passage.held,
    )


def _match(window: Window, read: Continuation) -> Match:
    return Match(
        field_path=window.field,
        shown=window.shown,
        start=window.start,
        end=window.end,
        total=window.total,
        match_start=window.match_start,
        match_end=window.match_end,
        complete=window.whole,
        read=read,
    )


def _forms(held: Sequence[Group], windows: Sequence[Window]) -> Iterator[tuple[str, str]]:
    """(word of the question, word of the text) of words that stand there in another form only."""
    folded = [f" {fold(window.shown)} " for window in windows]
    for group in held:
        if not group.forms or any(needle(group.word)[0] in text for text in folded):
            continue
        for form in group.forms:
            if any(needle(form)[0] in text for text in folded):
                yield spelling(group.word), " ".join(form.words)
                break


@lru_cache(maxsize=1024)
def source_of(connection_id: str, connector_key: str, display_name: str | None) -> Source:
    """The source of a connection's records, one value for all of them."""
    return Source(connection_id, connector_key, display_name or None)
