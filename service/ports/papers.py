"""The interface between operations and a paper library."""

from dataclasses import KW_ONLY
from typing import Any, Protocol

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.papers import BY_KEYWORD, CATEGORIES, FACETS, METADATA, SEARCH, SOURCE, SUMMARY
from evidence.papers import Paper, PaperFacets, PaperFinds, PaperOutline, PaperPage, PaperText
from service.ports.request import Request, optional, page_limit, required
from service.ports.types import CURSOR, OFFSET_CHARS, PAPER_ID, Choice, Flag, Number, Text


class PaperPaging(Request):
    """The paging of both searches: both names of the page size work, and a page has one position.

    Settled, it has `limit`, and `offset` or `cursor`.
    """

    _: KW_ONLY
    limit: int = page_limit(CONTRACT.papers_default)
    page_size: int | None = optional(Number("The same as `limit`.", 1, CONTRACT.page_items))
    offset: int = optional(
        Number(
            f"Number of papers to skip; offset + limit is at most {CONTRACT.paper_offset_items:,}.",
            0,
            CONTRACT.paper_offset_items,
        ),
        0,
    )
    page: int | None = optional(Number("Page number, instead of `offset`.", 1))
    cursor: str | None = optional(CURSOR)

    @classmethod
    def settled(cls, loaded: dict[str, Any]) -> dict[str, Any]:
        """The page by `limit`, and by `offset` or `cursor`; raises `InvalidRequest` on a clash."""
        limit = _single(loaded, "limit", "page_size") or CONTRACT.papers_default
        if "page" in loaded and loaded.get("offset") == (loaded["page"] - 1) * limit:
            del loaded["page"]  # the same page twice
        start = _single(loaded, "offset", "page", "cursor")
        rest = {key: value for key, value in loaded.items() if key not in ("page_size", "page")}
        if start is None or "cursor" in loaded:
            return {**rest, "limit": limit}
        offset = start if "offset" in loaded else (start - 1) * limit
        if offset + limit > CONTRACT.paper_offset_items:
            raise InvalidRequest(
                f"offset + limit is {offset + limit:,}; the maximum is "
                f"{CONTRACT.paper_offset_items:,}.",
                param="offset" if "offset" in loaded else "page",
                hint="Narrow the search with more words, or with author:, venue: or year: terms.",
            )
        return {**rest, "limit": limit, "offset": offset}


def _single(paging: dict[str, Any], *names: str) -> Any:
    """The value of the single given name; None if none is given."""
    present = [name for name in names if name in paging]
    if len({paging[name] for name in present}) > 1 or (len(present) > 1 and names[0] != "limit"):
        raise InvalidRequest(f"Use {' or '.join(present)}, not both.", param=present[1])
    return paging[present[0]] if present else None


class PaperQuery(PaperPaging, operation=SEARCH):
    query: str = required(
        Text(
            'Words; inflected forms match too. Operators that every hit must satisfy: "a phrase", '
            'prefix*, -without (excludes a word), title:word, author:"ada brandt", venue:, '
            "keyword:, tag:, "
            "year:2019..2021, a DOI or arXiv id.",
            longest=CONTRACT.query_chars,
        ),
        rest_name="q",
    )


class KeywordQuery(PaperPaging, operation=BY_KEYWORD):
    keyword: str = required(
        Text(
            "Text to find in keywords and tags; case and accents are ignored.",
            longest=CONTRACT.query_chars,
        )
    )


class PaperRead(Request, operation=METADATA):
    paper_id: str = required(PAPER_ID)


class SummaryRead(Request, operation=SUMMARY):
    """A window of a summary. `max_chars` is None for the default of the operation."""

    paper_id: str = required(PAPER_ID)
    template: str | None = optional(
        Text("One of the available_summary_templates. Default: the preferred template.")
    )
    max_chars: int | None = optional(
        Number(
            f"Maximum length of one answer, {CONTRACT.summary_chars:,} characters by default.",
            1,
            CONTRACT.summary_chars_max,
        )
    )
    offset_chars: int = optional(OFFSET_CHARS, 0)


class SourceRead(Request, operation=SOURCE):
    """A window of the source or of a translation, the matches of a query in it, or its outline.

    With `query` or `outline`, `max_chars` is the size of the reads that the answer suggests.
    """

    paper_id: str = required(PAPER_ID)
    lang: str | None = optional(
        Text("Read the translation into this language, such as zh, instead of the source.")
    )
    max_chars: int | None = optional(
        Number(
            f"Maximum length of one answer, {CONTRACT.source_chars:,} characters by default. With "
            "`query` or `outline`, it limits the windows in the printed calls.",
            1,
            CONTRACT.source_chars_max,
        )
    )
    offset_chars: int = optional(OFFSET_CHARS, 0)
    query: str | None = optional(
        Text(
            "Words to search for in the text; the answer lists excerpts with offsets.",
            longest=CONTRACT.query_chars,
        ),
        rest_name="q",
    )
    outline: bool = optional(
        Flag("List the headings with their offsets instead of the text."), False
    )


class FacetRequest(Request, operation=FACETS):
    category: str = required(Choice("The category to list.", CATEGORIES))
    limit: int = page_limit(CONTRACT.facets_default)
    offset: int = optional(Number("Number of values to skip, 0 by default.", 0), 0)


class PaperLibrary(Protocol):
    """The papers of one snapshot generation, from which a request reads everything.

    A `paper_id` may also be a DOI, an arXiv id or an exact title; the answer has the canonical id.
    Raises `NotFound` (`paper_not_found`, `template_not_available`, `source_not_available`,
    `translation_not_available`), `Ambiguous` (`ambiguous_paper`), `Gone` (`cursor_expired`),
    `Unavailable` (`asset_fetch_failed`, `asset_parse_failed`).
    """

    @property
    def fence_key(self) -> bytes: ...

    def search(self, request: PaperQuery) -> PaperPage: ...

    def by_keyword(self, request: KeywordQuery) -> PaperPage: ...

    def paper(self, paper_id: str) -> Paper: ...

    def summary(self, read: SummaryRead) -> PaperText: ...

    def source(self, read: SourceRead) -> PaperText: ...

    def find(self, read: SourceRead, query: str) -> PaperFinds: ...

    def outline(self, read: SourceRead) -> PaperOutline: ...

    def facets(self, request: FacetRequest) -> PaperFacets: ...
