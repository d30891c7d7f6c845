"""Suggests spellings for a search without hits."""

import re
import sqlite3
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice, product

from evidence.find import spans
from evidence.fold import fold
from evidence.limits import BUDGETS
from evidence.query import Query, Term
from service.papers import keywords
from service.papers.query import PaperQuery
from service.papers.snapshot import Snapshot
from service.papers.vocabulary import vocabulary

CLOSENESS = 0.75  # of difflib: two letters of eight may differ
TITLES_READ = 100  # titles most similar to a word
TRIED = 8  # changed queries

Finds = Callable[[str], bool]


def queries(
    snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery, finds: Finds
) -> list[str]:
    """Whole queries with corrected words, each of which `finds` something."""
    words = dict.fromkeys(word for term in query.terms for word in term.words)
    unknown = [word for word in words if trigrams(word) and not _indexed(snapshot, db, word)]
    choices = [close_words(snapshot, db, word) for word in unknown]
    changed = (_changed(query.text, unknown, choice) for choice in product(*choices))
    return _working(islice(changed, TRIED), query.text, finds)


def values(snapshot: Snapshot, text: str, finds: Finds) -> list[str]:
    """Keywords and tags spelled nearly like `text`, each of which `finds` something."""
    known = {value.key: value.text for value in keywords.values(snapshot)}
    close = get_close_matches(keywords.key_of(text), known, n=TRIED, cutoff=CLOSENESS)
    return _working((known[key] for key in close), text, finds)


def close_words(snapshot: Snapshot, db: sqlite3.Connection, word: str) -> list[str]:
    """Words of titles and venues that are spelled nearly like a folded word, closest first."""
    seen = {
        other
        for title, venue in similar(snapshot, db, word, "c1, c2")
        for other in fold(f"{title} {venue}").split()
    }
    return get_close_matches(word, sorted(seen), n=BUDGETS.paper_suggestions, cutoff=CLOSENESS)


def similar(
    snapshot: Snapshot, db: sqlite3.Connection, text: str, columns: str
) -> list[tuple[str, ...]]:
    """Columns of the titles and venues that share most trigrams with a text."""
    parts = trigrams(text)
    if not parts or "paper_fts_trigram" not in snapshot.columns:
        return []
    return db.execute(
        f"SELECT {columns} FROM paper_fts_trigram_content AS content JOIN ("
        "SELECT rowid AS number FROM paper_fts_trigram WHERE paper_fts_trigram MATCH ? "
        "ORDER BY rank LIMIT ?) ON number = content.id",
        (" OR ".join(f'"{part}"' for part in sorted(parts)), TITLES_READ),
    ).fetchall()


def trigrams(text: str) -> set[str]:
    """The trigrams of a text in lower case, none across words."""
    words = re.findall(r"\w+", text.lower())
    return {word[at : at + 3] for word in words for at in range(len(word) - 2)}


def _indexed(snapshot: Snapshot, db: sqlite3.Connection, word: str) -> bool:
    match = vocabulary(snapshot).expression(Term((word,)), fused=True)
    row = db.execute("SELECT 1 FROM paper_fts WHERE paper_fts MATCH ? LIMIT 1", (match,))
    return row.fetchone() is not None


def _changed(text: str, words: Iterable[str], others: Iterable[str]) -> str:
    """A text with the first occurrence of each of the words replaced."""
    for word, other in zip(words, others):
        for span in spans(text, Query(word, (Term((word,)),)), limit=1):
            text = text[: span.start] + other + text[span.end :]
    return text


def _working(texts: Iterable[str], given: str, finds: Finds) -> list[str]:
    """The first few that differ from the given text and find something."""
    working = (text for text in dict.fromkeys(texts) if text != given and finds(text))
    return list(islice(working, BUDGETS.paper_suggestions))
