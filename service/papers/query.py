"""A paper search as typed: wanted words, required parts, and values of fields.

    graph neural networks       words; a paper with any of them is found, one with more comes first
    "deep learning" transform*  a phrase, and a prefix, which the paper must hold
    -survey -"a survey"         a word and a phrase that it must not hold
    10.1038/nature14539         an identifier is required exactly
    title:attention             a word or "a phrase" of the title
    author:"yann lecun"         also venue, keyword, institution, tag, template, language
    year:2019..2021 month:06    a year or a range that may be open at one end
    -venue:nature               a value that the paper must not have

AND, OR, NOT and NEAR are words like any other. Every text is valid; `parse` refuses only queries
that would match everything or nothing.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from evidence import question
from evidence.errors import InvalidRequest
from evidence.papers import CATEGORIES
from evidence.question import QUOTES, Term
from evidence.language import stop_words
from service.papers.catalogue import is_number

FIELDS = ("title", *CATEGORIES)

_TOKEN = re.compile(
    rf"""
    (?<!\S) (?P<minus> -? ) (?P<field> {"|".join(FIELDS)} ) :
        (?: "(?P<straight> [^"]* )"? | [“„«](?P<curly> [^”“»]* )[”“»]? | (?P<bare> \S+ ) )
  | (?: (?<!\S) - (?=[^\s-]) )? (?: [{QUOTES}] [^{QUOTES}]* [{QUOTES}]? | [^\s{QUOTES}]+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Name:
    """A field other than the title that must have a value, or with `excluded` must not."""

    field: str
    value: str
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class PaperQuery:
    """A text as typed and its parts.

    `words` are wanted. `required` must occur in the paper and `titles` in its title; `refused` and
    `refused_titles` must not. `names` are the other fields.
    """

    text: str
    words: tuple[Term, ...]
    required: tuple[Term, ...]
    titles: tuple[Term, ...]
    refused: tuple[Term, ...]
    refused_titles: tuple[Term, ...]
    names: tuple[Name, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms for ranking; without any, the query lists the papers with its names."""
        return tuple(dict.fromkeys((*self.words, *self.required, *self.titles)))


def parse(text: str, languages: tuple[str, ...] = ("en",)) -> PaperQuery:
    """Parses `text` as a query on papers in these languages.

    Raises `InvalidRequest` (`invalid_query`).
    """
    plain: list[str] = []
    parts: list[Term] = []
    titles: list[Term] = []
    names: list[Name] = []
    for token in _TOKEN.finditer(text):
        field = (token["field"] or "").lower()
        if field == "title":
            titles += _title(token)
        elif field:
            names.append(Name(field, _value(token), bool(token["minus"])))
        elif is_number(token.group()):
            parts += _indexed(question.parse_query(token.group()).terms)
        else:
            plain.append(token.group())
    plain_query = question.parse(" ".join(plain), languages, roles=())
    parts += _indexed(part.term for part in plain_query.required)
    words = _indexed(plain_query.words)
    if parts or titles or names:
        stopwords = frozenset[str]().union(*map(stop_words, languages))
        if all(word in stopwords for term in words for word in term.words):
            words = []
    query = PaperQuery(
        text=text,
        words=tuple(words),
        required=_select(parts, excluded=False),
        titles=_select(titles, excluded=False),
        refused=_select(parts, excluded=True),
        refused_titles=_select(titles, excluded=True),
        names=tuple(dict.fromkeys(names)),
    )
    _require_something(query)
    return query


def _indexed(terms: Iterable[Term]) -> list[Term]:
    """Terms as in the index: letters and digits, and no mark without its letter."""
    indexed_terms = []
    for term in terms:
        words = tuple(word for word in term.words if unicodedata.category(word[0]) != "Co")
        # For two adjacent characters of a script without spaces, the first counts.
        pair = len(term.words) == 2 and all(map(question.is_unspaced, term.words))
        first = words[:1] if pair else words
        if any(map(str.isalnum, "".join(first))):
            indexed_terms.append(replace(term, words=words))
    return indexed_terms


def _select(terms: Iterable[Term], *, excluded: bool) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(term for term in terms if term.excluded is excluded))


def _title(token: re.Match[str]) -> list[Term]:
    bare = token["bare"] is not None
    text = token["bare"] if bare else f'"{_value(token)}"'
    terms = _indexed(question.parse_query(text.lstrip("-") if bare else text).terms)
    if not terms:
        raise _invalid(f'"{token.group()}" has no word. Add one, such as title:attention.')
    return [replace(term, excluded=bool(token["minus"])) for term in terms]


def _value(token: re.Match[str]) -> str:
    """The value of a field without its quotes."""
    value = next(filter(None, (token["straight"], token["curly"], token["bare"])), "")
    if not value.strip():
        raise _invalid(
            f"`{token['field']}:` has no value. Add one, such as {token['field']}:\"a value\"."
        )
    return value.strip()


def _require_something(query: PaperQuery) -> None:
    if query.terms or any(not name.excluded for name in query.names):
        return
    if query.refused or query.refused_titles or query.names:
        raise _invalid(
            "The query contains only excluded words. Add a word, phrase or field to search for. "
            'Examples: attention -survey, author:"yann lecun" -survey.'
        )
    raise _invalid(
        'The query has no word to search for. Add a word, a "phrase in quotes", a prefix* or a '
        'field such as author:"yann lecun" or year:2019..2021.'
    )


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_query", param="query")
