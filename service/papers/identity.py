"""The names a paper goes by: its id, DOI, arXiv id, BibTeX key and title, in any spelling."""

import re
import sqlite3
from urllib.parse import unquote

from evidence.fold import fold
from service.papers.snapshot import Snapshot

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


def named(snapshot: Snapshot, db: sqlite3.Connection, given: str) -> str | None:
    """The id of the paper that a whole text names by paper id, DOI or arXiv id."""
    given = given.strip()
    if is_paper_id(given):
        row = db.execute("SELECT paper_id FROM paper WHERE paper_id = ?", (given,)).fetchone()
        if row:
            return str(row[0])
    if doi := doi_in(given):
        if paper_id := _dois(snapshot).get(doi):
            return paper_id
        given = doi.removeprefix(_ARXIV_DOI)
    arxiv = _ARXIV.fullmatch(given)
    return _alias(db, f"arxiv:{arxiv[1].lower()}") if arxiv else None


def is_number(given: str) -> bool:
    """True if a text is spelled as a DOI, an arXiv id or a built paper id."""
    given = given.strip()
    return any(pattern.fullmatch(given) for pattern in (_DOI, _ARXIV, _BUILT_ID))


def by_bibtex_key(db: sqlite3.Connection, given: str) -> str | None:
    """The id of the paper with a BibTeX key, given with or without `bib:`."""
    key = given.strip().removeprefix("bib:")
    return _alias(db, f"bib:{key}") or _alias(db, f"bib:{key.lower()}")


def by_title(snapshot: Snapshot, given: str) -> tuple[str, ...]:
    """The ids of the papers with a title, whatever its case, accents and punctuation."""
    return _titles(snapshot).get(_words(given), ())


def doi_in(given: str) -> str | None:
    """The canonical form of a DOI; None if the text is not a DOI."""
    match = _DOI.fullmatch(unquote(given.strip()))
    return match[1].lower().rstrip(".,;)") if match else None


def _alias(db: sqlite3.Connection, key: str) -> str | None:
    if not key.isprintable():  # which cannot be bound, or is no key
        return None
    row = db.execute(
        "SELECT paper_id FROM paper_key_alias AS alias JOIN paper USING (paper_id) "
        "WHERE alias.paper_key = ?",
        (key,),
    ).fetchone()
    return str(row[0]) if row else None


def _dois(snapshot: Snapshot) -> dict[str, str]:
    """Paper ids by canonical DOI. Stored ones may be URLs: not every release wrote them alike."""

    def read() -> dict[str, str]:
        with snapshot.connection() as db:
            rows = db.execute(
                "SELECT substr(alias.paper_key, 5), paper_id FROM paper_key_alias AS alias "
                "JOIN paper USING (paper_id) WHERE alias.paper_key GLOB 'doi:*'"
            ).fetchall()
            if "doi" in snapshot.columns["paper"]:
                rows += db.execute("SELECT doi, paper_id FROM paper WHERE doi <> ''").fetchall()
        return {doi: paper_id for given, paper_id in rows if (doi := doi_in(given))}

    return snapshot.once("dois", read)


def _titles(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    def read() -> dict[str, tuple[str, ...]]:
        ids: dict[str, tuple[str, ...]] = {}
        with snapshot.connection() as db:
            for paper_id, title in db.execute("SELECT paper_id, title FROM paper ORDER BY 1"):
                if words := _words(title):
                    ids[words] = (*ids.get(words, ()), paper_id)
        return ids

    return snapshot.once("titles", read)


def _words(text: str) -> str:
    return " ".join(fold(text).split())
