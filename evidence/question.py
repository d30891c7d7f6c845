"""Parses search text into terms to find in a text, or into a question about records.

A query is a list of terms:

    flow control       both words, anywhere
    "flow control"     a phrase; “ ” „ « » work too, and an unclosed quote runs to the end
    foo-bar, don't     a phrase as well: what punctuation joins stays together
    -draft, -"to do"   not this
    micro*             words with this prefix

A question can have wanted words, required parts and a time:

    where did the quorum meet     wanted: quorum, meet; the function words never select
    "copper key"  invoi*  -draft  required in every mode: a phrase, a prefix, the absence of a word
    from:Ada  subject:"key safe"  required in the field that says who, or the title
    图书馆在哪里                    wanted: pairs of adjacent characters
    March 2026                    records whose event time falls in it rank higher

Words are wanted, not required: `evidence.ranking` computes the weight of each.
"""

import re
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from evidence.cached import cached_property
from evidence.fold import fold, unfold
from evidence.language import LANGUAGES, function_words, stop_words
from evidence.times import since_epoch
from evidence.word_parts import joined

QUOTES = '"“”„«»'
_EDGES = re.compile(r"^\W+|\W+$")
#: The beginning and the words of a piece of a query, as parts of verbose patterns.
MINUS = r"(?P<minus> (?<!\S) - (?=[^\s-]) )?"  # "--verbose" is an option, not an exclusion
WORDS = rf"(?: [{QUOTES}] (?P<quoted> [^{QUOTES}]* ) [{QUOTES}]? | (?P<bare> [^\s{QUOTES}]+ ) )"
_CHUNK = re.compile(MINUS + WORDS, re.VERBOSE)


@dataclass(frozen=True, slots=True)
class Term:
    """Adjacent folded words; with `prefix` the last is the beginning of a word.

    `typed` is the original spelling, with quotes and star. A word that a hyphen joined to others,
    or a part of a number, has all of them together in `joined`.
    """

    words: tuple[str, ...]
    prefix: bool = False
    excluded: bool = False
    typed: str = field(default="", compare=False)
    joined: str = field(default="", compare=False)


#: A string to search for and, unless that is proof enough, a pattern to match at its position. Both
#: begin with the space before the term; the pattern ends before the space after it.
Needle = tuple[str, re.Pattern[str] | None]


@dataclass(frozen=True)
class Query:
    """A text as typed, and its terms in order, without repeats."""

    text: str
    terms: tuple[Term, ...]

    @cached_property
    def wanted(self) -> tuple[Term, ...]:
        """The terms a match must contain. Empty if nothing in the text can be searched for."""
        return tuple(term for term in self.terms if not term.excluded)

    @cached_property
    def needles(self) -> tuple[Needle, ...]:
        """The needles of all wanted terms, for folded text with a space at both ends."""
        return tuple(map(needle, self.wanted))

    @cached_property
    def excluded(self) -> tuple[Term, ...]:
        """The terms a match must not contain."""
        return tuple(term for term in self.terms if term.excluded)


def parse_query(text: str) -> Query:
    """Parses `text` as a query. Every text is a query; punctuation alone has no terms.

    There are no operators: AND, OR and NEAR are words like any other.
    """
    terms = map(term_of, _CHUNK.finditer(text))
    return Query(text, tuple(dict.fromkeys(term for term in terms if term.words)))


def term_of(chunk: re.Match[str]) -> Term:
    """The term of one quoted or bare piece of a query. It may have no words."""
    bare = chunk["bare"] or ""
    folded = fold(chunk["quoted"] or bare)
    # The star must follow a word that can continue: not in "**", "C++*" or after an unspaced
    # script.
    prefix = bare.endswith("*") and not fold(bare[:-1]).endswith(" ")
    return Term(tuple(folded.split()), prefix, chunk["minus"] is not None, chunk.group())


