"""The calls whose text is kept to the byte, and how a transcript is written down."""

from pathlib import Path
from typing import Any

import orjson

from evidence.limits import BUDGETS
from tests.helpers.caller import Answer, Caller
from tests.helpers.papers import ATTENTION, DEEP_LEARNING, NO_SOURCE

FOLDER = Path(__file__).parent
WORK = {"stream": "messages", "connection_id": "mail-work"}
LONG = {"id": "mail-work/messages:m_long", "field_path": "body"}

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "schema-index": ("schema", {}),
    "schema-stream": ("schema", WORK),
    "search": ("search", {"query": "invoice number"}),
    "search-page": ("search", {"query": "standup*", "limit": 3}),
    "search-sources": ("search", {"query": "invoice", "limit": 4}),
    "search-windows": ("search", {"query": "lily orchid"}),
    "search-fallback-titles": ("search", {"query": "jetty", "limit": 2}),
    "search-nothing": ("search", {"query": "zebra"}),
    "search-words": ("search", {"query": "flow OR zebra control"}),
    "records": ("query_records", {**WORK, "limit": 2, "count": "exact"}),
    "records-previews": ("query_records", {**WORK, "filter": {"id": "m_long"}}),
    "records-binary": ("query_records", {"stream": "notes", "filter": {"id": "picture"}}),
    "records-changes": ("query_records", {"stream": "diary", "changes_since": "beginning"}),
    "aggregate-groups": (
        "aggregate",
        {**WORK, "metric": "count", "group_by": "folder", "limit": 1},
    ),
    "aggregate-value": ("aggregate", {**WORK, "metric": "max", "field": "received_at"}),
    "fetch": ("fetch", {"id": "mail-work/messages:m_002"}),
    "fetch-expanded": ("fetch", {"id": "mail-work/messages:m_001", "expand": ["attachments"]}),
    "field-small": ("read_record_field", {"id": "notes/notes:accents", "field_path": "text"}),
    "field-match": (
        "read_record_field",
        {**LONG, "query": "invoice number", "before_chars": 60, "after_chars": 60},
    ),
    "field-next-match": ("read_record_field", {**LONG, "query": "ipsum", "limit_chars": 60}),
    "field-blob": (
        "read_record_field",
        {"id": "mail-work/attachments:a%2F1.png", "field_path": "blob_ref"},
    ),
    "error-ambiguous": ("fetch", {"id": "messages:m_001"}),
    "error-full-schema": ("schema", {"stream": "messages", "detail": "full"}),
    "error-argument": ("query_records", {"streem": "messages"}),
    "error-missing": ("search", {}),
    "error-filter": ("query_records", {**WORK, "filter": {"body": "invoice"}}),
    "error-field": ("read_record_field", {"id": "notes/notes:accents", "field_path": "txet"}),
    "error-not-there": ("fetch", {"id": "mail-work/messages:m_999"}),
}

#: The same of the papers surface, over a real snapshot.
PAPER_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "papers-search": ("search_papers", {"query": "residual learning", "limit": 3}),
    "papers-search-fields": ("search_papers", {"query": "author:bengio year:2014..2015"}),
    "papers-search-cjk": ("search_papers", {"query": "卷积神经网络", "limit": 2}),
    "papers-search-forms": (
        "search_papers",
        {"query": "predicted protien foldings of zebrafish", "limit": 2},
    ),
    "papers-search-nothing": ("search_papers", {"query": "trnsfomer"}),
    "papers-keyword": ("search_papers_by_keyword", {"keyword": "slam"}),
    "papers-metadata": ("get_paper_metadata", {"paper_id": "arXiv:1706.03762"}),
    "papers-summary-cut": (
        "get_paper_summary",
        {"paper_id": ATTENTION, "template": "deep_read", "max_chars": 300},
    ),
    "papers-source-cut": (
        "get_paper_source",
        {"paper_id": DEEP_LEARNING, "offset_chars": 1_000, "max_chars": 300},
    ),
    "papers-outline": ("get_paper_source", {"paper_id": ATTENTION, "outline": True}),
    "papers-find": ("get_paper_source", {"paper_id": DEEP_LEARNING, "query": "backpropagation"}),
    "papers-facets": ("list_top_facets", {"category": "venue", "limit": 4}),
    "papers-error-template": (
        "get_paper_summary",
        {"paper_id": ATTENTION, "template": "summary"},
    ),
    "papers-error-source": ("get_paper_source", {"paper_id": NO_SOURCE}),
    "papers-error-language": ("get_paper_source", {"paper_id": ATTENTION, "lang": "fr"}),
    "papers-error-paper": ("get_paper_metadata", {"paper_id": "Atention Is All You Need"}),
    "papers-error-argument": ("search_papers", {"query": "attention", "limit": 101}),
    "papers-error-cursor": ("search_papers", {"query": "attention", "cursor": "0123456789.10"}),
}


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def budget(tool: str) -> int:
    """The most bytes of text an answer of this tool may have."""
    found = {
        "search": BUDGETS.search_text_bytes,
        "search_papers": BUDGETS.search_text_bytes,
        "search_papers_by_keyword": BUDGETS.search_text_bytes,
        "schema": BUDGETS.schema_bytes,
    }
    return found.get(tool, BUDGETS.text_bytes)


def transcript(caller: Caller, name: str) -> str:
    """The request, the text a model sees, and its size."""
    tool, args = {**CALLS, **PAPER_CALLS}[name]
    return written(tool, args, caller.call(tool, **args))


def written(tool: str, args: dict[str, Any], answer: Answer) -> str:
    size = len(answer.text.encode())
    return (
        f"> {tool} {orjson.dumps(args).decode()}\n\n{answer.text}\n\n"
        f"< {'error, ' if answer.failed else ''}{size} bytes of {budget(tool)}\n"
    )
