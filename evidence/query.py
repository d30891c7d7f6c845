"""Parses the text of a search box into words to find.

    flow control       both words, anywhere
    "flow control"     a phrase; “ ” „ « » work too, and an unclosed quote runs to the end
    foo-bar, don't     a phrase as well: what punctuation joins stays together
    -draft, -"to do"   not this
    micro*             words with this prefix

There are no operators: AND, OR and NEAR are words like any other.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from evidence.fold import fold

QUOTES = '"“”„«»'
_CHUNK = re.compile(
    rf"""
    (?P<minus> (?<!\S) - (?=[^\s-]) )?      # "--verbose" is an option, not an exclusion
    (?: [{QUOTES}] (?P<quoted> [^{QUOTES}]* ) [{QUOTES}]?
      | (?P<bare> [^\s{QUOTES}]+ ) )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Term:
    """Adjacent folded words; with `prefix` the last may continue.

    `typed` is the original spelling, with quotes and star.
    """

    words: tuple[str, ...]
    prefix: bool = False
    excluded: bool = False
    typed: str = field(default="", compare=False)


#: A string to look for and, unless that is proof enough, a pattern to match at its place. Both
#: begin with the space before the term; the pattern stops short of the space after it.
Needle = tuple[str, re.Pattern[str] | None]


@dataclass(frozen=True)
class Query:
    """A text as typed, and its terms in that order without repeats."""

    text: str
    terms: tuple[Term, ...]

    @cached_property
    def wanted(self) -> tuple[Term, ...]:
        """The terms a match must hold. Empty when nothing in the text can be searched for."""
        return tuple(term for term in self.terms if not term.excluded)

    @cached_property
    def needles(self) -> tuple[Needle, ...]:
        """The needles of all wanted terms, for folded text with a space at both ends."""
        return tuple(map(needle, self.wanted))

    @cached_property
    def excluded(self) -> tuple[Term, ...]:
        """The terms a match must not hold."""
        return tuple(term for term in self.terms if term.excluded)


def parse(text: str) -> Query:
    """The query that `text` spells. Every text is a query; punctuation alone has no terms."""
    terms = map(term_of, _CHUNK.finditer(text))
    return Query(text, tuple(dict.fromkeys(term for term in terms if term.words)))


def term_of(chunk: re.Match[str]) -> Term:
    """The term of one quoted or bare piece of a query. It may come out without words."""
    bare = chunk["bare"] or ""
    folded = fold(chunk["quoted"] or bare)
    # The star must touch a word that can go on: not in "**", "C++*" or after an unspaced script.
    prefix = bare.endswith("*") and not fold(bare[:-1]).endswith(" ")
    return Term(tuple(folded.split()), prefix, chunk["minus"] is not None, chunk.group())


@lru_cache(maxsize=256)
def needle(term: Term) -> Needle:
    """The needle of a term, for folded text with a space at both ends."""
    first, *others = term.words
    words = " +".join(map(re.escape, term.words))
    if term.prefix:
        return f" {first} " if others else f" {first}", re.compile(f" {words}[^ ]*")
    return f" {first} ", re.compile(f" {words}(?= )") if others else None
