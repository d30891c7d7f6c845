"""Every number that bounds something: `CONTRACT` is promised, `Budgets` are our own choices.

Sizes are code points (`_chars`) or UTF-8 bytes (`_bytes`); times are seconds.
"""

from dataclasses import dataclass, field, fields
from typing import Any


def _limit(value: Any, why: str) -> Any:
    return field(default=value, metadata={"why": why})


@dataclass(frozen=True, slots=True)
class Contract:
    """Bounds a client can see and rely on. Not configurable."""

    query_chars: int = _limit(500, "longest search query")
    page_items: int = _limit(100, "most items a page may ask for")
    records_default: int = _limit(25, "query_records page size when none is asked for")
    search_default: int = _limit(10, "search page size over MCP when none is asked for")
    search_rest_default: int = _limit(25, "search page size over REST when none is asked for")
    groups_default: int = _limit(10, "aggregate groups when none are asked for")
    window_chars: int = _limit(4_096, "field window when no size is asked for")
    window_chars_max: int = _limit(16_384, "largest field window")
    context_chars_max: int = _limit(8_192, "most text asked for before or after a match")
    document_chars: int = _limit(
        16_384, "text of a fetched document; the rest by read_record_field"
    )
    windows_per_hit: int = _limit(3, "proven windows shown for one hit")
    candidates: int = _limit(12, "connections listed in an ambiguity error")
    streams_in_grant: int = _limit(500, "streams one grant may name")
    record_id_bytes: int = _limit(512, "longest record id the store takes in")
    name_bytes: int = _limit(64, "longest stream or field name the store takes in")
    inline_bytes: int = _limit(65_536, "largest field value shown whole in lists and details")
    export_bytes: int = _limit(
        33_554_432, "largest value a detail route gives when named in fields="
    )
    chunk_chars: int = _limit(16_384, "size of the rows a large value is stored in")
    expand_items: int = _limit(10, "related records per relation when no expand_limit is given")
    expand_items_max: int = _limit(50, "most related records per relation")
    names_in_list: int = _limit(100, "most names in one list argument (fields, streams, expand)")
    name_chars: int = _limit(256, "longest single name, connection id or relation in an argument")
    handle_chars: int = _limit(8_192, "longest id, URI or cursor in an argument")
    path_chars: int = _limit(1_024, "longest field path in an argument")


CONTRACT = Contract()


@dataclass(frozen=True, slots=True)
class Budgets:
    """Our own size and time choices. Deadlines must nest: render < upstream < request < router."""

    text_bytes: int = _limit(24_576, "model-visible text of one tool result")
    structured_bytes: int = _limit(40_960, "structuredContent of one tool result")
    search_text_bytes: int = _limit(8_192, "text of a search page of ten hits")
    schema_bytes: int = _limit(32_768, "schema index, text and structured each")
    document_bytes: int = _limit(18_432, "text of a fetched document inside its JSON")
    metadata_bytes: int = _limit(4_096, "fields of a document shown beside its title and text")
    metadata_value_bytes: int = _limit(600, "one such field with its name")
    tools_list_bytes: int = _limit(10_240, "serialized tools/list")
    body_bytes: int = _limit(1_048_576, "largest request body")
    rest_page_bytes: int = _limit(8_388_608, "a REST list page ends early past this")
    excerpt_chars: int = _limit(320, "one evidence window in a search envelope")
    excerpt_chars_min: int = _limit(80, "evidence windows never shrink below this")
    title_chars: int = _limit(120, "title of a hit; the whole text is in its field")
    label_chars: int = _limit(60, "display name of a connection")
    time_chars: int = _limit(40, "time of a hit, as its record spells it")
    message_chars: int = _limit(300, "message of a warning")
    batch_items: int = _limit(50, "messages in one JSON-RPC batch")
    rank_cap: int = _limit(4_000, "matches ranked in a wide grant; newer ones win beyond")
    wide_scopes: int = _limit(96, "field scopes from which a grant counts as wide")
    router_seconds: float = _limit(30.0, "the platform router gives up here")
    request_seconds: float = _limit(20.0, "one request, everything included")
    upstream_seconds: float = _limit(15.0, "all waiting on upstreams in one request")
    store_seconds: float = _limit(5.0, "one SQL statement")
    render_seconds: float = _limit(2.0, "rendering one page")

    def __post_init__(self) -> None:
        order = ("render_seconds", "upstream_seconds", "request_seconds", "router_seconds")
        for inner, outer in zip(order, order[1:]):
            if getattr(self, inner) >= getattr(self, outer):
                raise ValueError(f"{inner} must be smaller than {outer}")


BUDGETS = Budgets()


def describe(limits: Any) -> list[tuple[str, Any, str]]:
    """(name, value, why) of every limit, for the reference page."""
    return [(f.name, getattr(limits, f.name), f.metadata["why"]) for f in fields(limits)]
