"""The papers of a snapshot: their ids, DOIs, BibTeX keys, titles, rows and order."""

import re
import sqlite3
from dataclasses import dataclass
from urllib.parse import unquote

from evidence.fold import folded_words
from service.papers.snapshot import Snapshot, once

_PAPER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BUILT_ID = re.compile(r"[0-9A-Fa-f]{32}")
_DOI = re.compile(
    r"(?:(?:https?://)?(?:dx\.|www\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)",
    re.ASCII | re.IGNORECASE,
)
_ARXIV = re.compile(
    r"(?:arxiv:\s*|(?:https?://)?(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/)?"
    r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[a-z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?",
    re.ASCII | re.IGNORECASE,
)
_ARXIV_DOI = "10.48550/arxiv."


def is_paper_id(text: object) -> bool:
    """True if a paper with this id is served; ids of another form would not survive a URI."""
    return isinstance(text, str) and _PAPER_ID.fullmatch(text) is not None


def paper_by_id(snapshot: Snapshot, db: sqlite3.Connection, text: str) -> str | None:
    """The id of the paper that a text as a whole identifies by paper id, DOI or arXiv id."""
    text = text.strip()
    if is_paper_id(text):
        row = db.execute("SELECT paper_id FROM paper WHERE paper_id = ?", (text,)).fetchone()
        if row:
            return str(row[0])
    if doi := doi_in(text):
        if paper_id := _dois(snapshot).get(doi):
            return paper_id
        text = doi.removeprefix(_ARXIV_DOI)
    arxiv = _ARXIV.fullmatch(text)
    return _alias(db, f"arxiv:{arxiv[1].lower()}") if arxiv else None


def is_number(text: str) -> bool:
    """True if a text has the form of a DOI, an arXiv id or a built paper id."""
    text = text.strip()
    return any(pattern.fullmatch(text) for pattern in (_DOI, _ARXIV, _BUILT_ID))


def identified(snapshot: Snapshot, db: sqlite3.Connection, text: str) -> tuple[str, ...]:
    """The ids of the papers with this paper id, DOI, arXiv id, BibTeX key or title, in this order.

    A BibTeX key may have the prefix `bib:`. Case, accents and punctuation of a title are ignored.
    """
    key = text.strip().removeprefix("bib:")
    keys = (f"bib:{key}", f"bib:{key.lower()}")
    paper_id = paper_by_id(snapshot, db, text) or _alias(db, keys[0]) or _alias(db, keys[1])
    return (paper_id,) if paper_id else _titles(snapshot).get(folded_words(text), ())


def doi_in(text: str) -> str | None:
    """The canonical form of a DOI; None if the text is not a DOI."""
    match = _DOI.fullmatch(unquote(text.strip()))
    return match[1].lower().rstrip(".,;)") if match else None


def _alias(db: sqlite3.Connection, key: str) -> str | None:
    if not key.isprintable():  # which cannot be bound, or is not a key
        return None
    row = db.execute(
        "SELECT paper_id FROM paper_key_alias AS alias JOIN paper USING (paper_id) "
        "WHERE alias.paper_key = ?",
        (key,),
    ).fetchone()
    return str(row[0]) if row else None


@once
def _dois(snapshot: Snapshot) -> dict[str, str]:
    """Paper ids by canonical DOI. Stored ones may be URLs: not every release wrote them alike."""
    with snapshot.connection() as db:
        rows = db.execute(
            "SELECT substr(alias.paper_key, 5), paper_id FROM paper_key_alias AS alias "
            "JOIN paper USING (paper_id) WHERE alias.paper_key GLOB 'doi:*'"
        ).fetchall()
        if "doi" in snapshot.columns["paper"]:
            rows += db.execute("SELECT doi, paper_id FROM paper WHERE doi <> ''").fetchall()
    return {doi: paper_id for stored, paper_id in rows if (doi := doi_in(stored))}


@once
def _titles(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    ids: dict[str, tuple[str, ...]] = {}
    with snapshot.connection() as db:
        for paper_id, title in db.execute("SELECT paper_id, title FROM paper ORDER BY 1"):
            if words := folded_words(title):
                ids[words] = (*ids.get(words, ()), paper_id)
    return ids


YEAR_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`paper_of` by full-text row id, `rows_of` the newest row first, `position_of` in the list.

    A paper that was built twice has two full-text rows; a row without its paper is left out.
    The list is sorted by year, newest first and unknown last, then by title and paper id.
    """

    paper_of: dict[int, str]
    rows_of: dict[str, tuple[int, ...]]
    position_of: dict[str, int]
    year_of: dict[str, int]

    def in_order(self, papers: set[str]) -> list[str]:
        """The papers in the order of the list."""
        return sorted(papers & self.position_of.keys(), key=self.position_of.__getitem__)


@once
def catalogue(snapshot: Snapshot) -> Catalogue:
    """The catalogue of a generation, read once."""
    with snapshot.connection() as db:
        papers = [
            paper
            for paper in db.execute("SELECT paper_id, title, year FROM paper")
            if is_paper_id(paper[0])
        ]
        rows = db.execute("SELECT id, c0 FROM paper_fts_content ORDER BY id DESC").fetchall()
    years = {paper_id: year_number(year) for paper_id, _, year in papers}
    papers.sort(key=lambda paper: (-years[paper[0]], paper[1], paper[0]))
    interned = {paper_id: paper_id for paper_id in years}  # one string for each id
    paper_of = {rowid: interned[paper_id] for rowid, paper_id in rows if paper_id in interned}
    rows_of: dict[str, tuple[int, ...]] = {}
    for rowid, paper_id in paper_of.items():
        rows_of[paper_id] = (*rows_of.get(paper_id, ()), rowid)
    position_of = {paper_id: position for position, (paper_id, _, _) in enumerate(papers)}
    return Catalogue(paper_of, rows_of, position_of, years)


def year_number(year: str) -> int:
    """A year as a number; -1 if it is unknown or invalid."""
    return int(year) if len(year) <= YEAR_DIGITS and year.isascii() and year.isdigit() else -1
