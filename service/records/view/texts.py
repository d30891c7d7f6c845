"""Texts that are read by ranges, and where a query is in them, in the order of a reader's walk.

A text is in memory, or in chunk rows that an index finds passages in.
"""

import re
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, Protocol

from evidence.find import RECORD_PASSAGE_CHARS, Passage, literals, passages, spans
from evidence.fold import fold
from evidence.limits import CONTRACT
from evidence.pointer import find, searched_text
from evidence.question import Query, Term
from evidence.ranking import Group
from evidence.work import check
from service.records.engine import Big, Snapshot, Spellings, Stored

CHUNK = CONTRACT.chunk_chars
#: A segment runs over its own length by more than the longest query, so that no match is cut.
OVERLAP = CONTRACT.passage_chars - CONTRACT.passage_stride_chars
#: Passages that are read at a time.
PASSAGES_AHEAD: Final = 16


class Segment(NamedTuple):
    """A part of a text at `offset`; it may run over its `own` length, so that no match is cut."""

    offset: int
    text: str
    own: int


class PassageStarts(NamedTuple):
    """Where all passages of a large value start that hold one of some terms, in order."""

    spellings: Spellings
    starts: Sequence[int]


class Text(Protocol):
    """A text of `total` code points."""

    total: int

    def read(self, start: int, end: int) -> str: ...

    def knows(self, groups: Sequence[Spellings]) -> bool:
        """Whether the segments that can hold one of every group are known without asking."""

    def segments(self, groups: Sequence[Spellings], *, through: bool = False) -> Iterator[Segment]:
        """The segments that can hold one of every group, in order; all segments without groups.

        With `through`, all of them will be read. Raises `TooLong` if there are too many.
        """


class TooLong(Exception):
    """More segments of a text would have to be read than may be."""


class InlineText:
    """A text that is in memory: one segment."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.total = len(text)

    def read(self, start: int, end: int) -> str:
        return self._text[start:end]

    def knows(self, groups: Sequence[Spellings]) -> bool:
        return True

    def segments(self, groups: Sequence[Spellings], *, through: bool = False) -> Iterator[Segment]:
        yield Segment(0, self._text, self.total)


class ChunkedText:
    """A large value of a record: a range costs the rows it lies in, a find the passages that match.

    `ordinal` is its field, None if the field is not in the index. At most `most` segments are read.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        seq: int,
        big: Big,
        ordinal: int | None,
        most: int | None = None,
        starts: PassageStarts | None = None,
    ) -> None:
        self._snapshot, self._seq, self._big, self._ordinal = snapshot, seq, big, ordinal
        self._budget, self._starts = most, starts
        self.total = big.chars

    def read(self, start: int, end: int) -> str:
        end = min(end, self.total)
        if start >= end:
            return ""
        numbers = chunks_of(start, end)
        text = "".join(self._snapshot.chunks(self._big, numbers[0], numbers[-1]))
        first = numbers[0] * CHUNK
        return text[start - first : end - first]

    def knows(self, groups: Sequence[Spellings]) -> bool:
        return self._starts is not None and groups == [self._starts.spellings]

    def segments(self, groups: Sequence[Spellings], *, through: bool = False) -> Iterator[Segment]:
        segments = self._all()
        if groups and self._ordinal is not None:
            segments = self._passages(self._ordinal, groups, through)
        for segment in segments:
            if self._budget is not None:
                if not self._budget:
                    raise TooLong
                self._budget -= 1
            check("looking for text in a very long field")
            yield segment

    def _passages(
        self, ordinal: int, groups: Sequence[Spellings], through: bool
    ) -> Iterator[Segment]:
        budget = self._budget if through else None
        limit = None if budget is None else budget + 1
        if self._starts is not None and self.knows(groups):
            starts = self._starts.starts
        else:
            starts = sorted(self._snapshot.passages_with(self._seq, ordinal, groups, limit))
        if budget is not None and len(starts) > budget:
            raise TooLong
        for number, start in enumerate(starts):
            if number % PASSAGES_AHEAD == 0:
                following = starts[number : number + PASSAGES_AHEAD]
                self._snapshot.ahead(partial(self._passage, offset) for offset in following)
            text = self._passage(start)
            is_last = start + len(text) == self.total
            yield Segment(start, text, len(text) if is_last else CONTRACT.passage_stride_chars)

    def _passage(self, start: int) -> str:
        return self.read(start, start + CONTRACT.passage_chars)

    def _all(self) -> Iterator[Segment]:
        """Every chunk, each read once."""
        rows = self._snapshot.chunks(self._big)
        chunk = next(rows, "")
        for number, following in enumerate(rows):
            yield Segment(number * CHUNK, chunk + following[:OVERLAP], CHUNK)
            chunk = following
        yield Segment((self._big.chunks - 1) * CHUNK, chunk, CHUNK)


