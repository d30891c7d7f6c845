"""The passages of a text that answer a question best, as spans that prove what they show."""

from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

from evidence.find import Haystack, Occurrence, Span
from evidence.ranking import Group

#: A passage is at most this long in folded text: what an excerpt can show.
PASSAGE_CHARS: Final = 280
#: The same for a record: a page of hits has little room.
RECORD_PASSAGE_CHARS: Final = 200
#: Occurrences of one spelling in one text that are looked at.
OCCURRENCES_MAX: Final = 200


class Passage(NamedTuple):
    """A stretch of text with what it holds: `worth` is the rarity of its groups, `held` their
    numbers."""

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
) -> list[Passage]:
    """At most `limit` passages of a text, best first, apart; none where it holds no group.

    One of several words has at most `most` characters of folded text. The one with the rarest words
    wins, then the shorter, then the earlier. `among` are the numbers of the groups looked for, if
    the others are known not to be there.
    """
    haystack = Haystack(text)
    found = sorted(
        {
            (start, end, number)
            for number, group in enumerate(groups)
            if group.count and (among is None or number in among)
            for term in group.spellings
            for start, end, _ in haystack.occurrences(term, number, OCCURRENCES_MAX)
        }
    )
    chosen: list[tuple[int, int, float, list[Occurrence]]] = []
    ranked = sorted(_stretches(found, groups, most), key=lambda one: (-one[0], one[1], one[2]))
    for worth, _, first, last in ranked:
        start, end = found[first][0], max(one[1] for one in found[first : last + 1])
        if all(end <= begun or start >= done for begun, done, _, _ in chosen):
            chosen.append((start, end, worth, found[first : last + 1]))
            if len(chosen) == limit:
                break
    return [
        Passage(haystack.span(inside), worth, frozenset(number for _, _, number in inside))
        for _, _, worth, inside in chosen
    ]


def _stretches(
    found: Sequence[Occurrence], groups: Sequence[Group], most: int
) -> Iterator[tuple[float, int, int, int]]:
    """(worth, length, first, last) of stretches that would be worth less if they were shorter."""
    for first, (start, _, number) in enumerate(found):
        worth, seen, reach = 0.0, set[int](), 0
        for last in range(first, len(found)):
            _, end, other = found[last]
            if max(reach, end) - start > most and last > first:
                break
            reach = max(reach, end)
            if other not in seen:
                seen.add(other)
                worth += groups[other].idf
                yield worth, reach - start, first, last
            elif other == number:
                break  # the same stretch begins later
