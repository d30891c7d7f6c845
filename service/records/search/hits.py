"""Turns a ranked record into a hit: the passages that set its rank, and the calls that open them.

The call of a window, run, lands on that window. A field that one read shows whole needs no more
than its name. In a longer one the first hits print the query with the number of their match, so
that `next_match` walks on; others print offsets.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, NamedTuple

from evidence.cached import cached_property
from evidence.find import Passage
from evidence.handles import RecordRef
from evidence.hits import Hit, Match
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Continuation, window_read
from evidence.question import Question
from evidence.ranking import Group, Ranker
from evidence.text import beginning, excerpt, mark
from service.records.search.blocks import Likely, Part, RankedRecord
from service.records.engine import Snapshot, Stored
from service.records.engine.later import gather, run
from service.records.search.required_parts import groups_to_read
from service.records.view.texts import (
    PassageStarts,
    TooLong,
    either,
    matches,
    passages_at,
    text_of,
)
from service.records.view import View
from service.records.view.streams import StreamView

#: Matches of a field that are looked through for that of a window.
MATCHES_TRIED: Final = 10
#: Phrases, prefixes and the like of a query; a call of one with more carries offsets.
PARTS_MAX: Final = 4
#: Segments of a large value that are read for it.
SEGMENTS_READ: Final = 16


class Window(NamedTuple):
    """A passage of one field with the text around it; offsets are code points of the field."""

    part: Part
    passage: Passage
    start: int
    end: int

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.end >= self.part.total

    @property
    def match(self) -> tuple[int, int]:
        """Where the passage is in its field."""
        base, span = self.part.offset, self.passage.span
        return base + span.start, base + span.end

    def read_from(self) -> int:
        """Where a read by offset begins: at the latest where the window does."""
        before = self.passage.span.start - CONTRACT.match_before_chars
        return min(self.start, self.part.offset + beginning(self.part.text, before))

    def marking(self, inner: "Window") -> "Window":
        """This window with the marks of the passage of another one, which is inside it."""
        span, by = self.passage.span, inner.part.offset - self.part.offset
        marks = list(span.marks)
        for start, end in inner.passage.span.marks:
            if not any(start + by < last and first < end + by for first, last in span.marks):
                marks.append((start + by, end + by))
        span = span._replace(marks=tuple(sorted(marks)))
        return self._replace(passage=self.passage._replace(span=span))

    def marked_text(self) -> str:
        """The text with its marks."""
        base, marks = self.part.offset, self.passage.span.marks
        return mark(self.part.text, start=self.start - base, end=self.end - base, marks=marks)[0]


class Reads:
    """The calls for the hits of one question; `groups` are its words as a read has them.

    Without, they are looked for when a call needs them. If they are `alike`, they are those that
    the search has looked for.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        view: View,
        question: Question,
        groups: Sequence[Group] | None,
        *,
        alike: bool,
    ) -> None:
        self._snapshot, self._view, self._question = snapshot, view, question
        self._read_groups, self._alike = groups, alike
        #: Whether the records that match each part of the query are counted quickly.
        self._is_plain = len(question.required) <= PARTS_MAX
        self._matches: dict[tuple[int, str], AsyncIterator[tuple[int, int]]] = {}
        self._ranges: dict[tuple[int, str], list[tuple[int, int]]] = {}

    def of(self, id: str, ranked: RankedRecord, window: Window, *, walks: bool) -> Continuation:
        """The call of a window; one that `walks` carries the query if it leads there."""
        path, total = window.part.field, window.part.total
        if total <= CONTRACT.window_chars:
            return window_read(id, path, {})
        number = self._number(ranked, window) if walks and self._is_plain else None
        if number is not None:
            return window_read(id, path, self._by_query(number, window))
        first = window.read_from()
        last = max(window.end, window.match[1] + CONTRACT.match_after_chars)
        size = min(last, total) - first
        return window_read(
            id, path, {"offset_chars": first, "limit_chars": min(size, CONTRACT.window_chars_max)}
        )

    def begin(self, records: Sequence[RankedRecord]) -> None:
        """Begins to look for the matches of long values that windows of these records may show."""
        for ranked in records if self._is_plain and self._read_groups is not None else ():
            for field in {likely.field for likely in ranked.likely} & ranked.record.big.keys():
                self._matches[ranked.record.seq, field] = self._matches_of(ranked, field)

    def number(self, records: Sequence[RankedRecord], windows: Sequence[Sequence[Window]]) -> None:
        """Numbers the matches of the long fields of some windows."""
        fields = {
            (ranked.record.seq, window.part.field): ranked
            for ranked, hit_windows in zip(records, windows)
            for window in hit_windows
            if window.part.total > CONTRACT.window_chars
        }
        if self._is_plain:
            ranges = [
                self._matches.get(field_key) or self._matches_of(ranked, field_key[1])
                for field_key, ranked in fields.items()
            ]
            self._ranges |= zip(fields, run(gather(map(_first_matches, ranges))))

    def _by_query(self, number: int, window: Window) -> dict[str, Any]:
        return {
            "query": self._question.text,
            **({"match": number} if number > 1 else {}),
            "before_chars": max(CONTRACT.match_before_chars, window.match[0] - window.start),
            "after_chars": CONTRACT.match_after_chars,
        }

    @cached_property
    def _groups(self) -> Sequence[Group]:
        if self._read_groups is not None:
            return self._read_groups
        return groups_to_read(self._snapshot, self._view, self._question)

    def _number(self, ranked: RankedRecord, window: Window) -> int | None:
        """Which match of its field a window shows; None if it is none of the first."""
        ranges = self._ranges[ranked.record.seq, window.part.field]
        for number, (start, end) in enumerate(ranges, start=1):
            if start == window.match[0] and end >= window.end - CONTRACT.match_after_chars:
                return number
        return None

    def _matches_of(self, ranked: RankedRecord, field: str) -> AsyncIterator[tuple[int, int]]:
        ordinal = ranked.stream.search_ordinal(field)
        groups, possible, apart, passage_starts = self._groups, -1, False, None
        if self._alike:
            possible, apart = ranked.possible, field in ranked.apart
            starts = ranked.starts.get(field)
            passage_starts = (
                None if starts is None else PassageStarts(either(groups, possible), starts)
            )
        text = text_of(self._snapshot, ranked.record, field, ordinal, SEGMENTS_READ, passage_starts)
        return matches(text, self._question.text, groups, possible, apart, at_once=True)


