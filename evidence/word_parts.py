"""Words made of parts: hyphenated words, numbers with separators, and compounds.

`E-Mail` is two words, and `0170/1234567` is two numbers. What belongs together is an entry of its
own, its parts with spaces between them, so that `email` and `+49 170 1234567` find it.
"""

import re
from collections.abc import Iterable, Iterator
from os.path import commonprefix
from typing import Final, NamedTuple

from evidence.fold import fold
from evidence.language import LANGUAGES

#: The shortest part of a compound.
PART_CHARS: Final = 4
#: The fewest and the most digits of a number that is found without its separators.
NUMBER_DIGITS: Final = 7
_MOST_DIGITS: Final = 15
_HYPHEN = re.compile(r"(?<=\w)[-\u2010\u2011](?=\w)")
_AROUND = re.compile(r"(?<!\w)\w+(?:[-\u2010\u2011]\w+)+(?!\w)")
_NUMBER = re.compile(r"\d[\d ()./\u00a0-]{5,}\d", re.ASCII)
_DATE = re.compile(r"(?:19|20)\d\d[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](?:19|20)?\d\d(?!\d)")
#: The most characters around a hyphen that are looked at.
_REACH: Final = 48


class Joined(NamedTuple):
    """Folded words that belong together, and where they are in the text."""

    words: tuple[str, ...]
    start: int
    end: int


def joined(text: str) -> Iterator[Joined]:
    """The words of a text that hyphens join, and its numbers in several parts."""
    for match in _NUMBER.finditer(text):
        words = tuple(fold(match[0]).split())
        digits = sum(map(len, words))
        if NUMBER_DIGITS <= digits <= _MOST_DIGITS and not _DATE.match(match[0]):
            yield Joined(words, *match.span())
    if "-" not in text and "\u2010" not in text and "\u2011" not in text:
        return  # several times faster than the pattern
    end = 0
    for hyphen in _HYPHEN.finditer(text):
        if hyphen.start() < end:
            continue
        first = max(end, hyphen.start() - _REACH)
        whole = _AROUND.search(text, first, hyphen.end() + _REACH)
        if whole and whole.start() < hyphen.start():
            end = whole.end()
            words = tuple(fold(whole[0]).split())
            if len(words) > 1 and not any(map(str.isnumeric, words)):
                yield Joined(words, *whole.span())


def is_number(word: str) -> bool:
    """Whether a word has the digits of a number that is found without its separators."""
    return word.isdecimal() and NUMBER_DIGITS <= len(word) <= _MOST_DIGITS


def is_joined(entry: str, word: str) -> bool:
    """Whether an entry in parts, or a number, is a word or the same number.

    A number is the same with and without its country prefix and the zeros after it.
    """
    together = entry.replace(" ", "")
    if not (is_number(word) and is_number(together)):
        return together == word
    entry_digits, word_digits = together.lstrip("0"), word.lstrip("0")
    same = len(commonprefix((entry_digits[::-1], word_digits[::-1])))
    prefixes = {head.rstrip("0") for head in (entry_digits[:-same], word_digits[:-same])} - {""}
    return same >= NUMBER_DIGITS and len(prefixes) <= 1 and max(map(len, prefixes), default=0) < 4


def linking(languages: Iterable[str]) -> frozenset[str]:
    """What may link the parts of a compound in some languages; empty if they have no compounds."""
    links = [LANGUAGES[code]["linking"] for code in languages if "linking" in LANGUAGES[code]]
    return frozenset(("", *" ".join(links).split())) if links else frozenset()


def other_parts(compound: str, word: str, links: Iterable[str]) -> set[str]:
    """What a compound may have besides a word that it begins or ends with."""
    before = compound.removesuffix(word) if compound.endswith(word) else ""
    after = compound.removeprefix(word) if compound.startswith(word) else ""
    parts = {before.removesuffix(link) for link in links if before.endswith(link)}
    parts |= {after.removeprefix(link) for link in links if after.startswith(link)}
    return {part for part in parts if len(part) >= PART_CHARS}


def splits(compound: str, links: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The pairs of parts that a compound may have."""
    for position in range(PART_CHARS, len(compound) - PART_CHARS + 1):
        second = compound[position:]
        for first in other_parts(compound, second, links):
            yield first, second
