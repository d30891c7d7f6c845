"""Reads texts in ranges, and finds matches of a query in the order in which a reader visits them.

A text is in memory, or in chunk rows that an index finds passages in.
"""

import re
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from evidence.find import RECORD_PASSAGE_CHARS, Passage, literals, passages, spans
from evidence.fold import fold
from evidence.limits import CONTRACT
from evidence.pointer import find, searched_text
from evidence.question import Query, Term
from evidence.ranking import Group
from evidence.work import check, portions
from service.records.engine import Big, Snapshot, Spellings, Stored
from service.records.engine.later import Later, ready

CHUNK = CONTRACT.chunk_chars
#: A segment runs over its own length by more than the longest query, so that no match is cut.
OVERLAP = CONTRACT.passage_chars - CONTRACT.passage_stride_chars
#: Passages that are read at a time.
PASSAGES_TOGETHER: Final = 16


class Segment(NamedTuple):
    """A part of a text at `offset`; it may run over its `own` length, so that no match is cut."""

    offset: int
    text: str
    own: int


Segments = AsyncIterator[Segment]
Range = tuple[int, int]


class PassageStarts(NamedTuple):
    """Where all passages of a large value start that hold one of some terms, in order."""

    spellings: Spellings
    starts: Sequence[int]


class Text(Protocol):
    """A text of `total` code points."""

    total: int

    def read(self, start: int, end: int) -> Later[str]: ...

    def segments(self, groups: Sequence[Spellings], *, through: bool = False) -> Segments:
        """The segments that can hold one of every group, in order; all segments without groups.

        The index is asked now where they are. With `through`, all of them will be read. Raises
        `TooLong` if there are too many.
        """


class TooLong(Exception):
    """More segments of a text would have to be read than may be."""


