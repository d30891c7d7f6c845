"""Finds a query in a text, and the passages that answer a question best.

All offsets are code points of the text as it was given.
"""

from collections.abc import Container, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from evidence.cached import cached_property
from evidence.fold import Folded, fold, fold_literal
from evidence.question import Needle, Query
from evidence.ranking import Group
from evidence.work import checked

#: Occurrences of one term in one text that are considered, at most: the first ones.
OCCURRENCES_MAX: int = 2_000

#: A passage is at most this long in folded text: what an excerpt can show.
PASSAGE_CHARS: Final = 280
#: The limit for records, because a page of hits has little room.
RECORD_PASSAGE_CHARS: Final = 200
#: Occurrences of one spelling in one text that a passage is chosen from.
SPELLING_OCCURRENCES_MAX: Final = 200
#: Replaces the space at an end where a text is cut; no word contains it.
CUT: Final = "\0"


class Span(NamedTuple):
    """A range of text that proves a match, and its terms: ascending, without overlap."""

    start: int
    end: int
    marks: tuple[tuple[int, int], ...]


Occurrence = tuple[int, int, int]  # start and end in folded text, number of the term
Stretch = tuple[int, int, int, int]  # length, start, first and last of the occurrences in it


def spans(text: str, query: Query, *, limit: int = 3, partial: bool = False) -> list[Span]:
    """At most `limit` spans (1 or more) that each hold every wanted term, shortest first, apart.

    Empty when a wanted term is missing; with `partial` the terms that are there are enough.
    Lengths are compared in folded text, ties go to the earlier span.
    """
    return Haystack(text).spans(query, limit=limit, partial=partial)


class Haystack:
    """A text that is folded once, to find more than one thing in it."""

    def __init__(self, text: str, edges: str = "  ") -> None:
        self._text = text
        folded = self._folded.folded if self._folded else fold(text)
        self.padded = f"{edges[0]}{folded}{edges[1]}"

    @cached_property
    def _folded(self) -> Folded | None:
        """The map of offsets; None if they are those of the fold."""
        return None if self._text.isascii() else Folded(self._text)

    def spans(self, query: Query, *, limit: int = 3, partial: bool = False) -> list[Span]:
        """See `spans`."""
        padded, needles = self.padded, query.needles
        if len(needles) == 1 and needles[0][1] is None:
            # Every place of a whole word is as long as any other, so the first ones win.
            places = _occurrences(padded, needles[0], 0, limit)
            return [self.span([occurrence]) for occurrence in places]
        by_term = [_occurrences(padded, needle, number) for number, needle in enumerate(needles)]
        present = sum(map(bool, by_term))
        if not present or (present < len(needles) and not partial):
            return []
        occurrences = sorted(chain.from_iterable(by_term))
        if len(occurrences) == present:  # each occurs once
            return [self.span(occurrences)]
        chosen = _shortest(_stretches(occurrences, present), limit)
        return [self.span(occurrences[first : last + 1]) for _, _, first, last in chosen]

    def span(self, occurrences: list[Occurrence]) -> Span:
        """The span of ascending occurrences, in the offsets of the text."""
        folded, marks = None if self._text.isascii() else self._folded, list[tuple[int, int]]()
        for first, last, _ in occurrences:
            start, end = folded.original(first, last) if folded else (first, last)
            if marks and start < marks[-1][1]:  # a word inside a phrase, or two words of one ㍿
                start, end = marks[-1][0], max(end, marks.pop()[1])
            marks.append((start, end))
        return Span(marks[0][0], marks[-1][1], tuple(marks))

    def first(self, query: Query) -> Span | None:
        """The first place of the first term of a query, however long it is."""
        places = _occurrences(self.padded, query.needles[0], 0, 1)
        return self.span(places) if places else None


def literals(text: str, needle: str) -> Iterator[tuple[int, int]]:
    """Every place that reads `needle`, whatever its case, accents and width; none overlap.

    Places may begin and end inside words. A needle of nothing but accents is found nowhere.
    """
    folded_needle = fold_literal(needle)
    if not folded_needle:
        return
    folded = Folded(text, literal=True)
    free = 0
    position = folded.folded.find(folded_needle)
    while position >= 0:
        start, end = folded.original(position, position + len(folded_needle))
        if start >= free:
            yield start, end
            free = end
        position = folded.folded.find(folded_needle, position + len(folded_needle))