@lru_cache(maxsize=256)
def needle(term: Term) -> Needle:
    """The needle of a term, for folded text with a space at both ends."""
    first, *rest = term.words
    words = " +".join(map(re.escape, term.words))
    if term.prefix:
        return f" {first} " if rest else f" {first}", re.compile(f" {words}[^ ]*")
    return f" {first} ", re.compile(f" {words}(?= )") if rest else None


def holds(folded: str, term: Term) -> bool:
    """Whether a folded text contains a term."""
    padded, (text, pattern) = f" {folded} ", needle(term)
    return text in padded and (pattern is None or pattern.search(padded) is not None)


def spelling(word: Term) -> str:
    """A word as it was typed, without the punctuation at its edges."""
    for text in (_EDGES.sub("", word.typed), word.typed):
        if tuple(fold(text).split()) == word.words:
            return text
    return " ".join(word.words)


_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"


class Period(NamedTuple):
    """A time from `since` until before `until`, in microseconds since 1970 UTC."""

    since: int
    until: int


def find_period(text: str) -> tuple[Period | None, str]:
    """(the day, month or year that a text names, or None; the text without it).

    A month needs its year. Years are 1900 to 2099; a year alone is not part of a longer number.
    """
    for pattern in _patterns():
        if match := pattern.search(text):
            period = _period(match)
            if period is not None:
                return period, f"{text[: match.start()]} {text[match.end() :]}"
    return None, text


@lru_cache(maxsize=1)
def _names() -> dict[str, int]:
    """The number of each month name, folded."""
    return {
        fold(name).strip(): number
        for language in LANGUAGES.values()
        for number, spellings in enumerate(language.get("months", "").split(), start=1)
        for name in spellings.split("/")
    }


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], ...]:
    """The most exact patterns first. Names are matched by their letters and looked up folded."""
    name, day = r"(?P<name>[^\W\d_]{3,})\.?", r"(?P<day>[0-3]?\d)"
    expressions = (
        rf"\b{_YEAR}-(?P<month>[01]\d)-{day}\b",
        rf"\b{day}(?:st|nd|rd|th|\.|er)?(?:\s+(?:of|de))?\s+{name}(?:\s+de)?,?\s+{_YEAR}\b",
        rf"\b{name}\s+{day}(?:st|nd|rd|th)?,?\s+{_YEAR}\b",
        rf"\b{_YEAR}-(?P<month>[01]\d)\b(?!-)",
        rf"\b{name}(?:\s+(?:of|de))?,?\s+{_YEAR}\b",
        rf"(?<![\w.,-]){_YEAR}(?![\w-]|[.,]\d)",
        rf"{_YEAR}年(?:(?P<month>\d{{1,2}})月(?:(?P<day>\d{{1,2}})日)?)?",
    )
    return tuple(re.compile(pattern) for pattern in expressions)


def _period(match: re.Match[str]) -> Period | None:
    parts = match.groupdict()
    year, month = int(parts["year"]), 0
    if parts.get("month"):
        month = int(parts["month"])
    elif parts.get("name"):
        month = _names().get(fold(parts["name"]).strip(), 0)
        if not month:
            return None
    day = int(parts["day"]) if parts.get("day") else 0
    if month > 12 or (month and day > monthrange(year, month)[1]):
        return None
    first = datetime(year, month or 1, day or 1, tzinfo=UTC)
    if day:
        last = first + timedelta(days=1)
    elif month:
        last = first + timedelta(days=monthrange(year, month)[1])
    else:
        last = datetime(year + 1, 1, 1, tzinfo=UTC)
    return Period(since_epoch(first), since_epoch(last))


#: Words before a colon that restrict a term to the field of one role.
ROLES: Final = {"from": "actor", "subject": "primary-title", "title": "primary-title"}

#: Function words of one language that decide the language of a question.
_DECIDING: Final = 3

