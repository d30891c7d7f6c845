"""All limits: `CONTRACT` is promised to clients, `Budgets` are our own choices.

Sizes are code points (`_chars`) or UTF-8 bytes (`_bytes`); times are seconds. `parse_json` enforces
the limits on JSON from other sources.
"""

from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Any

import orjson


def _limit(value: Any, why: str) -> Any:
    return field(default=value, metadata={"why": why})


@dataclass(frozen=True, slots=True)
class Contract:
    """Bounds a client can see and rely on. Not configurable."""

    query_chars: int = _limit(500, "longest search query")
    whole_number: int = _limit(9_007_199_254_740_991, "largest number that JSON readers keep whole")
    page_items: int = _limit(100, "most items a page may ask for")
    records_default: int = _limit(25, "query_records page size when none is asked for")
    search_default: int = _limit(10, "search page size over MCP when none is asked for")
    search_rest_default: int = _limit(25, "search page size over REST when none is asked for")
    groups_default: int = _limit(10, "aggregate groups when none are asked for")
    window_chars: int = _limit(4_096, "field window when no size is asked for")
    window_chars_max: int = _limit(16_384, "largest field window")
    context_chars_max: int = _limit(8_192, "most text asked for before or after a match")
    match_before_chars: int = _limit(200, "text shown before a match that is read, by default")
    match_after_chars: int = _limit(400, "text the read of a search hit asks for after the match")
    document_chars: int = _limit(16_384, "text of a fetched document; the rest is read in windows")
    windows_per_hit: int = _limit(3, "proven windows shown for one hit")
    full_hits: int = _limit(3, "first hits of a search that show their windows in full")
    quote_chars: int = _limit(120, "excerpt of a later hit, quoted on one line")
    candidates: int = _limit(12, "connections listed in an ambiguity error")
    streams_in_grant: int = _limit(500, "streams one grant may name")
    record_id_bytes: int = _limit(512, "longest record id the store takes in")
    name_bytes: int = _limit(64, "longest stream or field name the store takes in")
    inline_bytes: int = _limit(65_536, "largest field value read whole over MCP")
    whole_bytes: int = _limit(1_048_576, "largest field value that REST gives whole")
    export_bytes: int = _limit(33_554_432, "values together that a detail route gives by fields=")
    chunk_chars: int = _limit(16_384, "size of the rows a large value is stored in")
    passage_chars: int = _limit(2_048, "longest text indexed whole; of a longer one, its passages")
    passage_stride_chars: int = _limit(1_536, "between passages: they share the longest query")
    expand_items: int = _limit(10, "related records per relation when no expand_limit is given")
    expand_items_max: int = _limit(50, "most related records per relation")
    names_in_list: int = _limit(100, "most names in one list argument (fields, streams, expand)")
    name_chars: int = _limit(256, "longest single name, connection id or relation in an argument")
    filter_fields: int = _limit(20, "fields one filter may name")
    filter_value_chars: int = _limit(256, "longest text a filter compares with")
    handle_chars: int = _limit(8_192, "longest id, URI or cursor in an argument")
    path_chars: int = _limit(1_024, "longest field path in an argument")
    papers_default: int = _limit(10, "papers of a search page when none are asked for")
    paper_offset_items: int = _limit(10_000, "offset + limit of a paper search, at most")
    paper_id_chars: int = _limit(500, "longest paper id, DOI, arXiv id or title in an argument")
    facets_default: int = _limit(20, "facet values when none are asked for")
    summary_chars: int = _limit(50_000, "text of a paper summary when no max_chars is given")
    summary_chars_max: int = _limit(100_000, "largest max_chars of a paper summary")
    source_chars: int = _limit(12_000, "text of a paper source when no max_chars is given")
    source_chars_max: int = _limit(50_000, "largest max_chars of a paper source")
    paper_resource_chars: int = _limit(50_000, "text of a paper:// resource before it is cut")


CONTRACT = Contract()


