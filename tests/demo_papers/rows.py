"""Writes the papers of a snapshot into its tables."""

import sqlite3

from tests.demo_papers.markdown import plain, preview, spaced
from tests.demo_papers.shelf import PREFERRED, UNKNOWN, DemoPaper, folded, sha256
from tests.demo_papers.static import BUILT_AT, MODEL, PROVIDER


def put(db: sqlite3.Connection, paper: DemoPaper, index: int) -> None:
    """Writes one paper; `index` is its place among all ids, from 1."""
    _put_paper(db, paper, index)
    paper_id = paper.paper_id
    db.executemany(
        "INSERT INTO paper_summary VALUES (?, ?)", [(paper_id, tag) for tag in paper.summaries]
    )
    db.executemany(
        "INSERT INTO paper_translation VALUES (?, ?, ?)",
        [(paper_id, lang, sha256(text)) for lang, text in paper.translations.items()],
    )
    db.execute(
        "INSERT INTO paper_bibtex VALUES (?, ?, ?, 'article')",
        (paper_id, paper.bibtex, paper.bibtex_key),
    )
    facets = [(paper_id, *facet) for facet in _facets(paper)]
    db.executemany("INSERT INTO found VALUES (?, ?, ?)", facets)
    _put_aliases(db, paper)
    _put_words(db, paper)


def _put_paper(db: sqlite3.Connection, paper: DemoPaper, index: int) -> None:
    source = None if paper.source is None else sha256(paper.source)
    row = {
        "paper_id": paper.paper_id,
        "paper_key": paper.key,
        "paper_key_type": paper.key.partition(":")[0],
        "doi": paper.doi,
        "title": paper.title,
        "year": paper.year,
        "month": paper.month,
        "publication_date": paper.publication_date,
        "venue": paper.venue,
        "preferred_summary_template": PREFERRED,
        "summary_preview": preview(paper.summaries[PREFERRED]),
        "paper_index": index,
        "source_hash": source,
        "output_language": paper.output_language,
        "provider": PROVIDER,
        "model": MODEL,
        "prompt_template": PREFERRED,
        "extracted_at": BUILT_AT,
        "pdf_content_hash": None,
        "source_md_content_hash": source,
    }
    db.execute(f"INSERT INTO paper VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


def _put_aliases(db: sqlite3.Connection, paper: DemoPaper) -> None:
    known = (f"meta:{sha256(paper.fingerprint)}", paper.fingerprint)
    aliases = [(f"bib:{paper.bibtex_key}", None), known]
    if paper.doi:
        aliases.insert(0, (f"doi:{paper.doi}", None))
    db.executemany(
        "INSERT INTO paper_key_alias VALUES (?, ?, ?, ?)",
        [(key, paper.paper_id, key.partition(":")[0], found) for key, found in aliases],
    )


def _put_words(db: sqlite3.Connection, paper: DemoPaper) -> None:
    named = (paper.title, *paper.authors, paper.venue, *paper.keywords, *paper.institutions)
    metadata = [*named, paper.year, paper.doi or UNKNOWN]
    columns = (
        paper.title,
        plain("\n\n".join(paper.summaries.values())),
        plain(paper.source or ""),
        plain("\n\n".join(paper.translations.values())),
        " ".join(part for part in metadata if part != UNKNOWN),
    )
    db.execute(
        "INSERT INTO paper_fts VALUES (?, ?, ?, ?, ?, ?)",
        (paper.paper_id, *map(spaced, columns)),
    )
    names = (paper.title.lower(), paper.venue.lower())
    db.execute("INSERT INTO paper_fts_trigram VALUES (?, ?, ?)", (paper.paper_id, *names))


def _facets(paper: DemoPaper) -> list[tuple[str, str]]:
    """(type, value) of each facet, once, in one spelling."""
    values = {
        "author": paper.authors,
        "keyword": paper.keywords,
        "institution": paper.institutions,
        "tag": paper.tags,
        "venue": (paper.venue,),
        "year": (paper.year,),
        "month": (paper.month,),
        "summary_template": tuple(paper.summaries),
        "output_language": (paper.output_language,),
        "provider": (PROVIDER,),
        "model": (MODEL,),
        "prompt_template": (PREFERRED,),
        "translation_lang": tuple(paper.translations),
    }
    facets = [(kind, folded(value)) for kind, all_of in values.items() for value in all_of]
    return [facet for facet in dict.fromkeys(facets) if facet[1] not in ("", UNKNOWN)]
