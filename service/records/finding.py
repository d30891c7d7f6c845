"""Where a query stands in one field, in the order a reader walks through its matches."""

import re
from collections.abc import Generator, Iterator, Sequence

from evidence.find import RECORD_PASSAGE_CHARS, Passage, literals, passages, spans
from evidence.fold import fold
from evidence.query import Query, Term
from evidence.ranking import Group
from service.records.texts import Text

#: Passages of one piece of a text, and pieces that hold only some words, that are looked at.
PASSAGES_LISTED = 8
# Signs that only a search for the very text can tell apart: not words, not spaces between them.
_PUNCTUATION = re.compile(r"[^\w\s]")


def matches(
    text: Text, needle: str, groups: Sequence[Group], possible: int = -1
) -> Iterator[tuple[int, int]]:
    """Ranges that match, in walking order.

    The text itself first, in whole words: with its punctuation if it has some, else as a phrase.
    If that is nowhere, the passages that answer it best, by the words and forms of `groups`; if
    there is none either, the text anywhere, inside words too.

    `possible` are the groups that the text may hold, as bits by their number. The others, if any,
    are not looked for, and neither is what holds every word.
    """
    some = [group for number, group in enumerate(groups) if group.count and possible >> number & 1]
    every = len(some) == sum(1 for group in groups if group.count)
    for finder in (_punctuated, _phrases) if every else ():
        if (yield from _some(finder(text, needle))):
            return
    if not (yield from _some(_passages(text, some, every))):
        yield from _inside_words(text, needle)


def _some(found: Iterator[tuple[int, int]]) -> Generator[tuple[int, int], None, bool]:
    """Yields what was found; returns whether there was anything."""
    first = True
    for one in found:
        first = False
        yield one
    return not first


def _words(needle: str) -> list[list[Term]]:
    """The words of a text, each a group by itself; the last may go on."""
    words = fold(needle).split()
    return [[Term((word,), prefix=number == len(words))] for number, word in enumerate(words, 1)]


def _punctuated(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    phrase = fold(needle).strip()
    if not phrase or not _PUNCTUATION.search(needle):
        return
    for base, piece, own in text.pieces(_words(needle)):
        if phrase not in fold(piece):  # its words are not there in a row, a far quicker look
            continue
        for start, end in literals(piece, needle):
            if start < own and _starts_word(piece, start):
                yield base + start, base + end


def _phrases(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    words = tuple(fold(needle).split())
    if not words:
        return
    phrase = Query(needle, (Term(words),))
    for base, piece, own in text.pieces([[Term((word,))] for word in words]):
        for start, end in sorted((s.start, s.end) for s in spans(piece, phrase, limit=len(piece))):
            if start < own:
                yield base + start, base + end


def _passages(text: Text, groups: Sequence[Group], every: bool) -> Iterator[tuple[int, int]]:
    """Passages, best first, each once; with `every`, those of pieces with all groups, if any."""
    found: list[tuple[int, Passage]] = []
    for wanted in _narrowing(groups, every):
        for base, piece, own in text.pieces(wanted):
            for passage in passages(
                piece, groups, limit=PASSAGES_LISTED, most=RECORD_PASSAGE_CHARS
            ):
                if passage.span.start < own:
                    found.append((base, passage))
        if found:
            break
    found.sort(key=lambda one: (-one[1].worth, one[1].span.end - one[1].span.start, one[0]))
    for base, passage in found:
        yield base + passage.span.start, base + passage.span.end


def _narrowing(groups: Sequence[Group], every: bool) -> Iterator[list[tuple[Term, ...]]]:
    """What pieces must hold: all groups, else any of them."""
    held = [group.spellings for group in groups]
    if held and every:
        yield held
    if held:
        yield [tuple(term for spellings in held for term in spellings)]


def _inside_words(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    for base, piece, own in text.pieces(()):
        for start, end in literals(piece, needle):
            if start < own:
                yield base + start, base + end


def _starts_word(text: str, start: int) -> bool:
    """Whether a word begins at `start`, as the index sees words."""
    if start == 0:
        return True
    before, here = fold(text[start - 1]), fold(text[start])
    return before.endswith(" ") or here.startswith(" ") or not before