@dataclass(frozen=True, slots=True)
class Budgets:
    """Our own size and time choices. Deadlines must nest: upstream < request < router."""

    text_bytes: int = _limit(24_576, "model-visible text of one tool result")
    structured_bytes: int = _limit(40_960, "structuredContent of one tool result")
    search_text_bytes: int = _limit(8_192, "text of a search page of ten hits")
    schema_bytes: int = _limit(32_768, "schema index, text and structured each")
    document_bytes: int = _limit(18_432, "text of a fetched document inside its JSON")
    metadata_bytes: int = _limit(4_096, "fields of a document shown beside its title and text")
    metadata_value_bytes: int = _limit(600, "one such field with its name")
    field_names_bytes: int = _limit(7_168, "names in the call for the fields a document left out")
    tools_list_bytes: int = _limit(8_192, "serialized tools/list of one surface")
    body_bytes: int = _limit(1_048_576, "largest request body")
    piece_bytes: int = _limit(65_536, "read at a time of a body or a connection")
    compress_bytes: int = _limit(1_024, "body from which an answer is compressed")
    drained_bytes: int = _limit(4_194_304, "read of a closing connection, so the answer arrives")
    drained_seconds: float = _limit(1.0, "how long a closing connection is read")
    head_bytes: int = _limit(65_536, "request line and headers of one request")
    head_seconds: float = _limit(10.0, "receiving them; also a new connection without a request")
    body_seconds: float = _limit(60.0, "receiving one request body")
    body_grace_seconds: float = _limit(10.0, "before body_rate_bytes applies")
    body_rate_bytes: int = _limit(1_024, "slowest request body, in bytes per second")
    answer_window_seconds: float = _limit(20.0, "interval in which answer_rate_bytes is measured")
    answer_rate_bytes: int = _limit(1_024, "slowest client of an answer, in bytes per second")
    idle_seconds: float = _limit(100.0, "idle connection; routers keep theirs for 90 seconds")
    connections: int = _limit(1_000, "connections of one worker; the longest idle makes room")
    received_bytes: int = _limit(16_777_216, "requests one worker buffers, all clients together")
    queued_bytes: int = _limit(131_072, "of one answer in the system's queue, before it is sent")
    unsent_bytes: int = _limit(33_554_432, "answers one worker buffers, all clients together")
    link_header_bytes: int = _limit(2_048, "longest link in a header; proxies take 4 KB of them")
    link_bytes: int = _limit(8_000, "longest link to a next page; servers refuse much more")
    rest_page_bytes: int = _limit(8_388_608, "a REST page ends, and a record is cut, past this")
    query_parameters: int = _limit(256, "parameters of a query string")
    names_shown: int = _limit(20, "field names listed in one message or call")
    retries_shown: int = _limit(3, "calls an error offers in place of the refused one")
    excerpt_chars: int = _limit(320, "one evidence window; a field up to this is shown whole")
    first_window_chars: int = _limit(240, "first window of the first hit in a longer field")
    later_window_chars: int = _limit(160, "the others, unless the passage they prove is longer")
    excerpt_chars_min: int = _limit(80, "evidence windows never shrink below this")
    word_matches: int = _limit(5_000, "records with a word that are counted one by one")
    prefix_words_read: int = _limit(8_192, "words of the index that are read to expand a prefix")
    title_chars: int = _limit(120, "title of a hit; the whole text is in its field")
    later_title_chars: int = _limit(64, "title of a hit after the third")
    cut_quote_chars: int = _limit(90, "excerpt of a later hit of a field that goes on")
    query_echo_chars: int = _limit(64, "query of a search in the first line of its page")
    label_chars: int = _limit(60, "display name of a connection")
    time_chars: int = _limit(40, "time of a hit, as its record spells it")
    message_chars: int = _limit(300, "message of a warning")
    batch_items: int = _limit(50, "messages in one JSON-RPC batch")
    candidate_rows: int = _limit(4_000, "index rows that select the candidates of a search")
    candidates_ranked: int = _limit(100, "candidates that are read and ranked together")
    candidates_newest: int = _limit(300, "newest records that a very common word selects")
    required_rows: int = _limit(5_000, "index rows of one required part of a query")
    passages_ranked: int = _limit(8, "passages of a long value that are read to rank it")
    paper_matches: int = _limit(10, "matches one find in a paper shows")
    paper_match_read_chars: int = _limit(2_000, "window the read of a match opens")
    paper_match_read_before: int = _limit(400, "text such a window shows before the match")
    paper_headings: int = _limit(100, "headings one outline shows")
    paper_names: int = _limit(100, "authors, keywords, institutions or tags shown of a paper")
    paper_line_chars: int = _limit(300, "title, venue, name and the like of a paper")
    paper_preview_chars: int = _limit(600, "preview of a summary shown with a paper")
    paper_bibtex_chars: int = _limit(2_000, "longest BibTeX entry shown with a paper")
    paper_hit_authors: int = _limit(6, "authors shown of a hit")
    paper_snippet_bytes: int = _limit(400, "UTF-8 bytes of a paper snippet")
    paper_proof_bytes: int = _limit(524_288, "text of one column searched for a snippet's proof")
    paper_block_items: int = _limit(100, "candidates of a paper search that are ranked together")
    paper_ranked_bytes: int = _limit(32_768, "summary of a paper that ranking reads")
    paper_suggestions: int = _limit(3, "did_you_mean queries and near papers")
    asset_bytes: int = _limit(134_217_728, "largest static asset of a paper")
    summary_bytes: int = _limit(8_388_608, "largest summary: it is parsed to see that it is JSON")
    asset_cache_bytes: int = _limit(268_435_456, "remote assets kept on disk")
    asset_seconds: float = _limit(10.0, "fetching one asset")
    fetched_bytes: int = _limit(8_589_934_592, "what is fetched at boot, unpacked too")
    fetch_seconds: float = _limit(600.0, "fetching a store or a snapshot at boot")
    snapshot_wait_seconds: float = _limit(2.0, "waiting for a newer snapshot a cursor may name")
    snapshot_retry_seconds: float = _limit(60.0, "before an unchanged refused file is tried again")
    package_members: int = _limit(256, "grants one package may hold: all have a place in a cursor")
    package_cursor_bytes: int = _limit(4_095, "longest cursor of a package")
    package_seen_hits: int = _limit(200, "shown hits a cursor remembers where grants overlap")
    fan_in_width: int = _limit(64, "sources of a package that are asked at once")
    fan_in_group: int = _limit(16, "sources of a package that are paged through at once")
    fan_in_rounds: int = _limit(4, "times the sources of a package are asked for one page")
    fan_in_steps: int = _limit(100, "pages of one source passed over to reach its next hit")
    fan_in_tries: int = _limit(3, "pages on which a source that does not answer is asked again")
    fan_in_share: float = _limit(0.6, "part of the time left that one round may take")
    source_seconds: float = _limit(5.0, "one source of a package, in one round")
    narrower_searches: int = _limit(3, "searches with fewer words, of a remote source")
    narrower_share: float = _limit(0.5, "part of the time left that they may take together")
    fan_out_threads: int = _limit(32, "threads of a worker that wait for the sources of packages")
    heavy_page_chars: int = _limit(524_288, "text of a page whose items a pool renders")
    render_seconds: float = _limit(2.0, "rendering them; later ones are shown without their text")
    render_threads: int = _limit(4, "threads of a worker that render heavy pages")
    pool_queue_items: int = _limit(256, "work that waits for a thread; who brings more waits too")
    router_seconds: float = _limit(30.0, "the platform router gives up here")
    request_seconds: float = _limit(20.0, "one request, everything included")
    upstream_seconds: float = _limit(15.0, "all waiting on upstreams in one request")
    upstream_bytes: int = _limit(16_777_216, "JSON body of an upstream; more is not parsed")
    json_marks: int = _limit(400_000, "brackets, commas and colons of JSON that is parsed")
    json_levels: int = _limit(240, "nesting of such JSON; an answer around it adds some levels")
    upstream_record_bytes: int = _limit(69_206_016, "a record read whole: 32 MB of text, escaped")
    preview_chars: int = _limit(512, "beginning of a value that is shown as a preview")
    upstream_message_chars: int = _limit(600, "message or hint of an upstream's error")
    upstream_detail_bytes: int = _limit(2_048, "one further member of an upstream's error")
    upstream_warnings: int = _limit(20, "warnings passed on from one answer of an upstream")
    window_warnings: int = _limit(3, "warnings shown with a field window")
    upstream_suggestions: int = _limit(5, "near names passed on from an upstream's error")
    error_page_bytes: int = _limit(16_384, "HTML of an error that is searched for its title")
    redirects: int = _limit(3, "redirects followed to one asset")
    upstream_retries: int = _limit(2, "how often a read is repeated that an upstream cut off")
    retry_pause_seconds: float = _limit(0.1, "before a repeated read if the server names no time")
    retry_wait_seconds: float = _limit(2.0, "longest Retry-After waited for; longer is passed on")
    breaker_failures: int = _limit(5, "failures in a row after which an upstream is left alone")
    breaker_seconds: float = _limit(5.0, "how long it is left alone before one request tries it")
    spare_threads: int = _limit(2, "threads of a worker that never wait on upstreams")
    token_seconds: float = _limit(60.0, "how long the kind of a token is believed")
    refused_token_seconds: float = _limit(5.0, "the same for a token that was refused")
    grants_cached: int = _limit(512, "grants a thread remembers the streams of")
    tokens_cached: int = _limit(4_096, "tokens whose kind is remembered")
    doctor_seconds: float = _limit(5.0, "one step of rung doctor")
    doctor_bytes: int = _limit(1_048_576, "body that rung doctor reads of an answer")
    disk_free_bytes: int = _limit(268_435_456, "free disk below which rung doctor warns")
    certificate_days: int = _limit(14, "days left of a certificate below which rung doctor warns")
    export_tries: int = _limit(4, "how often an export asks for what failed and may pass")
    export_pause_seconds: float = _limit(1.0, "before it asks again if the server names no time")
    export_wait_seconds: float = _limit(120.0, "longest Retry-After an export waits for")
    export_empty_pages: int = _limit(1_000, "pages without a record in a row an export goes by")
    config_file_bytes: int = _limit(65_536, "the configuration file of commands")
    client_file_bytes: int = _limit(67_108_864, "a client's own file that rung connect edits")
    import_row_bytes: int = _limit(268_435_456, "JSON value, NDJSON line or CSV cell of an import")
    import_unpacked_bytes: int = _limit(268_435_456, "what any archive of an import may unpack to")
    import_unpacked_ratio: int = _limit(200, "unpacked to packed bytes of a larger archive")
    import_attachment_bytes: int = _limit(67_108_864, "file that is attached to an imported record")
    import_sample_rows: int = _limit(1_000, "rows that manifests or types are inferred from")
    import_waiting_rows: int = _limit(20_000, "rows that wait for the manifests of new streams")
    start_seconds: float = _limit(5.0, "asking at the start of rung stdio whose token it is")
    store_seconds: float = _limit(5.0, "one SQL statement")
    index_check_seconds: float = _limit(5.0, "between two samples of the full-text indexes")
    index_check_rows: int = _limit(8, "rows of each full-text index in one sample")
    index_doctor_rows: int = _limit(200, "the same in the sample of `rung doctor`")

    def __post_init__(self) -> None:
        order = ("upstream_seconds", "request_seconds", "router_seconds")
        for inner, outer in zip(order, order[1:]):
            if getattr(self, inner) >= getattr(self, outer):
                raise ValueError(f"{inner} must be smaller than {outer}")


