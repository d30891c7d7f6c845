"""Finds papers by part of a keyword, and suggests spellings for a search without hits."""

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice, product
from sqlite3 import Connection

from evidence.errors import InvalidRequest
from evidence.find import Span, literals, spans
from evidence.fold import fold, fold_literal
from evidence.limits import BUDGETS
from evidence.question import Query, Term
from evidence.work import checked
from service.papers import names
from service.papers.catalogue import catalogue
from service.papers.query import PaperQuery
from service.papers.snapshot import Snapshot, once
from service.papers.snippet import marked
from service.papers.words import vocabulary

FIELDS = {"keyword": "keywords", "tag": "tags"}
_GAPS = re.compile(r"[\s\u2010-\u2015-]+")  # `pre-training` is `pre training`


@once
def keyword_values(snapshot: Snapshot, field: str) -> list[tuple[int, str, str]]:
    """(number, text, form for comparison) of all keywords, or of all tags, read once."""
    with snapshot.connection() as db:
        rows = db.execute(f"SELECT {field}_id, value FROM {field}")
        return [(number, text, key_of(text)) for number, text in rows]


def papers(snapshot: Snapshot, db: Connection, text: str) -> list[str]:
    """The ids of the papers with a keyword or tag that contains `text`.

    Papers with a value equal to the text come first, then the others in list order. Raises
    `InvalidRequest` (`invalid_query`).
    """
    needle = key_of(text)
    if not needle:
        raise InvalidRequest(
            "The keyword is empty. Use a keyword or a part of one, such as transformer.",
            code="invalid_query",
            param="keyword",
        )
    exact: set[str] = set()
    partial: set[str] = set()
    for field in FIELDS:
        matching = {row: key for row, _, key in keyword_values(snapshot, field) if needle in key}
        exact |= names.papers_of(db, field, [n for n, key in matching.items() if key == needle])
        partial |= names.papers_of(db, field, matching)
    in_order = catalogue(snapshot).in_order
    return in_order(exact) + in_order(partial - exact)


def keyword_lines(db: Connection, papers: Sequence[str], text: str) -> dict[str, str]:
    """The keywords and tags of papers as snippets: those with `text` first, highlighted."""
    lines: dict[str, str] = dict.fromkeys(papers, "")
    marks: dict[str, list[tuple[int, int]]] = {paper_id: [] for paper_id in papers}
    for field, label in FIELDS.items():
        for paper_id, values in names.values_of(db, papers, field).items():
            values.sort(key=lambda value: key_of(text) not in key_of(value))
            if not values or key_of(text) not in key_of(values[0]):
                continue
            line = f"{lines[paper_id]}; {label}: " if lines[paper_id] else f"{label}: "
            for number, value in enumerate(values):
                line += ", " if number else ""
                marks[paper_id] += [
                    (len(line) + start, len(line) + end) for start, end in _places(value, text)
                ]
                line += value
            lines[paper_id] = line
    return {
        paper_id: marked(lines[paper_id], Span(*places[0], tuple(places)))
        for paper_id, places in marks.items()
    }


def key_of(value: str) -> str:
    """A value without case, accents and the width of gaps; `%` and `_` are unchanged."""
    plain = fold_literal(value).strip()
    return _GAPS.sub(" ", plain).strip() or plain


def _places(value: str, text: str) -> list[tuple[int, int]]:
    """The span of the text in a value, or the whole value if only whitespace differs."""
    if key_of(text) not in key_of(value):
        return []
    return list(literals(value, text.strip())) or [(0, len(value))]


CLOSENESS = 0.75  # of difflib: two letters of eight may differ
TITLES_READ = 100  # titles most similar to a word
TRIED = 8  # changed queries

Finds = Callable[[str], bool]


def queries(snapshot: Snapshot, db: Connection, query: PaperQuery, finds: Finds) -> list[str]:
    """Whole queries with corrected words for which `finds` is true."""
    words = dict.fromkeys(word for term in query.terms for word in term.words)
    unknown = [word for word in words if trigrams(word) and not _indexed(snapshot, db, word)]
    choices = [close_words(snapshot, db, word) for word in unknown]
    changed = (_changed(query.text, unknown, choice) for choice in product(*choices))
    return _working(islice(changed, TRIED), query.text, finds)


def near_keywords(snapshot: Snapshot, text: str, finds: Finds) -> list[str]:
    """Keywords and tags with a spelling close to `text` for which `finds` is true."""
    by_key = {key: text for field in FIELDS for _, text, key in keyword_values(snapshot, field)}
    keys = checked(by_key, "comparing keywords", 64)
    close = get_close_matches(key_of(text), keys, n=TRIED, cutoff=CLOSENESS)
    return _working((by_key[key] for key in close), text, finds)


def close_words(snapshot: Snapshot, db: Connection, word: str) -> list[str]:
    """Words of titles and venues with a spelling close to a folded word, closest first."""
    candidates = {
        candidate
        for title, venue in similar(snapshot, db, word, "c1, c2")
        for candidate in fold(f"{title} {venue}").split()
    }
    return get_close_matches(
        word, sorted(candidates), n=BUDGETS.paper_suggestions, cutoff=CLOSENESS
    )


def similar(snapshot: Snapshot, db: Connection, text: str, columns: str) -> list[tuple[str, ...]]:
    """These columns of the titles and venues that share most trigrams with a text."""
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
    """The trigrams of a text in lower case, not across words."""
    words = re.findall(r"\w+", text.lower())
    return {word[at : at + 3] for word in words for at in range(len(word) - 2)}


def _indexed(snapshot: Snapshot, db: Connection, word: str) -> bool:
    match = vocabulary(snapshot).expression(Term((word,)), fused=True)
    row = db.execute("SELECT 1 FROM paper_fts WHERE paper_fts MATCH ? LIMIT 1", (match,))
    return row.fetchone() is not None


def _changed(text: str, words: Iterable[str], replacements: Iterable[str]) -> str:
    """A text with the first occurrence of each of the words replaced."""
    for word, replacement in zip(words, replacements):
        for span in spans(text, Query(word, (Term((word,)),)), limit=1):
            text = text[: span.start] + replacement + text[span.end :]
    return text


def _working(texts: Iterable[str], original: str, finds: Finds) -> list[str]:
    """The first few that differ from the given text and have matches."""
    working = (text for text in dict.fromkeys(texts) if text != original and finds(text))
    return list(islice(working, BUDGETS.paper_suggestions))
