"""Search in two steps: the papers of the page in order, then what their hits show.

The first step reads row ids and scores, and no more of them than the page needs.
"""

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import groupby
from typing import NamedTuple

import orjson

from evidence.limits import BUDGETS
from evidence.papers import BY_KEYWORD, SEARCH, PaperHit, PaperPage, line
from service.papers import authors, identity, keywords, names, suggest
from service.papers.catalogue import Catalogue, catalogue
from service.papers.paging import Paging
from service.papers.query import PaperQuery, parse
from service.papers.snapshot import Snapshot
from service.papers.snippet import Snippet, Texts, language_of, plain, snippet
from service.papers.vocabulary import vocabulary
from service.ports import PaperSearch

# Of paper_id, title, summary, source, translated, metadata: every column counts.
WEIGHTS = "bm25(0, 5, 3, 1, 1, 2)"


class Found(NamedTuple):
    """A paper and the full-text row it was found by; None where it was not found by words."""

    paper_id: str
    rowid: int | None = None


class _Shown(NamedTuple):
    """What a hit shows of a paper, as it is stored."""

    paper_id: str
    title: str
    year: str
    venue: str
    preview: str
    has_source: bool
    languages: list[str]  # of translations


def search(snapshot: Snapshot, wanted: PaperSearch) -> PaperPage:
    """A page of papers by words, the best first; see `query` for what may be asked.

    Papers that hold the words as words come before those that only have them fused with CJK
    characters; ties go to the newer paper, then by paper id. A paper named by its DOI, arXiv id
    or paper id is the first. Raises `InvalidRequest` (`invalid_query`, `invalid_cursor`) and
    `Gone` (`cursor_expired`).
    """
    paging = Paging.of(snapshot, SEARCH, "query", wanted)
    with snapshot.connection() as db:
        named = identity.named(snapshot, db, wanted.text)
        query = parse(wanted.text)
        with closing(_in_order(snapshot, db, query, named)) as found:
            papers = paging.cut(found)
        hits = _hits(snapshot, db, query, papers[: paging.limit])
        near = []
        if not papers and not paging.offset:
            near = suggest.queries(
                snapshot, db, query, lambda text: _finds(snapshot, db, parse(text))
            )
    return paging.page(hits, more=len(papers) > paging.limit, did_you_mean=near)


def by_keyword(snapshot: Snapshot, wanted: PaperSearch) -> PaperPage:
    """A page of papers with a keyword or tag that holds a text; see `keywords.papers`.

    Raises as `search` does.
    """
    paging = Paging.of(snapshot, BY_KEYWORD, "keyword", wanted)
    with snapshot.connection() as db:
        papers = paging.cut(keywords.papers(snapshot, db, wanted.text))
        page = papers[: paging.limit]
        lines = keywords.shown(db, page, wanted.text)
        shown = _shown(db, page)
        about = authors.read(snapshot, db, {each.paper_id: each.title for each in shown.values()})
        hits = [
            _hit(shown[paper_id], about[paper_id], Snippet(lines[paper_id], "keywords"))
            for paper_id in page
        ]
        near = []
        if not papers and not paging.offset:
            near = suggest.values(
                snapshot, wanted.text, lambda text: bool(keywords.papers(snapshot, db, text))
            )
    return paging.page(hits, more=len(papers) > paging.limit, did_you_mean=near)


def _finds(snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery) -> bool:
    with closing(_in_order(snapshot, db, query, None)) as found:
        return next(found, None) is not None


def _in_order(
    snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery, named: str | None
) -> Generator[Found, None, None]:
    """Every paper that a query finds, once, after the one that it names."""
    seen = set()
    if named is not None:
        seen.add(named)
        yield Found(named, next(iter(catalogue(snapshot).rows_of.get(named, ())), None))
    allowed = _allowed(snapshot, db, query)
    refused = _refused(snapshot, db, query)
    for found in _candidates(snapshot, db, query, allowed):
        paper_id = found.paper_id
        if paper_id not in seen:
            seen.add(paper_id)
            if paper_id not in refused and (allowed is None or paper_id in allowed):
                yield found


def _candidates(
    snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery, allowed: set[str] | None
) -> Iterator[Found]:
    """The papers with the words of a query, or without words those with its fields."""
    papers = catalogue(snapshot)
    if not query.ranked:
        yield from map(Found, papers.listed(allowed or set()))
        return
    for match in _expressions(snapshot, query):
        yield from _ranked(db, match, papers)


