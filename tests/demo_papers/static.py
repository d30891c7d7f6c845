"""The static tree beside a snapshot: sources, translations and summaries as files."""

from collections.abc import Iterator
from typing import Any

import orjson

from tests.demo_papers.shelf import PREFERRED, DemoPaper, sha256

BUILT_AT = "2026-03-01T00:00:00+00:00"
PROVIDER, MODEL = "rung", "written-by-hand"


def files(paper: DemoPaper) -> Iterator[tuple[str, bytes]]:
    """(path in the tree, content) of all files of a paper; texts are named by their hash."""
    if paper.source is not None:
        yield f"md/{sha256(paper.source)}.md", paper.source.encode()
    for lang, text in paper.translations.items():
        yield f"md_translate/{lang}/{sha256(text)}.md", text.encode()
    for template in paper.summaries:
        yield f"summary/{paper.paper_id}/{template}.json", _json(_summary(paper, template))
    preferred = _summary(paper, PREFERRED) | {"available_templates": list(paper.summaries)}
    yield f"summary/{paper.paper_id}.json", _json(preferred)


def _summary(paper: DemoPaper, template: str) -> dict[str, Any]:
    return {
        "paper_id": paper.paper_id,
        "paper_title": paper.title,
        "paper_authors": paper.authors,
        "publication_date": paper.publication_date,
        "publication_venue": paper.venue,
        "abstract": paper.abstract,
        "keywords": paper.keywords,
        "paper_institutions": paper.institutions,
        "output_language": paper.output_language,
        "provider": PROVIDER,
        "model": MODEL,
        "prompt_template": PREFERRED,
        "extracted_at": BUILT_AT,
        "template_tag": template,
        "summary": paper.summaries[template],
    }


def _json(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