async def _first_matches(ranges: AsyncIterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first matches of a field; none if too much would have to be read for them."""
    first = list[tuple[int, int]]()
    try:
        async for span in ranges:
            first.append(span)
            if len(first) == MATCHES_TRIED:
                break
    except TooLong:
        return []
    return first


#: A passage with the part of a record that it is in.
_PassageInPart = tuple[Part, Passage]
#: Once all words are proven, parts whose best passage may be worth less than this share of the best
#: one are not read.
WORTH_SHARE: Final = 0.75
#: Characters that a window shows around the passage it proves, if there is room for them.
BESIDE_CHARS: Final = 40


def hits_of(
    ranker: Ranker, records: Sequence[RankedRecord], ranks: Sequence[int], reads: Reads
) -> list[Hit]:
    """The hits of ranked records, whose ranks ascend."""
    groups = ranker.groups
    walking = sum(rank <= CONTRACT.full_hits for rank in ranks)
    reads.begin(records[:walking])
    windows = [_windows(groups, ranked, rank) for ranked, rank in zip(records, ranks)]
    reads.number(records[:walking], windows[:walking])
    hits = zip(records, ranks, windows)
    return [_hit(ranker, ranked, rank, hit_windows, reads) for ranked, rank, hit_windows in hits]


def _hit(
    ranker: Ranker, ranked: RankedRecord, rank: int, windows: Sequence[Window], reads: Reads
) -> Hit:
    matched = [ranker.groups[number] for number in sorted(ranked.score.held)]
    missing = [group for n, group in enumerate(ranker.groups) if n not in ranked.score.held]
    hit = identified(ranked.stream, ranked.record, rank)
    hit.matched_fields = list(dict.fromkeys(likely.field for likely in ranked.likely))
    hit.matches = [
        _match(window, reads.of(hit.id, ranked, window, walks=rank <= CONTRACT.full_hits))
        for window in windows
    ]
    hit.coverage = round(ranker.coverage(ranked.score.held), 2)
    hit.matched_words = [group.label for group in matched]
    hit.missing_words = [group.label for group in missing]
    hit.forms = dict(_forms(matched, ranked.texts))
    return hit


def identified(stream: StreamView, record: Stored, rank: int) -> Hit:
    """A hit that says which record it is, and nothing about how it matches."""
    ref = RecordRef(stream.name, record.record_key, stream.connection_id)
    return Hit(
        ref=ref,
        id=str(ref),
        title=stream.title(record) or None,
        authored_at=stream.time(record, stream.granted),
        emitted_at=stream.emitted_at(record),
        source=stream.source,
        url=ref.url,
        rank=rank,
        deleted_at=stream.deleted_at(record),
    )


def _windows(groups: Sequence[Group], ranked: RankedRecord, rank: int) -> list[Window]:
    """The best window of a hit, those with further words, then others as good as the first.

    None is of the title, if there are others and the line of the hit shows its words.
    """
    size = BUDGETS.first_window_chars if rank == 1 else BUDGETS.later_window_chars
    title = ranked.stream.title_field
    passages = _passages(
        groups, ranked, [likely for likely in ranked.likely if likely.field != title]
    )
    if passages:
        most = BUDGETS.title_chars if rank <= CONTRACT.full_hits else BUDGETS.later_title_chars
        passages += _lacking(groups, ranked, passages, most)
    else:
        passages = _passages(groups, ranked, ranked.likely)
    proving, alike, proven = list[_PassageInPart](), list[_PassageInPart](), frozenset[int]()
    for part, passage in passages:
        if not passage.held <= proven:
            proving.append((part, passage))
        elif passage.worth == passages[0][1].worth:
            alike.append((part, passage))
        proven |= passage.held
    windows = list[Window]()
    for part, passage in proving[: CONTRACT.windows_proven]:
        window = _window(part, passage, size=BUDGETS.later_window_chars if windows else size)
        around = next((n for n, earlier in enumerate(windows) if _is_inside(window, earlier)), None)
        if around is None:
            windows.append(window)
        else:
            windows[around] = windows[around].marking(window)
    for part, passage in alike:
        window = _window(part, passage, size=BUDGETS.later_window_chars)
        if len(windows) < CONTRACT.windows_per_hit:
            if not any(_overlap(window, earlier) for earlier in windows):
                windows.append(window)
    return windows


def _passages(
    groups: Sequence[Group], ranked: RankedRecord, likely: Sequence[Likely]
) -> list[_PassageInPart]:
    """Passages, best first: rarest words, then the shorter.

    Once they hold all words of the record, parts that cannot hold one nearly as good are not read.
    """
    passages, best, proven = list[_PassageInPart](), 0.0, set[int]()
    for _, worth, promise in likely:
        if worth < WORTH_SHARE * best and proven >= ranked.score.held:
            break
        part = promise.get()
        segment, most = (part.offset, part.text, part.total), CONTRACT.windows_per_hit
        for passage in passages_at(*segment, groups, most, ranked.score.held):
            best = max(best, passage.worth)
            proven |= passage.held
            passages.append((part, passage))
    passages.sort(key=lambda pair: (-pair[1].worth, pair[1].span.end - pair[1].span.start))
    return passages


def _lacking(
    groups: Sequence[Group], ranked: RankedRecord, passages: Sequence[_PassageInPart], most: int
) -> list[_PassageInPart]:
    """Passages of the words that no other passage has.

    None is of a word that the first `most` characters of the title show.
    """
    words = ranked.score.held.difference(*(passage.held for _, passage in passages))
    title, lacking = ranked.stream.title_field, list[_PassageInPart]()
    for likely in (
        sorted(ranked.likely, key=lambda candidate: candidate.field != title) if words else ()
    ):
        part = likely.part.get()
        segment = part.offset, part.text, part.total
        while words and (best := passages_at(*segment, groups, 1, words)):
            words -= best[0].held
            if likely.field != title or part.offset + best[0].span.end >= most:
                lacking.append((part, best[0]))
    return lacking


def _is_inside(inner: Window, outer: Window) -> bool:
    """Whether the passage of one window is inside another."""
    start, end = inner.match
    return inner.part.field == outer.part.field and outer.start <= start and end <= outer.end


def _overlap(window: Window, earlier: Window) -> bool:
    apart = window.start >= earlier.end or earlier.start >= window.end
    return window.part.field == earlier.part.field and not apart


def _window(part: Part, passage: Passage, *, size: int) -> Window:
    """The window of a passage. A field of at most `excerpt_chars` is shown whole."""
    span = passage.span
    size = max(size, span.end - span.start + BESIDE_CHARS)
    if part.total <= BUDGETS.excerpt_chars or size > BUDGETS.excerpt_chars:
        size = BUDGETS.excerpt_chars
    start, end = excerpt(part.text, span, size=size)
    return Window(part, passage, part.offset + start, part.offset + end)


def _match(window: Window, read: Continuation) -> Match:
    return Match(
        field_path=window.part.field,
        shown=window.marked_text(),
        start=window.start,
        end=window.end,
        total=window.part.total,
        match_start=window.match[0],
        match_end=window.match[1],
        complete=window.whole,
        read=read,
    )


def _forms(groups: Sequence[Group], texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(word of the question, word of the text) of words that texts have only in another form."""
    formed = [group for group in groups if group.forms]
    whole = "".join([f" {text} \n" for text in texts]) if formed else ""
    for group in formed:
        (literal, _), *form_needles = group.needles
        if literal in whole:
            continue
        for form, (needle, _) in zip(group.forms, form_needles):
            if needle in whole:
                yield group.label, " ".join(form.words)
                break
