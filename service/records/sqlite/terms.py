"""The terms of a query for the full-text index, with prefixes that cost a bounded search.

FTS5 merges the rows of every word that begins with a prefix, of the whole index, before it returns
the first, and nothing interrupts it meanwhile: `s*` takes seconds in a large store. A prefix of few
words is left to it. Any other is replaced by words that occur in scope, the shortest first, and
`Bounded.cut` names it if there are more of them.

Only words in scope count, so an answer depends on what the grant shows. The exception is a prefix
of more than `prefix_words_read` words of the store: it takes visibly longer too.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from evidence.query import Term

#: The words of each full-text table that prefixes are looked up in.
_VOCABULARIES = {"fts": "fts_word", "fts_chunk": "fts_chunk_word"}
#: Sorts after every word that begins with what stands before it.
_AFTER = chr(0x10FFFF)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Terms of which one is enough."""

    terms: tuple[Term, ...]


Wanted = Term | AnyOf


@dataclass(frozen=True, slots=True)
class Bounded:
    """Terms without expensive prefixes; `cut` are the prefixes that stand for more words."""

    terms: tuple[Wanted, ...]
    cut: tuple[Term, ...] = ()


def prepare(db: sqlite3.Connection) -> None:
    """Makes the words of the full-text tables readable on a connection; writes to no file."""
    db.execute("PRAGMA temp_store = MEMORY")
    for table, words in _VOCABULARIES.items():
        db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{words} USING fts5vocab(main, {table}, row)"
        )


def bound(
    db: sqlite3.Connection, table: str, terms: Sequence[Term], occurs: Callable[[Term], bool]
) -> Bounded:
    """The terms, with each expensive prefix replaced; `occurs` says whether a term is in scope.

    The prefixes of a query share `prefix_words`.
    """
    prefixes = sum(term.prefix for term in terms)
    if not prefixes:
        return Bounded(tuple(terms))
    most = max(1, BUDGETS.prefix_words // prefixes)
    found, cut = list[Wanted](), list[Term]()
    for term in terms:
        words = _words(db, table, term.words[-1]) if term.prefix else []
        if len(words) <= most:
            found.append(term)
            continue
        several, whole = _in_scope(term, words, most, occurs)
        found.append(several)
        if not whole:
            cut.append(term)
    return Bounded(tuple(found), tuple(cut))


def whole(excluded: Bounded) -> tuple[Wanted, ...]:
    """Terms to exclude; raises `InvalidRequest` if they would exclude too little."""
    if excluded.cut:
        raise InvalidRequest(
            f"{excluded.cut[0].typed} excludes too many different words. "
            "Type more letters of it, or leave it out.",
            param="query",
        )
    return excluded.terms


def expression(terms: Sequence[Wanted], *, joined: str = " AND ") -> str:
    """The FTS5 expression of folded terms: each a quoted phrase, a prefix with a star."""
    return joined.join(map(_phrase, terms))


def _phrase(term: Wanted) -> str:
    if isinstance(term, AnyOf):
        return f"({' OR '.join(map(_phrase, term.terms))})"
    return '"' + " ".join(term.words) + '"' + (" *" if term.prefix else "")


def _words(db: sqlite3.Connection, table: str, prefix: str) -> list[str]:
    """Words of the table that begin so, at most one more than are read."""
    rows = db.execute(
        f"SELECT term FROM temp.{_VOCABULARIES[table]} WHERE term >= ? AND term < ? LIMIT ?",
        (prefix, prefix + _AFTER, BUDGETS.prefix_words_read + 1),
    )
    return [word for (word,) in rows]


def _in_scope(
    prefix: Term, words: list[str], most: int, occurs: Callable[[Term], bool]
) -> tuple[AnyOf, bool]:
    """The shortest words in scope, and whether they are all there are."""
    words.sort(key=lambda word: (len(word), word))
    begun = prefix.words[:-1]
    terms = [replace(prefix, words=(*begun, word), prefix=False) for word in words]
    found = list(islice(filter(occurs, terms), most + 1))
    whole = len(found) <= most and len(words) <= BUDGETS.prefix_words_read
    return AnyOf(tuple(found[:most] or terms[:1])), whole
