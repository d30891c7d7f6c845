"""A ranked record as a hit: what it is, and the passages that earned its rank, each with its call.

The call of a window, run, lands on that window. A field that one read shows whole needs no more
than its name. In a longer one the first hits print the query with the number of their match, so
that `next_match` walks on; others print offsets.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from evidence.find import Passage
from evidence.handles import RecordRef
from evidence.hits import Hit, Match
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Continuation, window_read
from evidence.question import Question
from evidence.ranking import Group, Ranker
from evidence.text import beginning, excerpt, mark
from service.records.search.blocks import Likely, Part, Shown
from service.records.engine import Snapshot
from service.records.search.required_parts import groups_to_read
from service.records.view.texts import Known, Text, TooLong, either, matches, passages_at, sought
from service.records.view.texts import text_of
from service.records.view import View

#: Matches of a field that are looked through for that of a window.
MATCHES_TRIED: Final = 10
#: Phrases, prefixes and the like of a query; a call of one with more carries offsets.
PARTS_MAX: Final = 4
#: Pieces of a large value that are read for it, and how often it is read from.
PIECES_READ: Final = 16
LOOKS: Final = 3


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

    def marking(self, other: "Window") -> "Window":
        """This window with the marks of the passage of another one, which is inside it."""
        span, by = self.passage.span, other.part.offset - self.part.offset
        marks = list(span.marks)
        for start, end in other.passage.span.marks:
            if not any(start + by < last and first < end + by for first, last in span.marks):
                marks.append((start + by, end + by))
        span = span._replace(marks=tuple(sorted(marks)))
        return self._replace(passage=self.passage._replace(span=span))

    def shown(self) -> str:
        """The text with its marks."""
        base, marks = self.part.offset, self.passage.span.marks
        return mark(self.part.text, start=self.start - base, end=self.end - base, marks=marks)[0]


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

    def of(self, id: str, one: Shown, window: Window, *, walks: bool) -> Continuation:
        """The call of a window; one that `walks` carries the query if it leads there."""
        path, total = window.part.field, window.part.total
        if total <= CONTRACT.window_chars:
            return window_read(id, path, {})
        number = self._number(one, window) if walks and self._is_plain else None
        if number is not None:
            return window_read(id, path, self._by_query(number, window))
        first = window.read_from()
        last = max(window.end, window.match[1] + CONTRACT.match_after_chars)
        size = min(last, total) - first
        return window_read(
            id, path, {"offset_chars": first, "limit_chars": min(size, CONTRACT.window_chars_max)}
        )

    def ahead(self, shown: Sequence[Shown], walking: int) -> None:
        """Fetches what windows will read, and what finds the matches of those that walk."""
        places = [each.place for one in shown for each in one.likely if each.place]
        fields = dict.fromkeys(
            (number, each.field, each.place[:2])
            for number, one in enumerate(shown[:walking] if self._is_plain else ())
            for each in one.likely
            if each.place
        )
        for number, field, place in fields:
            starts = shown[number].starts.get(field, ())
            places += [(*place, start) for start in starts if len(starts) <= PIECES_READ]
        fetch = partial(self._snapshot.fetch, places)
        asks = (ask for n, field, _ in fields for ask in self._sought(shown[n], field))
        self._snapshot.ahead(chain([fetch], asks))
        fetch()

    def walks_ahead(self, shown: Sequence[Shown], windows: Sequence[Sequence[Window]]) -> None:
        """Fetches the matches of the fields of some windows."""
        if not self._is_plain:
            return
        fields = dict.fromkeys(
            (number, window.part.field)
            for number, each in enumerate(windows)
            for window in each
            if window.part.total > CONTRACT.window_chars
        )
        found = (partial(self._first_matches, shown[n], field) for n, field in fields)
        self._snapshot.ahead(found, turns=LOOKS)

    def _by_query(self, number: int, window: Window) -> dict[str, Any]:
        return {
            "query": self._question.text,
            **({"match": number} if number > 1 else {}),
            "before_chars": max(CONTRACT.match_before_chars, window.match[0] - window.start),
            "after_chars": CONTRACT.match_after_chars,
        }

    @cached_property
    def _groups(self) -> Sequence[Group]:
        if self._given is not None:
            return self._given
        return groups_to_read(self._snapshot, self._view, self._question)

    def _number(self, one: Shown, window: Window) -> int | None:
        """Which match of its field a window shows; None if it is none of the first."""
        found = self._first_matches(one, window.part.field)
        for number, (start, end) in enumerate(found, start=1):
            if start == window.match[0] and end >= window.end - CONTRACT.match_after_chars:
                return number
        return None

    def _first_matches(self, one: Shown, field: str) -> list[tuple[int, int]]:
        """The first matches of a field; none if too much would have to be read for them."""
        place = one.record.seq, field
        if place not in self._starts:
            try:
                found = list(islice(matches(*self._looked_for(one, field)), MATCHES_TRIED))
            except TooLong:
                found = []
            self._starts[place] = found
        return self._starts[place]

    def _sought(self, one: Shown, field: str) -> Iterator[Callable[[], object]]:
        return sought(*self._looked_for(one, field))

    def _looked_for(self, one: Shown, field: str) -> tuple[Text, str, Sequence[Group], int, bool]:
        ordinal = one.stream.search_ordinal(field)
        groups, possible, apart, seen = self._groups, -1, False, None
        if self._given is not None:
            possible, apart = one.possible, field in one.apart
            starts = one.starts.get(field)
            seen = None if starts is None else Known(either(groups, possible), starts)
        text = text_of(self._snapshot, one.record, field, ordinal, PIECES_READ, seen)
        return text, self._question.text, groups, possible, apart


#: A passage with the part of a record that it is in.
_Found = tuple[Part, Passage]
#: Once all words are proven, parts whose best passage may be worth less than this share of the best
#: one are not read.
WORTH_ADDED: Final = 0.75
#: Characters that a window shows around the passage it proves, if there is room for them.
BESIDE_CHARS: Final = 40


def hits_of(ranker: Ranker, ranked: Sequence[Shown], first: int, reads: Reads) -> list[Hit]:
    """The hits of ranked records, the first of which is number `first` of its question."""
    groups, ranks = ranker.groups, range(first, first + len(ranked))
    walking = sum(rank <= CONTRACT.full_hits for rank in ranks)
    reads.ahead(ranked, walking)
    windows = [_windows(groups, one, rank) for one, rank in zip(ranked, ranks)]
    reads.walks_ahead(ranked[:walking], windows[:walking])
    each = zip(ranked, ranks, windows)
    return [_hit(ranker, one, rank, shown, reads) for one, rank, shown in each]


def _hit(ranker: Ranker, one: Shown, rank: int, shown: Sequence[Window], reads: Reads) -> Hit:
    stream, record = one.stream, one.record
    ref = RecordRef(stream.name, record.record_key, stream.connection_id)
    id, url = str(ref), ref.url
    held = [ranker.groups[number] for number in sorted(one.score.held)]
    missing = [group for n, group in enumerate(ranker.groups) if n not in one.score.held]
    return Hit(
        ref=ref,
        id=id,
        title=stream.title(record) or None,
        authored_at=stream.time(record, stream.granted),
        emitted_at=stream.emitted_at(record),
        source=stream.source,
        url=url,
        matched_fields=list(dict.fromkeys(likely.field for likely in one.likely)),
        matches=[
            _match(window, reads.of(id, one, window, walks=rank <= CONTRACT.full_hits))
            for window in shown
        ],
        rank=rank,
        coverage=round(ranker.coverage(one.score.held), 2),
        matched_words=[group.label for group in held],
        missing_words=[group.label for group in missing],
        forms=dict(_forms(held, one.texts)),
    )


def _windows(groups: Sequence[Group], one: Shown, rank: int) -> list[Window]:
    """The best window of a hit, those with further words, then others as good as the first.

    None is of the title, if there are others and the line of the hit shows its words.
    """
    size = BUDGETS.first_window_chars if rank == 1 else BUDGETS.later_window_chars
    title = one.stream.title_field
    found = _passages(groups, one, [likely for likely in one.likely if likely.field != title])
    if found:
        most = BUDGETS.title_chars if rank <= CONTRACT.full_hits else BUDGETS.later_title_chars
        found += _lacking(groups, one, found, most)
    else:
        found = _passages(groups, one, one.likely)
    proving, alike, proven = list[_Found](), list[_Found](), frozenset[int]()
    for part, passage in found:
        if not passage.held <= proven:
            proving.append((part, passage))
        elif passage.worth == found[0][1].worth:
            alike.append((part, passage))
        proven |= passage.held
    windows = list[Window]()
    for part, passage in proving[: CONTRACT.windows_proven]:
        window = _window(part, passage, size=BUDGETS.later_window_chars if windows else size)
        around = next((n for n, other in enumerate(windows) if _is_inside(window, other)), None)
        if around is None:
            windows.append(window)
        else:
            windows[around] = windows[around].marking(window)
    for part, passage in alike:
        window = _window(part, passage, size=BUDGETS.later_window_chars)
        if len(windows) < CONTRACT.windows_per_hit:
            if not any(_overlap(window, other) for other in windows):
                windows.append(window)
    return windows


def _passages(groups: Sequence[Group], one: Shown, likely: Sequence[Likely]) -> list[_Found]:
    """Passages, best first: rarest words, then the shorter.

    Once they hold all words of the record, parts that cannot hold one nearly as good are not read.
    """
    found, best, proven = list[_Found](), 0.0, set[int]()
    for _, worth, _, read in likely:
        if worth < WORTH_ADDED * best and proven >= one.score.held:
            break
        part = read()
        place, most = (part.offset, part.text, part.total), CONTRACT.windows_per_hit
        for passage in passages_at(*place, groups, most, one.score.held):
            best = max(best, passage.worth)
            proven |= passage.held
            found.append((part, passage))
    found.sort(key=lambda each: (-each[1].worth, each[1].span.end - each[1].span.start))
    return found


def _lacking(
    groups: Sequence[Group], one: Shown, found: Sequence[_Found], most: int
) -> list[_Found]:
    """Passages of the words that no other passage has.

    None is of a word that the first `most` characters of the title show.
    """
    words = one.score.held.difference(*(passage.held for _, passage in found))
    title, lacking = one.stream.title_field, list[_Found]()
    for likely in sorted(one.likely, key=lambda each: each.field != title) if words else ():
        part = likely.read()
        place = part.offset, part.text, part.total
        while words and (best := passages_at(*place, groups, 1, words)):
            words -= best[0].held
            if likely.field != title or part.offset + best[0].span.end >= most:
                lacking.append((part, best[0]))
    return lacking


def _is_inside(one: Window, other: Window) -> bool:
    """Whether the passage of one window is inside another."""
    start, end = one.match
    return one.part.field == other.part.field and other.start <= start and end <= other.end


def _overlap(one: Window, other: Window) -> bool:
    apart = one.start >= other.end or other.start >= one.end
    return one.part.field == other.part.field and not apart


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
        shown=window.shown(),
        start=window.start,
        end=window.end,
        total=window.part.total,
        match_start=window.match[0],
        match_end=window.match[1],
        complete=window.whole,
        read=read,
    )


def _forms(held: Sequence[Group], texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(word of the question, word of the text) of words that texts have only in another form."""
    formed = [group for group in held if group.forms]
    whole = "".join([f" {text} \n" for text in texts]) if formed else ""
    for group in formed:
        (literal, _), *others = group.needles
        if literal in whole:
            continue
        for form, (spelled, _) in zip(group.forms, others):
            if spelled in whole:
                yield group.label, " ".join(form.words)
                break
