"""What somebody typed to find papers: words and phrases, and fields with a value.

    graph neural -survey        words, all of them, and one that must not be there
    "deep learning" transform*  a phrase, and words that begin so
    title:attention             a word or "a phrase" of the title
    author:"yann lecun"         also venue, keyword, institution, tag, template, language
    year:2019..2021 month:06    a year or a range that may be open at one end
    -venue:nature               a field that must not be so

AND, OR, NOT and NEAR are words like any other. Every text is understood; `parse` refuses only
what would find everything or nothing.
"""

import re
import unicodedata
from dataclasses import dataclass, replace

from evidence import query as words
from evidence.errors import InvalidRequest
from evidence.query import Query, Term

FIELDS = (
    *("title", "author", "venue", "keyword", "institution"),
    *("tag", "year", "month", "template", "language"),
)

_QUOTES = '"“”„«»'
_PIECE = re.compile(
    rf"""
    (?<!\S) (?P<minus> -? ) (?P<field> {"|".join(FIELDS)} ) :
        (?: "(?P<straight> [^"]* )"? | [“„«](?P<curly> [^”“»]* )[”“»]? | (?P<bare> \S+ ) )
  | (?: (?<!\S) - (?=[^\s-]) )? (?: [{_QUOTES}] [^{_QUOTES}]* [{_QUOTES}]? | [^\s{_QUOTES}]+ )
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
    """A text as typed and what it asks for.

    `free` are the wanted words outside of fields as they were typed, `terms` the same folded;
    `titles` stand in the title. `refused` and `refused_titles` must not be there.
    """

    text: str
    free: str
    terms: tuple[Term, ...]
    titles: tuple[Term, ...]
    refused: tuple[Term, ...]
    refused_titles: tuple[Term, ...]
    names: tuple[Name, ...]

    @property
    def ranked(self) -> bool:
        """Whether there are words to rank by; else it lists the papers with its names."""
        return bool(self.terms or self.titles)

    def proof(self, *, title: bool) -> Query:
        """The terms that a text proves: those of the title only in the title itself."""
        own = self.titles if title else ()
        return Query(self.text, tuple(dict.fromkeys(self.terms + own)))


def parse(text: str) -> PaperQuery:
    """The query that `text` spells. Raises `InvalidRequest` (`invalid_query`)."""
    free: list[str] = []
    terms: list[Term] = []
    titles: list[Term] = []
    names: list[Name] = []
    for piece in _PIECE.finditer(text):
        field = (piece["field"] or "").lower()
        if not field:
            found = _terms(piece.group())
            terms += found
            free += [piece.group()] if any(not term.excluded for term in found) else []
        elif field == "title":
            titles += _title(piece)
        else:
            names.append(Name(field, _value(piece), bool(piece["minus"])))
    query = PaperQuery(
        text=text,
        free=" ".join(free),
        terms=_kept(terms, excluded=False),
        titles=_kept(titles, excluded=False),
        refused=_kept(terms, excluded=True),
        refused_titles=_kept(titles, excluded=True),
        names=tuple(dict.fromkeys(names)),
    )
    _require_something(query)
    return query


def _terms(text: str) -> list[Term]:
    """The terms of a text without symbols: the index has letters and digits only."""
    found = []
    for term in words.parse(text).terms:
        kept = tuple(word for word in term.words if unicodedata.category(word[0]) != "Co")
        if any(char.isalnum() for word in kept for char in word):
            found.append(replace(term, words=kept))
    return found


def _kept(terms: list[Term], *, excluded: bool) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(term for term in terms if term.excluded is excluded))


def _title(piece: re.Match[str]) -> list[Term]:
    bare = piece["bare"] is not None
    spelled = piece["bare"] if bare else f'"{_value(piece)}"'
    found = _terms(spelled.lstrip("-") if bare else spelled)
    if not found:
        raise _invalid(f'"{piece.group()}" has no word for the title. Try title:attention.')
    return [replace(term, excluded=bool(piece["minus"])) for term in found]


def _value(piece: re.Match[str]) -> str:
    """The value of a field without its quotes."""
    value = next(filter(None, (piece["straight"], piece["curly"], piece["bare"])), "")
    if not value.strip():
        raise _invalid(f'{piece["field"]}: has no value. Try {piece["field"]}:"a value".')
    return value.strip()


def _require_something(query: PaperQuery) -> None:
    if query.ranked or any(not name.excluded for name in query.names):
        return
    if query.refused or query.refused_titles or query.names:
        raise _invalid(
            "The query only says what must not be there. Add at least one word, "
            'phrase or field that must, such as attention -survey or author:"yann lecun" -survey.'
        )
    raise _invalid(
        "The query has no word to look for. Give at least one word, a "
        '"phrase in quotes", a begin* or a field such as author:"yann lecun" or year:2019..2021.'
    )


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_query", param="query")