BUDGETS = Budgets()


def describe(limits: Any) -> list[tuple[str, Any, str]]:
    """(name, value, why) of every limit, for the reference page."""
    return [(f.name, getattr(limits, f.name), f.metadata["why"]) for f in fields(limits)]


#: Every byte except quotes and the marks between values.
_OTHERS = bytes(set(range(256)) - set(b'",:[]{}'))
#: Brackets as steps: one level down, one level up.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class TooManyValues(ValueError):
    """The JSON has more values than are parsed; the message reports how many."""


class TooDeeplyNested(ValueError):
    """The JSON is nested too deeply to be written out; the message reports how many levels."""


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text from another source, within the values and levels of `BUDGETS`.

    A value of two bytes takes a hundred in memory, so a limit on bytes alone is not enough. Raises
    `TooManyValues` and `TooDeeplyNested`, before any of it is parsed, and `orjson.JSONDecodeError`:
    each is a `ValueError`.
    """
    _look_over(raw)
    return orjson.loads(raw)


def _look_over(raw: bytes) -> None:
    """Counts marks outside strings and follows the levels, a piece at a time."""
    marks = level = 0
    inside, held = False, b""
    for start in range(0, len(raw), BUDGETS.piece_bytes):
        piece = held + raw[start : start + BUDGETS.piece_bytes]
        # A final backslash stays with the character it escapes.
        held = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        piece = piece[: len(piece) - len(held)].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.translate(None, _OTHERS).split(b'"')
        found = b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        marks += len(found)
        if marks > BUDGETS.json_marks:
            raise TooManyValues(f"holds more than {BUDGETS.json_marks} brackets, commas and colons")
        level = _level_after(found, level)


def _level_after(marks: bytes, level: int) -> int:
    """The level after some marks; raises `TooDeeplyNested` if it is too deep on the way."""
    steps = marks.translate(_STEPS, b",:")
    downs = steps.count(b"\x01")
    if level + downs > BUDGETS.json_levels:
        if max(accumulate(memoryview(steps).cast("b"), initial=level)) > BUDGETS.json_levels:
            raise TooDeeplyNested(f"is nested more than {BUDGETS.json_levels} levels deep")
    return level + 2 * downs - len(steps)
