"""Finds one paper by id, DOI, arXiv id or title, and reads its metadata."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from sqlite3 import Connection

import orjson

from evidence.model import Continuation
from evidence.errors import Ambiguous, NotFound
from evidence.limits import BUDGETS, CONTRACT
from evidence.papers import SEARCH, Paper, line
from evidence.question import parse_query
from evidence.text import clip
from service.papers import catalogue, names, suggest
from service.papers.snapshot import Snapshot
from service.papers.snapshot_file import OPTIONAL

NAME_CHARS = 100
"""The characters shown of a name that no paper has."""

TRIGRAMS_OF_NEAR = 5  # a shorter text resembles any title
SHARE_OF_NEAR = 0.5
"""The share of trigrams of the given text that a similar title has."""

#: Seconds for reading all texts, which nobody waits for.
TEXTS_SECONDS = 600.0
_TEXTS = (
    "SELECT paper_id, title, summary_preview, coalesce(CAST(c2 AS BLOB), x'') FROM paper "
    "LEFT JOIN (SELECT max(id), c0, c2 FROM paper_fts_content GROUP BY c0) ON c0 = paper_id"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the paper table; missing and empty columns are None."""

    paper_id: str
    title: str
    year: str
    month: str
    publication_date: str
    venue: str
    doi: str | None
    preferred_summary_template: str
    summary_preview: str
    output_language: str | None
    pdf_content_hash: str | None
    source_md_content_hash: str | None


def identify(snapshot: Snapshot, identifier: str) -> Row:
    """The paper with a paper id, DOI, arXiv id, BibTeX key or exact title, in this order.

    Raises `NotFound` (`paper_not_found`) and, for a title of several, `Ambiguous`
    (`ambiguous_paper`).
    """
    with snapshot.connection() as db:
        ids = catalogue.identified(snapshot, db, identifier)
        matches = rows(snapshot, db, filter(catalogue.is_paper_id, ids))
        if not matches:
            raise _unknown_paper(snapshot, db, identifier)
        if len(matches) > 1:
            raise _ambiguous(matches)
        return next(iter(matches.values()))


def templates(snapshot: Snapshot, row: Row) -> dict[str, tuple[str | None, str | None]]:
    """The summaries of a paper by tag: (the name of the file, the hash of its content).

    Only newer snapshots have these.
    """
    existing = snapshot.columns["paper_summary"]
    columns = [
        f"nullif({name}, '')" if name in existing else "NULL"
        for name in ("resource_path", "content_hash")
    ]
    with snapshot.connection() as db:
        rows = db.execute(
            f"SELECT template_tag, {', '.join(columns)} FROM paper_summary "
            "WHERE paper_id = ? AND length(template_tag) <= ? ORDER BY template_tag",
            (row.paper_id, CONTRACT.name_chars),
        )
        return {tag: (path, content_hash) for tag, path, content_hash in rows}


def translations(snapshot: Snapshot, row: Row) -> dict[str, str]:
    """The hash of each translation by its language as it is stored, in order."""
    with snapshot.connection() as db:
        return dict(
            db.execute(
                "SELECT lang, md_content_hash FROM paper_translation "
                "WHERE paper_id = ? AND md_content_hash <> '' AND length(lang) <= ? ORDER BY lang",
                (row.paper_id, CONTRACT.name_chars),
            ).fetchall()
        )


def read(snapshot: Snapshot, row: Row, source_bytes: int | None) -> Paper:
    """The metadata of a paper, with lists cut to `paper_names` and the given source size."""
    with snapshot.connection() as db:
        about = names.read(snapshot, db, {row.paper_id: row.title})[row.paper_id]
        omitted = {"authors": about.authors_total - len(about.authors)}
        lists: dict[str, list[str]] = {}
        for field in ("keyword", "institution", "tag"):
            values = names.values_of(db, [row.paper_id], field)[row.paper_id]
            values = [value for value in values if value not in ("", "unknown")]
            lists[f"{field}s"] = list(map(line, values[: BUDGETS.paper_names]))
            omitted[f"{field}s"] = len(values) - len(lists[f"{field}s"])
        bibtex, bibtex_key = _bibtex(snapshot, db, row.paper_id)
        aliases = _aliases(db, row.paper_id)
    doi = (catalogue.doi_in(row.doi) or row.doi) if row.doi else aliases.get("doi")
    return Paper(
        paper_id=row.paper_id,
        title=line(row.title),
        authors=list(map(line, about.authors)),
        year=line(row.year),
        month=line(row.month),
        publication_date=line(row.publication_date),
        venue=line(row.venue),
        doi=_line(doi),
        arxiv_id=_line(aliases.get("arxiv")),
        bibtex_key=_line(bibtex_key or aliases.get("bib")),
        **lists,
        summary_preview=clip(row.summary_preview, BUDGETS.paper_preview_chars),
        preferred_summary_template=line(row.preferred_summary_template),
        available_summary_templates=list(templates(snapshot, row)),
        languages=list(translations(snapshot, row)),
        output_language=_line(row.output_language),
        has_source=row.source_md_content_hash is not None,
        source_bytes=source_bytes,
        has_pdf=row.pdf_content_hash is not None,
        bibtex=bibtex,
        left_out={name: count for name, count in omitted.items() if count > 0},
    )