def _expressions(snapshot: Snapshot, query: PaperQuery) -> list[str]:
    """What to look for, in turn: the words as words, then also inside fused tokens."""
    known = vocabulary(snapshot)
    found = []
    for fused in (False, True):
        terms = [known.expression(term, fused=fused) for term in query.terms]
        terms += [f"title : {known.expression(term, fused=fused)}" for term in query.titles]
        found.append(" AND ".join(terms))
    return list(dict.fromkeys(found))


def _ranked(db: sqlite3.Connection, match: str, papers: Catalogue) -> Iterator[Found]:
    """The papers of the rows that match, the best first; a paper may come twice."""
    rows = db.execute(
        "SELECT rowid, rank FROM paper_fts WHERE paper_fts MATCH ? AND rank MATCH ? ORDER BY rank",
        (match, WEIGHTS),
    )
    with closing(rows):
        for _, tied in groupby(rows, key=lambda row: row[1]):
            known = [Found(papers.paper_of[row], row) for row, _ in tied if row in papers.paper_of]
            yield from sorted(known, key=lambda found: (-papers.year_of[found.paper_id], *found))


def _allowed(snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery) -> set[str] | None:
    """The papers that all fields agree to, None where all papers will do."""
    allowed: set[str] | None = None
    for name in query.names:
        found = names.papers_with(snapshot, db, name)
        if not name.excluded:
            allowed = found if allowed is None else allowed & found
    return allowed


def _refused(snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery) -> set[str]:
    """The papers with a word or a field that must not be there."""
    known = vocabulary(snapshot)
    unwanted = [known.expression(term, fused=True) for term in query.refused]
    unwanted += [f"title : {known.expression(term, fused=True)}" for term in query.refused_titles]
    refused: set[str] = set()
    if unwanted:
        paper_of = catalogue(snapshot).paper_of
        rows = db.execute(
            "SELECT rowid FROM paper_fts WHERE paper_fts MATCH ?", (" OR ".join(unwanted),)
        )
        refused = {paper_of[rowid] for (rowid,) in rows if rowid in paper_of}
    for name in query.names:
        if name.excluded:
            refused |= names.papers_with(snapshot, db, name)
    return refused


def _hits(
    snapshot: Snapshot, db: sqlite3.Connection, query: PaperQuery, page: Sequence[Found]
) -> list[PaperHit]:
    shown = _shown(db, [found.paper_id for found in page])
    about = authors.read(snapshot, db, {each.paper_id: each.title for each in shown.values()})
    spelled = cache(partial(vocabulary(snapshot).expression, fused=True))
    hits = []
    for paper_id, rowid in page:
        paper, metadata = shown[paper_id], about[paper_id]
        if rowid is None or not query.ranked:
            proven = Snippet(plain(paper.preview), None)
        else:
            texts = Texts(db, spelled, rowid, paper.title, metadata.text)
            proven = snippet(texts, query, paper.preview)
        hits.append(_hit(paper, metadata, proven, query.free))
    return hits


def _hit(paper: _Shown, metadata: authors.Metadata, proven: Snippet, words: str = "") -> PaperHit:
    hit = PaperHit(
        paper_id=paper.paper_id,
        title=line(paper.title),
        year=line(paper.year),
        venue=line(paper.venue),
        authors=list(map(line, metadata.authors[: BUDGETS.paper_hit_authors])),
        snippet=proven.text,
        place=proven.place,
        authors_total=metadata.authors_total,
    )
    if proven.place == "source" and paper.has_source:
        hit.find = words
    if proven.place == "translated" and paper.languages:
        hit.find, hit.lang = words, language_of(proven.text, paper.languages)
    return hit


def _shown(db: sqlite3.Connection, papers: Iterable[str]) -> dict[str, _Shown]:
    rows = db.execute(
        "SELECT paper_id, title, year, venue, summary_preview, "
        "coalesce(source_md_content_hash, '') <> '', "
        "(SELECT json_group_array(lang) FROM paper_translation AS t "
        "WHERE t.paper_id = paper.paper_id AND md_content_hash <> '') "
        "FROM paper WHERE paper_id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(list(papers)).decode(),),
    )
    return {row[0]: _Shown._make([*row[:-1], sorted(orjson.loads(row[-1]))]) for row in rows}