def _occurrences(
    padded: str, needle: Needle, number: int, most: int = OCCURRENCES_MAX
) -> list[Occurrence]:
    """The places of term `number` in folded text that was `padded` with a space at both ends."""
    text, pattern = needle
    occurrences: list[Occurrence] = []
    position = padded.find(text)
    while position >= 0 and len(occurrences) < most:
        after = position + len(text) - 1
        if pattern is None:
            occurrences.append((position, after - 1, number))
        elif match := pattern.match(padded, position):
            after = match.end()
            occurrences.append((position, after - 1, number))
        position = padded.find(text, after)
    return occurrences


def _stretches(occurrences: list[Occurrence], terms: int) -> Iterator[Stretch]:
    """The ranges that hold all `terms` and would lose one if shortened at either end."""
    inside: dict[int, int] = {}
    first = reach = 0
    for last, (_, end, term) in enumerate(occurrences):
        inside[term] = inside.get(term, 0) + 1
        reach = max(reach, end)
        if len(inside) < terms:
            continue
        while inside[occurrences[first][2]] > 1:
            inside[occurrences[first][2]] -= 1
            first += 1
        start = occurrences[first][0]
        yield reach - start, start, first, last


def _shortest(stretches: Iterator[Stretch], limit: int) -> list[Stretch]:
    """The `limit` shortest that do not overlap."""
    chosen: list[Stretch] = []
    for stretch in sorted(stretches):
        if len(chosen) == limit:
            break
        length, start, _, _ = stretch
        for long, begun, _, _ in chosen:
            if start < begun + long and begun < start + length:
                break
        else:
            chosen.append(stretch)
    return chosen


class Passage(NamedTuple):
    """A stretch of text. `held` has the numbers of its groups, `worth` is their summed idf."""

    span: Span
    worth: float
    held: frozenset[int]


def passages(
    text: str,
    groups: Sequence[Group],
    *,
    limit: int = 3,
    most: int = PASSAGE_CHARS,
    among: Container[int] | None = None,
    cut: tuple[bool, bool] = (False, False),
) -> list[Passage]:
    """At most `limit` passages of a text, best first, apart; none where it holds no group.

    One of several words has at most `most` characters of folded text. The one with the rarest words
    wins, then the shorter, then the earlier. `among` are the numbers of the groups to look for, if
    the others are known to be absent. `cut` is whether the text was cut at its start and at its
    end: a word at such an end is not taken for a whole one.
    """
    haystack = Haystack(text, "".join(CUT if is_cut else " " for is_cut in cut))
    ranges = sorted(
        {
            hit
            for number, group in enumerate(groups)
            if group.count and (among is None or number in among)
            for needle in group.needles
            for hit in _occurrences(haystack.padded, needle, number, SPELLING_OCCURRENCES_MAX)
        }
    )
    chosen: list[tuple[int, int, float, list[Occurrence]]] = []
    for worth, length, first, last in sorted(_worthwhile(ranges, groups, most)):
        start = ranges[first][0]
        end = start + length
        if all(end <= begun or start >= done for begun, done, _, _ in chosen):
            chosen.append((start, end, -worth, ranges[first : last + 1]))
            if len(chosen) == limit:
                break
    return [
        Passage(haystack.span(inside), worth, frozenset([number for _, _, number in inside]))
        for _, _, worth, inside in chosen
    ]


def _worthwhile(
    occurrences: Sequence[Occurrence], groups: Sequence[Group], most: int
) -> Iterator[tuple[float, int, int, int]]:
    """(minus the worth, length, first, last) of stretches that lose a group if shortened."""
    for first, (start, reach, number) in enumerate(
        checked(occurrences, "looking for passages", 64)
    ):
        worth, counted = 0.0, set[int]()
        for last in range(first, len(occurrences)):
            _, end, group = occurrences[last]
            if end > reach:
                reach = end
            if reach - start > most and last > first:
                break
            if group not in counted:
                counted.add(group)
                worth -= groups[group].idf
                yield worth, reach - start, first, last
            elif group == number:
                break  # the same stretch begins later