def texts(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """(id, title, summaries) of all papers; the preview of a summary if there is no summary."""
    with snapshot.connection(TEXTS_SECONDS) as db:
        for paper_id, title, preview, summary in db.execute(_TEXTS):
            if catalogue.is_paper_id(paper_id):
                text = names.unspaced(summary.decode("utf-8", "replace"))
                yield paper_id, title, text or preview


def _line(text: str | None) -> str | None:
    return line(text) if text else None


def rows(snapshot: Snapshot, db: Connection, ids: Iterable[str]) -> dict[str, Row]:
    """The rows of papers by paper id, in the order of the ids."""
    names = [member.name for member in fields(Row)]
    existing = snapshot.columns["paper"]
    columns = [f"nullif({name}, '')" if name in OPTIONAL["paper"] else name for name in names]
    columns = [column if name in existing else "NULL" for name, column in zip(names, columns)]
    ids_json = orjson.dumps(list(ids)).decode()
    records = db.execute(
        f"SELECT {', '.join(columns)} FROM json_each(?) JOIN paper ON paper_id = json_each.value "
        "ORDER BY json_each.key",
        (ids_json,),
    )
    return {row[0]: Row(*row) for row in records}


def _aliases(db: Connection, paper_id: str) -> dict[str, str]:
    """The keys of a paper by their kind, the first of each in order."""
    rows = db.execute(
        "SELECT paper_key FROM paper_key_alias WHERE paper_id = ? ORDER BY paper_key DESC",
        (paper_id,),
    )
    pairs = (key.partition(":") for (key,) in rows)
    return {kind: value for kind, _, value in pairs}


def _bibtex(snapshot: Snapshot, db: Connection, paper_id: str) -> tuple[str | None, str | None]:
    """The BibTeX entry of a paper, unless it is long, and its key."""
    if "paper_bibtex" not in snapshot.columns:
        return None, None
    row = db.execute(
        "SELECT iif(length(bibtex_raw) <= ?, bibtex_raw, NULL), bibtex_key "
        "FROM paper_bibtex WHERE paper_id = ?",
        (BUDGETS.paper_bibtex_chars, paper_id),
    ).fetchone()
    return row or (None, None)


def _ambiguous(papers: dict[str, Row]) -> Ambiguous:
    candidates = _brief(papers, "paper_id", "title", "year", "venue")[: CONTRACT.candidates]
    return Ambiguous(
        "Several papers have this title. Retry with the paper_id of one of them.",
        code="ambiguous_paper",
        retry_with="paper_id",
        candidates=candidates,
    )


def _unknown_paper(snapshot: Snapshot, db: Connection, identifier: str) -> NotFound:
    near = _near(snapshot, db, identifier)
    calls: tuple[Continuation, ...] = ()
    if parse_query(identifier).wanted and not catalogue.is_number(identifier):
        calls = (Continuation(SEARCH, {"query": identifier[: CONTRACT.query_chars]}, "retry"),)
    return NotFound(
        "No paper has this id, DOI, arXiv id or title. Search for the "
        "paper, and use the paper_id of a hit.",
        code="paper_not_found",
        calls=calls,
        paper_id=identifier[:NAME_CHARS],
        near=_brief(rows(snapshot, db, near), "paper_id", "title", "year") or None,
    )


def _near(snapshot: Snapshot, db: Connection, identifier: str) -> list[str]:
    """The ids of the papers whose titles share most of the given text, at least half."""
    query_trigrams = suggest.trigrams(identifier)
    if len(query_trigrams) < TRIGRAMS_OF_NEAR:
        return []
    shares: dict[str, tuple[float, int, str]] = {}
    for paper_id, title in suggest.similar(snapshot, db, identifier, "c0, c1"):
        parts = suggest.trigrams(title)
        share = len(query_trigrams & parts) / len(query_trigrams)
        if share >= SHARE_OF_NEAR:
            shares[paper_id] = (-share, len(parts), paper_id)
    return sorted(shares, key=shares.__getitem__)[: BUDGETS.paper_suggestions]


def _brief(papers: dict[str, Row], *names: str) -> list[dict[str, str]]:
    """A few members of papers."""
    return [{name: line(getattr(row, name)) for name in names} for row in papers.values()]