_ROLE = rf"(?: (?P<role> (?<!\S) (?: {'|'.join(ROLES)} ) ) : (?=[^\s:/]) )?"
_ROLE_CHUNK = re.compile(MINUS + _ROLE + WORDS, re.VERBOSE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Required:
    """A part that a record must contain, or must not (`term.excluded`); `role` names its field."""

    term: Term
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A text as typed, and what it searches for.

    `words` are the wanted words in order, without repeats, and without function words unless there
    is nothing else; each is one folded word or two adjacent characters of a script without spaces.
    `period` is the time that the text names; with `only_period` it has nothing else.
    """

    text: str
    words: tuple[Term, ...]
    required: tuple[Required, ...] = ()
    period: Period | None = None
    only_period: bool = False

    @property
    def is_empty(self) -> bool:
        """True if nothing in it can be searched for."""
        has_required = any(not part.term.excluded for part in self.required)
        return not (self.words or has_required or self.only_period)


def parse(
    text: str,
    languages: tuple[str, ...] = ("en",),
    roles: Collection[str] = frozenset(ROLES.values()),
) -> Question:
    """Parses `text` as a question about records in these languages.

    `roles` are those of the visible fields; a prefix for any other role is an ordinary word.
    """
    required, plain = list[Required](), list[str]()
    for chunk in _ROLE_CHUNK.finditer(text):
        part = _required(chunk, roles)
        if part is None:
            plain.append(chunk["bare"] if not chunk["role"] else chunk.group())
        elif part.term.words:
            required.append(part)
    spoken = " ".join(plain)
    period, rest = find_period(spoken)
    words = tuple(_terms(spoken))
    dropped = _function_words(words, languages)
    content_words = tuple(
        word for word in words if word.words[0] not in dropped or len(word.words) > 1
    )
    only = period is not None and not required and {*content_words}.isdisjoint(_terms(rest))
    return Question(text, content_words or (() if only else words), tuple(required), period, only)


def _required(chunk: re.Match[str], roles: Collection[str]) -> Required | None:
    """The required part of a piece of the text; None for a wanted word."""
    role = ROLES[chunk["role"].lower()] if chunk["role"] else None
    if role is not None and role not in roles:
        return None
    term = term_of(chunk)
    if chunk["quoted"] is None and role is None and not term.prefix and not term.excluded:
        return None
    return Required(term, role)


def _terms(text: str) -> Iterator[Term]:
    """The wanted words of plain text, each once."""
    return iter(dict.fromkeys(_plain_terms(text)))


def _plain_terms(text: str) -> Iterator[Term]:
    parts = list(joined(text))
    for chunk in re.finditer(r"\S+", text):
        together = next((part for part in parts if part.start < chunk.end() <= part.end + 1), None)
        whole, run = "".join(together.words) if together else "", list[str]()
        for word in fold(chunk[0]).split():
            if is_unspaced(word):
                run.append(word)
                continue
            yield from _pairs(run)
            run = []
            yield Term((word,), typed=chunk[0], joined=whole)
        yield from _pairs(run)


def _pairs(run: list[str]) -> Iterator[Term]:
    """Pairs of adjacent characters of an unspaced run; a single character as it is."""
    if len(run) == 1:
        yield Term((run[0],), typed=unfold(run[0]))
    for first, second in zip(run, run[1:]):
        yield Term((first, second), typed=unfold(first + second))


def is_unspaced(word: str) -> bool:
    """True if a folded word is one character of a script without spaces between words."""
    return len(word) == 1 and word >= "\u0e00"


def _function_words(words: Iterable[Term], languages: tuple[str, ...]) -> frozenset[str]:
    """The function words of the question's language.

    That is one with at least three of the words, or with two that are more than half of them and
    of none of `languages`, else the one of these that matches most words.
    """
    single = [word.words[0] for word in words if len(word.words) == 1]
    counts = function_words(single)
    best = max(counts, key=lambda language: (counts[language], language in languages))
    expected = max(languages, key=counts.__getitem__, default="")
    alone = not counts[expected] and 2 * counts[best] > max(len(single), _DECIDING)
    return stop_words(best if alone or counts[best] >= _DECIDING else expected)