class InlineText:
    """A text that is in memory: one segment."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.total = len(text)

    def read(self, start: int, end: int) -> Later[str]:
        return ready(self._text[start:end])

    async def segments(self, groups: Sequence[Spellings], *, through: bool = False) -> Segments:
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
        starts_read = starts.starts if starts and len(starts.starts) <= (most or 0) else ()
        self._texts = {start: self._passage(start) for start in starts_read}

    def read(self, start: int, end: int) -> Later[str]:
        end = min(end, self.total)
        if start >= end:
            return ready("")
        numbers = chunks_of(start, end)
        first = numbers[0] * CHUNK
        text = self._snapshot.text(self._big, numbers[0], numbers[-1])
        return text.then(lambda text: text[start - first : end - first])

    def segments(self, groups: Sequence[Spellings], *, through: bool = False) -> Segments:
        if not groups or self._ordinal is None:
            return self._counted(self._all())
        starts = self._starts_of(self._ordinal, groups, self._budget if through else None)
        return self._counted(self._passages(starts, through))

    def _starts_of(
        self, ordinal: int, groups: Sequence[Spellings], most: int | None
    ) -> Later[list[int]]:
        """Where passages start that hold one of every group; one more than `most` is too many."""
        if self._starts is not None and groups == [self._starts.spellings]:
            return ready(list(self._starts.starts))
        limit = None if most is None else most + 1
        return self._snapshot.passages_with(self._seq, ordinal, groups, limit).then(sorted)

    async def _counted(self, segments: Segments) -> Segments:
        """The same segments as long as the text may be read from."""
        async for segment in segments:
            if self._budget is not None:
                if not self._budget:
                    raise TooLong
                self._budget -= 1
            check("looking for text in a very long field")
            yield segment

    async def _passages(self, promise: Later[list[int]], through: bool) -> Segments:
        starts = await promise
        if through and self._budget is not None and len(starts) > self._budget:
            raise TooLong
        for number in range(0, len(starts), PASSAGES_TOGETHER):
            some = starts[number : number + PASSAGES_TOGETHER]
            texts = [self._texts.get(start) or self._passage(start) for start in some]
            for start, passage in zip(some, texts):
                text = await passage
                is_last = start + len(text) == self.total
                yield Segment(start, text, len(text) if is_last else CONTRACT.passage_stride_chars)

    def _passage(self, start: int) -> Later[str]:
        return self.read(start, start + CONTRACT.passage_chars)

    async def _all(self) -> Segments:
        """Every chunk, each read once."""
        chunks = self._snapshot.chunks(self._big)
        if self._budget is not None:  # one more, so that it is seen that there are too many
            text = await self._snapshot.text(self._big, 0, min(self._budget, self._big.chunks - 1))
            chunks = portions(text, CHUNK)
        chunk = next(chunks, "")
        for number, following in enumerate(chunks):
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
    text: Text,
    needle: str,
    groups: Sequence[Group],
    possible: int = -1,
    apart: bool = False,
    *,
    at_once: bool = False,
) -> AsyncIterator[Range]:
    """Ranges that match, in walking order.

    The text itself first, in whole words: with its punctuation if it has some, else as a phrase.
    If that is nowhere, the passages that answer it best, by the words and forms of `groups`; if
    there is none either, the text anywhere, inside words too.

    `possible` are the groups that the text may hold, as bits by their number. The others, if any,
    are not looked for, and neither is what holds every word. It is not where groups are `apart`
    either: no segment of the text holds all of them.

    With `at_once`, the index is asked now for every way to look, not for each when it is tried.
    """
    some, every = _possible_groups(needle, groups, possible, apart)
    collect = list if at_once else iter
    return _first_of(collect(_ways(text, needle, some, every, collect)))


def _ways(
    text: Text, needle: str, groups: Sequence[Group], every: bool, collect: Callable[..., Any]
) -> Iterator[AsyncIterator[Range]]:
    """The ways to look for a text, in their order."""
    folded = fold(needle).strip()
    words = folded.split()
    if every and words and _PUNCTUATION.search(needle):
        # The last word may go on.
        prefixed = [[Term((word,), prefix=n == len(words))] for n, word in enumerate(words, 1)]
        yield _ranges(text.segments(prefixed), partial(_punctuated, needle, folded))
    if every and words:
        phrase = partial(_phrases, Query(needle, (Term((*words,)),)))
        yield _ranges(text.segments([[Term((word,))] for word in words]), phrase)
    narrowed = (text.segments(terms, through=True) for terms in _narrowing(groups, every))
    yield _passages(collect(narrowed), text.total, groups)
    yield _ranges(text.segments(()), partial(literals, needle=needle))


async def _first_of(ways: Iterable[AsyncIterator[Range]]) -> AsyncIterator[Range]:
    """The ranges of the first of several ways that has any."""
    for ranges in ways:
        is_empty = True
        async for span in ranges:
            is_empty = False
            yield span
        if not is_empty:
            return


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


async def _ranges(
    segments: Segments, ranges_in: Callable[[str], Iterable[Range]]
) -> AsyncIterator[Range]:
    """The ranges in segments that begin in their own part."""
    async for base, segment, own in segments:
        for start, end in ranges_in(segment):
            if start < own:
                yield base + start, base + end


def _punctuated(needle: str, folded: str, segment: str) -> Iterator[Range]:
    """Where a segment has a text with its punctuation, in whole words."""
    if folded in fold(segment):  # its words are there in a row, a far quicker look
        yield from ((at, end) for at, end in literals(segment, needle) if _starts_word(segment, at))


def _phrases(phrase: Query, segment: str) -> list[Range]:
    return sorted((span.start, span.end) for span in spans(segment, phrase, limit=len(segment)))


async def _passages(
    narrowed: Iterable[Segments], total: int, groups: Sequence[Group]
) -> AsyncIterator[Range]:
    """Passages of the first segments that have any, best first, each once."""
    located: list[tuple[int, Passage]] = []
    for segments in narrowed:
        async for base, segment, own in segments:
            for passage in passages_at(base, segment, total, groups, PASSAGES_MAX):
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


def _starts_word(text: str, start: int) -> bool:
    """Whether a word begins at `start`, as the index sees words."""
    if start == 0:
        return True
    before, current = fold(text[start - 1]), fold(text[start])
    return before.endswith(" ") or current.startswith(" ") or not before
