"""Which words of a query without hits occur alone, and the search without the others."""

import sqlite3
from typing import Any

from evidence.limits import BUDGETS
from evidence.query import Query, Term
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from service.records.ranking import Scope, count_up_to

# What people type who expect operators: words like any other, and nothing to search for alone.
_OPERATORS = ("AND", "OR", "NOT")


def look(snapshot: Snapshot, scope: Scope, query: Query) -> dict[str, Any] | None:
    """`{found, missing, query?}` for the longest words of a query that has several.

    `query` is one that has hits in the same scope. None for a single word, and where the
    statements would take longer than the search may.
    """
    if len(query.wanted) < 2:
        return None
    try:
        return _look(snapshot, scope, query)
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return None


def _look(snapshot: Snapshot, scope: Scope, query: Query) -> dict[str, Any]:
    words = [term for term in query.wanted if term.typed not in _OPERATORS] or [*query.wanted]
    longest = sorted(words, key=_length, reverse=True)[: BUDGETS.words_tried]
    tried = [term for term in words if term in longest]
    counts = count_up_to(snapshot, scope, (((term,), ()) for term in tried))
    found = {term: count for term, count in zip(tried, counts) if count}
    told: dict[str, Any] = {
        "found": [term.typed for term in found],
        "missing": [term.typed for term in tried if term not in found],
    }
    if found:
        told["query"] = _fewer(snapshot, scope, query, found)
    return told


def _fewer(snapshot: Snapshot, scope: Scope, query: Query, found: dict[Term, int]) -> str:
    """A query that has hits: all that occur, where they do so together, else the rarest."""
    rarest = min(found, key=lambda term: (found[term], -_length(term)))
    tried = [(tuple(found), query.excluded), ((rarest,), query.excluded), ((rarest,), ())]
    counts = count_up_to(snapshot, scope, tried)
    wanted, excluded = next(pair for pair, count in zip(tried, counts) if count)
    kept = {*wanted, *excluded}
    return " ".join(term.typed for term in query.terms if term in kept)


def _length(term: Term) -> int:
    return sum(map(len, term.words))
