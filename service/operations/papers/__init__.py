"""The operations on research papers."""

from service.operations.base import PaperOperation
from service.operations.papers import (
    get_paper_metadata,
    get_paper_source,
    get_paper_summary,
    list_top_facets,
    search_papers,
    search_papers_by_keyword,
)

#: The papers surface, in the order tools are listed. Exactly these; a test pins it.
PAPER_OPERATIONS: tuple[PaperOperation, ...] = (
    search_papers.OPERATION,
    search_papers_by_keyword.OPERATION,
    get_paper_metadata.OPERATION,
    get_paper_summary.OPERATION,
    get_paper_source.OPERATION,
    list_top_facets.OPERATION,
)
