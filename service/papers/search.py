"""Runs both paper searches: ranked pages, their hits and their cursors."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from evidence.model import Continuation
from evidence.errors import Gone, InvalidRequest, Unavailable
from evidence.limits import BUDGETS, CONTRACT
from evidence.papers import BY_KEYWORD, SEARCH, PaperCounts, PaperHit, PaperPage, line
from evidence.work import checked
from service.papers import catalogue, names, suggest
from service.papers.matching import Candidate, Matches, NearPapers
from service.papers.papers import Row, rows, translations
from service.papers.query import PaperQuery, parse
from service.papers.snapshot import Snapshot
from service.papers.snippet import Snippet, Texts, language_of, plain, snippet
from service.papers.words import languages
from service.ports import papers as ports

_CURSOR = re.compile(r"([0-9a-f]{10})\.([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Paging:
    """A page of `limit` papers from `offset` on, of one snapshot generation."""

    operation: str
    args: dict[str, Any]
    tag: str
    offset: int
    limit: int

    @staticmethod
    def of(snapshot: Snapshot, operation: str, request: ports.PaperPaging, **text: str) -> "Paging":
        """The requested page; `text` is the argument that finds its papers.

        Raises `InvalidRequest` (`invalid_cursor`, or `invalid_request` past the deepest page)
        and `Gone` (`cursor_expired`) for a cursor of another generation.
        """
        args = {**text, "limit": request.limit}
        offset, limit = request.offset, request.limit
        deepest = CONTRACT.paper_offset_items
        if request.cursor is not None:
            offset = _opened(snapshot.tag, request.cursor, Continuation(operation, args, "retry"))
            limit = max(1, min(limit, deepest - offset))  # the last page may be a short one
        if offset + limit > deepest:
            raise InvalidRequest(
                f"Paging is limited to {deepest} papers. Add words or fields to narrow the search.",
                param="offset" if request.cursor is None else "cursor",
            )
        return Paging(operation, args, snapshot.tag, offset, limit)

    def page(self, hits: list[PaperHit], *, continues: bool, did_you_mean: list[str]) -> PaperPage:
        """The page. Past the deepest page it has no cursor."""
        following = self.offset + self.limit
        reachable = following < CONTRACT.paper_offset_items
        return PaperPage(
            operation=self.operation,
            args=self.args,
            hits=hits,
            offset=self.offset,
            has_more=continues,
            next_cursor=f"{self.tag}.{following}" if continues and reachable else None,
            did_you_mean=did_you_mean,
        )


def _opened(tag: str, cursor: str, again: Continuation) -> int:
    """The offset in a cursor."""
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidRequest(
            "The cursor is invalid. Send it exactly as it was returned, or leave it out to "
            "start over.",
            code="invalid_cursor",
            param="cursor",
            calls=(again,),
        )
    if match[1] != tag:
        raise Gone(
            "The papers have changed since this cursor was issued.",
            code="cursor_expired",
            hint="Search again from the start.",
            calls=(again,),
        )
    return int(match[2])


#: Opens what is near in meaning to a text, for a snapshot by its SHA-256; None if that is unknown.
Meaning = Callable[[str, str], AbstractContextManager[NearPapers | None]]


def search(
    snapshot: Snapshot, request: ports.PaperQuery, meaning: Meaning | None = None
) -> PaperPage:
    """A page of papers by words, best first; see `query` for the syntax.

    Ties go to the newer paper, then by paper id. A paper named by its DOI, arXiv id or paper id is
    the first. Raises `InvalidRequest` (`invalid_query`, `invalid_cursor`) and `Gone`
    (`cursor_expired`).
    """
    warnings = []
    if meaning is not None:
        try:
            with meaning(snapshot.sha256, request.query) as near:
                return _search(snapshot, request, near)
        except Unavailable as error:
            message = f"{error.message} Papers are ranked by words alone."
            warnings = [{"code": "semantic_unavailable", "message": message}]
    page = _search(snapshot, request, None)
    page.warnings = warnings
    return page


def _search(
    snapshot: Snapshot, request: ports.PaperQuery, near_papers: NearPapers | None
) -> PaperPage:
    paging = Paging.of(snapshot, SEARCH, request, query=request.query)
    with snapshot.connection() as db:
        query = parse(request.query, languages(snapshot))
        identified = catalogue.paper_by_id(snapshot, db, request.query)
        matches = Matches(snapshot, db, query, identified, near_papers)
        end = paging.offset + paging.limit
        hits = _hits(snapshot, db, query, matches, matches.page(paging.offset, end))
        related = [] if paging.offset else matches.related(paging.limit)
        hits += _related(snapshot, db, related)
        near = []
        if not matches.count:
            near = suggest.queries(snapshot, db, query, lambda text: _finds(snapshot, db, text))
    page = paging.page(hits, continues=matches.count > end, did_you_mean=near)
    page.counts = PaperCounts(all=matches.all, some=matches.count)
    page.ranking = "words+meaning" if related else matches.ranking
    page.warnings = near_papers.warnings if near_papers else []
    return page


def by_keyword(snapshot: Snapshot, request: ports.KeywordQuery) -> PaperPage:
    """A page of papers with a keyword or tag that contains a text; see `suggest.papers`.

    Raises as `search` does.
    """
    paging = Paging.of(snapshot, BY_KEYWORD, request, keyword=request.keyword)
    with snapshot.connection() as db:
        papers = suggest.papers(snapshot, db, request.keyword)[paging.offset :]
        page = papers[: paging.limit]
        lines = suggest.keyword_lines(db, page, request.keyword)
        papers_by_id = rows(snapshot, db, page)
        about = names.read(snapshot, db, {row.paper_id: row.title for row in papers_by_id.values()})
        hits = [
            _hit(papers_by_id[paper_id], about[paper_id], Snippet(lines[paper_id], "keywords"))
            for paper_id in page
        ]
        near = []
        if not papers and not paging.offset:
            near = suggest.near_keywords(
                snapshot, request.keyword, lambda text: bool(suggest.papers(snapshot, db, text))
            )
    return paging.page(hits, continues=len(papers) > paging.limit, did_you_mean=near)


def _finds(snapshot: Snapshot, db: sqlite3.Connection, text: str) -> bool:
    return bool(Matches(snapshot, db, parse(text, languages(snapshot)), None).count)


def _hits(
    snapshot: Snapshot,
    db: sqlite3.Connection,
    query: PaperQuery,
    matches: Matches,
    page: Sequence[Candidate],
) -> list[PaperHit]:
    papers_by_id = rows(snapshot, db, [candidate.paper_id for candidate in page])
    about = names.read(snapshot, db, {row.paper_id: row.title for row in papers_by_id.values()})
    in_title = {*query.titles} - {*query.words, *query.required}
    hits = []
    for candidate in checked(page, "looking for excerpts"):
        paper, metadata = papers_by_id[candidate.paper_id], about[candidate.paper_id]
        groups = matches.groups_in(candidate.rowid)
        texts = Texts(db, matches.expression, candidate.rowid, paper.title, metadata.text)
        proven = snippet(
            texts,
            [group for group in groups if group.word not in in_title],
            [group for group in groups if group.word in in_title],
            paper.summary_preview,
        )
        hit = _hit(paper, metadata, proven)
        hit.match = matches.report(candidate, proven.words)
        if proven.place == "source" and paper.source_md_content_hash:
            hit.find = proven.find
        if proven.place == "translated" and (there := translations(snapshot, paper)):
            hit.find, hit.lang = proven.find, language_of(proven.text, list(there))
        hits.append(hit)
    return hits


def _related(
    snapshot: Snapshot, db: sqlite3.Connection, paper_ids: Sequence[str]
) -> list[PaperHit]:
    """Papers in which nothing is proven, each with the beginning of its summary."""
    papers_by_id = rows(snapshot, db, paper_ids)
    about = names.read(snapshot, db, {id: row.title for id, row in papers_by_id.items()})
    hits = [
        _hit(row, about[id], Snippet(plain(row.summary_preview), None))
        for id, row in papers_by_id.items()
    ]
    return [replace(hit, related=True) for hit in hits]


def _hit(paper: Row, metadata: names.Metadata, proven: Snippet) -> PaperHit:
    return PaperHit(
        paper_id=paper.paper_id,
        title=line(paper.title),
        year=line(paper.year),
        venue=line(paper.venue),
        authors=list(map(line, metadata.authors[: BUDGETS.paper_hit_authors])),
        snippet=proven.text,
        place=proven.place,
        authors_total=metadata.authors_total,
    )