def chunks_of(start: int, end: int) -> range:
    """The numbers of the chunks in which a range of characters lies."""
    return range(start // CHUNK, (end - 1) // CHUNK + 1)


def text_of(
    snapshot: Snapshot,
    record: Stored,
    name: str,
    ordinal: int | None,
    most: int | None = None,
    starts: PassageStarts | None = None,
) -> Text:
    """The text of a string field of a record. At most `most` of its segments are read."""
    if name in record.big:
        return ChunkedText(snapshot, record.seq, record.big[name], ordinal, most, starts)
    text = record.data.get(name)
    if name.startswith("/") or not isinstance(text, str):  # inside a field, or a list of texts
        text = searched_text(find(record.data, name))
    return InlineText(text)


#: The most passages of one segment of a text, and segments with only some words, considered.
PASSAGES_MAX = 8
# Signs that only a search for the very text can tell apart: not words, not spaces between them.
_PUNCTUATION = re.compile(r"[^\w\s]")


def matches(
    text: Text, needle: str, groups: Sequence[Group], possible: int = -1, apart: bool = False
) -> Iterator[tuple[int, int]]:
    """Ranges that match, in walking order.

    The text itself first, in whole words: with its punctuation if it has some, else as a phrase.
    If that is nowhere, the passages that answer it best, by the words and forms of `groups`; if
    there is none either, the text anywhere, inside words too.

    `possible` are the groups that the text may hold, as bits by their number. The others, if any,
    are not looked for, and neither is what holds every word. It is not where groups are `apart`
    either: no segment of the text holds all of them.
    """
    some, every = _possible_groups(needle, groups, possible, apart)
    for finder in (_punctuated, _phrases) if every else ():
        if (yield from _some(finder(text, needle))):
            return
    if not (yield from _some(_passages(text, some, every))):
        yield from _inside_words(text, needle)


def sought(
    text: Text, needle: str, groups: Sequence[Group], possible: int = -1, apart: bool = False
) -> Iterator[Callable[[], object]]:
    """Calls that find the first segment for each way in which `matches` looks for a text."""
    some, every = _possible_groups(needle, groups, possible, apart)
    if every and _PUNCTUATION.search(needle):
        yield partial(_begin, text.segments(_words(needle)))
    if every:
        phrase = [[Term((word,))] for word in fold(needle).split()]
        yield partial(_begin, text.segments(phrase))
    for terms in _narrowing(some, every):
        if not text.knows(terms):
            yield partial(_begin, text.segments(terms, through=True))


def _begin(segments: Iterator[Segment]) -> None:
    with suppress(TooLong):
        next(segments, None)


def _possible_groups(
    needle: str, groups: Sequence[Group], possible: int, apart: bool
) -> tuple[list[Group], bool]:
    """(the groups that a text may hold, whether one of its segments may hold all that occur)."""
    some = _possible(groups, possible)
    # With punctuation the last word may go on, so that it is not of its group.
    apart = apart and not _PUNCTUATION.search(needle)
    return some, not apart and len(some) == sum(1 for group in groups if group.count)


def _possible(groups: Sequence[Group], possible: int) -> list[Group]:
    return [group for number, group in enumerate(groups) if group.count and possible >> number & 1]


def either(groups: Sequence[Group], possible: int = -1) -> tuple[Term, ...]:
    """The terms of the groups that a text may hold."""
    return tuple(term for group in _possible(groups, possible) for term in group.spellings)


def _some(ranges: Iterator[tuple[int, int]]) -> Generator[tuple[int, int], None, bool]:
    """Yields what was found; returns whether there was anything."""
    first = True
    for span in ranges:
        first = False
        yield span
    return not first


def _words(needle: str) -> list[list[Term]]:
    """The words of a text, each a group by itself; the last may go on."""
    words = fold(needle).split()
    return [[Term((word,), prefix=number == len(words))] for number, word in enumerate(words, 1)]


def _punctuated(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    phrase = fold(needle).strip()
    if not phrase or not _PUNCTUATION.search(needle):
        return
    for base, segment, own in text.segments(_words(needle)):
        if phrase not in fold(segment):  # its words are not there in a row, a far quicker look
            continue
        for start, end in literals(segment, needle):
            if start < own and _starts_word(segment, start):
                yield base + start, base + end


def _phrases(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    words = tuple(fold(needle).split())
    if not words:
        return
    phrase = Query(needle, (Term(words),))
    for base, segment, own in text.segments([[Term((word,))] for word in words]):
        for start, end in sorted(
            (s.start, s.end) for s in spans(segment, phrase, limit=len(segment))
        ):
            if start < own:
                yield base + start, base + end


def _passages(text: Text, groups: Sequence[Group], every: bool) -> Iterator[tuple[int, int]]:
    """Passages, best first, each once; with `every`, those of segments with all groups, if any."""
    located: list[tuple[int, Passage]] = []
    for terms in _narrowing(groups, every):
        for base, segment, own in text.segments(terms, through=True):
            for passage in passages_at(base, segment, text.total, groups, PASSAGES_MAX):
                if passage.span.start < own:
                    located.append((base, passage))
        if located:
            break
    located.sort(key=lambda pair: (-pair[1].worth, pair[1].span.end - pair[1].span.start, pair[0]))
    for base, passage in located:
        yield base + passage.span.start, base + passage.span.end


def passages_at(
    offset: int,
    segment: str,
    total: int,
    groups: Sequence[Group],
    limit: int,
    among: Container[int] | None = None,
) -> list[Passage]:
    """At most `limit` passages of a segment at an offset of a text of `total` code points."""
    cut = offset > 0, offset + len(segment) < total
    return passages(segment, groups, limit=limit, most=RECORD_PASSAGE_CHARS, among=among, cut=cut)


def _narrowing(groups: Sequence[Group], every: bool) -> Iterator[list[tuple[Term, ...]]]:
    """What segments must hold: all groups, else any of them."""
    terms = [group.spellings for group in groups]
    if terms and every:
        yield terms
    if terms:
        yield [either(groups)]


def _inside_words(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    for base, segment, own in text.segments(()):
        for start, end in literals(segment, needle):
            if start < own:
                yield base + start, base + end


def _starts_word(text: str, start: int) -> bool:
    """Whether a word begins at `start`, as the index sees words."""
    if start == 0:
        return True
    before, current = fold(text[start - 1]), fold(text[start])
    return before.endswith(" ") or current.startswith(" ") or not before
