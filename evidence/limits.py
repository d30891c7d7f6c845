"""All limits: `CONTRACT` contains those promised to clients; `Budgets`, those that we choose.

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
    whole_number: int = _limit(
        9_007_199_254_740_991, "largest integer argument; some JSON parsers round larger integers"
    )
    page_items: int = _limit(100, "largest number of items on one page")
    records_default: int = _limit(25, "default page size of query_records")
    search_default: int = _limit(10, "default page size of a search over MCP")
    search_rest_default: int = _limit(25, "default page size of a search over REST")
    groups_default: int = _limit(10, "default number of groups in an aggregate")
    window_chars: int = _limit(4_096, "default size of a field window")
    window_chars_max: int = _limit(16_384, "largest field window")
    context_chars_max: int = _limit(8_192, "largest value of before_chars or after_chars")
    match_before_chars: int = _limit(200, "default length of the text before a match")
    match_after_chars: int = _limit(400, "value of after_chars in the call that a hit shows")
    document_chars: int = _limit(16_384, "longest text in a fetched document")
    windows_per_hit: int = _limit(3, "largest number of excerpts that MCP shows for one hit")
    windows_proven: int = _limit(12, "largest number of excerpts that REST returns for one hit")
    full_hits: int = _limit(
        3, "number of hits at the top of a search that are shown with whole excerpts"
    )
    quote_chars: int = _limit(120, "longest one-line excerpt of a hit after the first three")
    candidates: int = _limit(12, "largest number of choices, such as connections, in one error")
    streams_in_grant: int = _limit(500, "largest number of streams in one grant")
    record_id_bytes: int = _limit(512, "longest record id in the store")
    name_bytes: int = _limit(64, "longest stream or field name in the store")
    inline_bytes: int = _limit(65_536, "size above which MCP never returns a field value whole")
    whole_bytes: int = _limit(
        1_048_576, "largest field value that REST returns whole if fields= does not name it"
    )
    export_bytes: int = _limit(
        33_554_432, "largest total size of the values of one record that fields= requests over REST"
    )
    chunk_chars: int = _limit(16_384, "size of the chunks in which a large value is stored")
    passage_chars: int = _limit(
        2_048, "longest text indexed as one passage; longer texts are split"
    )
    passage_stride_chars: int = _limit(
        1_536, "distance between passage starts; the overlap is longer than any query"
    )
    expand_items: int = _limit(10, "default number of related records per record and relation")
    expand_items_max: int = _limit(50, "largest number of related records per record and relation")
    names_in_list: int = _limit(100, "largest number of names in one list argument, such as fields")
    name_chars: int = _limit(256, "longest name or connection id in an argument")
    filter_fields: int = _limit(20, "largest number of fields in one filter")
    filter_value_chars: int = _limit(256, "longest text value in a filter")
    handle_chars: int = _limit(8_192, "longest id, URI or cursor in an argument")
    path_chars: int = _limit(1_024, "longest field path in an argument")
    papers_default: int = _limit(10, "default page size of a paper search")
    paper_offset_items: int = _limit(10_000, "largest sum of offset and limit in a paper search")
    paper_id_chars: int = _limit(500, "longest paper id, DOI, arXiv id or title in an argument")
    facets_default: int = _limit(20, "default number of facet values in one answer")
    summary_chars: int = _limit(50_000, "default max_chars of a paper summary")
    summary_chars_max: int = _limit(100_000, "largest max_chars of a paper summary")
    source_chars: int = _limit(12_000, "default max_chars of a paper source")
    source_chars_max: int = _limit(50_000, "largest max_chars of a paper source")
    paper_resource_chars: int = _limit(50_000, "longest text of a paper:// resource")


CONTRACT = Contract()


@dataclass(frozen=True, slots=True)
class Budgets:
    """Our own size and time choices. Deadlines must nest: upstream < request < router."""

    text_bytes: int = _limit(
        24_576, "largest text of a tool result, except `schema` without arguments and paper texts"
    )
    structured_bytes: int = _limit(32_768, "largest structuredContent, except as in text_bytes")
    search_text_bytes: int = _limit(8_192, "largest text of a search page with up to ten hits")
    schema_bytes: int = _limit(
        40_960, "largest text, and largest structuredContent, of `schema` without arguments"
    )
    document_bytes: int = _limit(18_432, "largest text of a fetched document, with JSON escapes")
    metadata_bytes: int = _limit(
        4_096, "largest total size of a document's fields except its title and text"
    )
    document_relation_bytes: int = _limit(
        3_072, "largest total size of the related ids shown with a document"
    )
    metadata_value_bytes: int = _limit(
        600, "largest metadata field of a document, including the field's name"
    )
    field_names_bytes: int = _limit(
        7_168, "largest total size of the field names in a call for omitted fields"
    )
    tools_list_bytes: int = _limit(9_216, "largest serialized tools/list of one MCP endpoint")
    body_bytes: int = _limit(1_048_576, "largest request body")
    piece_bytes: int = _limit(
        65_536, "largest number of bytes read at once from a request body or a connection"
    )
    compress_bytes: int = _limit(1_024, "smallest answer body that is compressed")
    drained_bytes: int = _limit(
        4_194_304, "largest amount of data read from a closing connection so that an answer arrives"
    )
    drained_seconds: float = _limit(1.0, "how long data is read from a closing connection")
    head_bytes: int = _limit(
        65_536, "largest total size of the request line and headers of one request"
    )
    head_seconds: float = _limit(10.0, "time to receive the headers, or a connection's first byte")
    body_seconds: float = _limit(60.0, "time to receive one request body")
    body_grace_seconds: float = _limit(10.0, "time before body_rate_bytes applies")
    body_rate_bytes: int = _limit(
        1_024, "lowest speed allowed for a request body, in bytes per second"
    )
    answer_window_seconds: float = _limit(20.0, "interval in which answer_rate_bytes is measured")
    answer_rate_bytes: int = _limit(
        1_024, "lowest speed allowed for an answer, in bytes per second"
    )
    idle_seconds: float = _limit(
        100.0, "how long an idle connection stays open; routers of hosting platforms use 90 seconds"
    )
    connections: int = _limit(
        1_000,
        "connections per worker; beyond it, the one that waited longest for its client is closed",
    )
    received_bytes: int = _limit(
        16_777_216, "largest amount of request data that a worker buffers for all clients together"
    )
    queued_bytes: int = _limit(131_072, "largest unsent part of an answer in the system's buffer")
    unsent_bytes: int = _limit(
        33_554_432, "largest amount of answer data that a worker buffers for all clients together"
    )
    link_header_bytes: int = _limit(
        2_048, "longest link in a header; proxies accept about 4 KB of headers"
    )
    link_bytes: int = _limit(8_000, "longest link to the next page; servers may refuse longer URLs")
    rest_page_bytes: int = _limit(
        8_388_608, "largest REST page, and largest record that REST returns without fields="
    )
    query_parameters: int = _limit(256, "largest number of parameters in a query string")
    names_shown: int = _limit(20, "largest number of names in one list of a message")
    retries_shown: int = _limit(3, "number of connections or papers for which one error has calls")
    excerpt_chars: int = _limit(320, "longest excerpt; the first 3 hits show shorter fields whole")
    first_window_chars: int = _limit(
        240, "size of the first hit's first excerpt, if the field exceeds excerpt_chars"
    )
    later_window_chars: int = _limit(160, "size of other excerpts, unless the match is longer")
    excerpt_chars_min: int = _limit(80, "shortest length to which excerpts are cut")
    word_matches: int = _limit(5_000, "largest number of records counted for one word")
    prefix_words_read: int = _limit(8_192, "number of indexed words read to expand one prefix")
    prefix_rows: int = _limit(
        2_000, "number of newest rows searched if a prefix matches too many words"
    )
    title_chars: int = _limit(120, "longest title shown for a hit; its field has the full title")
    later_title_chars: int = _limit(64, "longest title shown for a hit after the third")
    cut_quote_chars: int = _limit(
        90, "longest excerpt of a later hit whose field exceeds quote_chars"
    )
    proven_quote_chars: int = _limit(
        60, "longest excerpt of a later hit if each of the first three hits contains every word"
    )
    query_echo_chars: int = _limit(
        64, "longest part of the query shown in the first line of a search page"
    )
    label_chars: int = _limit(60, "longest display name of a connection")
    time_chars: int = _limit(40, "longest time shown for a hit, as written in its record")
    message_chars: int = _limit(300, "longest message of a warning")
    batch_messages: int = _limit(
        20, "largest number of messages in one JSON-RPC batch, unless RUNG_BATCH_MESSAGES is set"
    )
    candidate_rows: int = _limit(
        4_000, "largest number of index rows read to select the candidates of a search"
    )
    postings: int = _limit(2_000_000, "number of index rows read to score all matches of a search")
    records_scored: int = _limit(
        2_000, "largest number of records read for exact scores when every match is scored"
    )
    candidates_ranked: int = _limit(100, "number of candidates that are read and ranked together")
    candidates_newest: int = _limit(300, "number of newest records selected for a very common word")
    required_rows: int = _limit(5_000, "number of index rows read for one required part of a query")
    passages_ranked: int = _limit(
        8, "largest number of passages of a long value that are read to rank a record"
    )
    paper_find_share: float = _limit(
        0.8, "share of the remaining time that one search in a paper may take"
    )
    paper_matches: int = _limit(10, "largest number of matches shown for one search in a paper")
    paper_match_read_chars: int = _limit(2_000, "size of the window that the call of a match reads")
    paper_match_read_before: int = _limit(
        400, "length of the text before the match in the window that its call reads"
    )
    paper_headings: int = _limit(100, "largest number of headings shown in one outline")
    paper_names: int = _limit(
        100, "largest number of authors, keywords, institutions or tags shown for one paper"
    )
    paper_line_chars: int = _limit(300, "longest title, venue or other one-line value of a paper")
    paper_preview_chars: int = _limit(600, "longest preview of a summary shown with a paper")
    paper_bibtex_chars: int = _limit(2_000, "longest BibTeX entry shown with a paper")
    paper_hit_authors: int = _limit(6, "largest number of authors shown for one paper hit")
    paper_snippet_bytes: int = _limit(400, "largest snippet shown for a paper hit")
    paper_proof_bytes: int = _limit(
        524_288, "how much of a long text is searched for a snippet's words"
    )
    paper_block_items: int = _limit(
        100, "number of candidates of a paper search that are ranked together"
    )
    paper_ranked_bytes: int = _limit(32_768, "how much of a summary is read to rank its paper")
    paper_suggestions: int = _limit(
        3, "largest number of did_you_mean queries in an answer or similar papers in an error"
    )
    asset_bytes: int = _limit(134_217_728, "largest static asset of a paper")
    summary_bytes: int = _limit(8_388_608, "largest JSON summary that Rung parses")
    asset_cache_bytes: int = _limit(
        268_435_456, "largest total size of the remote assets kept on disk"
    )
    asset_seconds: float = _limit(10.0, "time to fetch one asset")
    fetched_bytes: int = _limit(8_589_934_592, "largest download at startup, packed or unpacked")
    fetch_seconds: float = _limit(600.0, "time to download a store or a snapshot at startup")
    snapshot_wait_seconds: float = _limit(2.0, "time to wait for a snapshot that a cursor needs")
    snapshot_retry_seconds: float = _limit(
        60.0, "time before a refused snapshot is tried again if its file has not changed"
    )
    package_members: int = _limit(
        256, "largest number of grants in one package; a cursor stores a position for each"
    )
    package_cursor_bytes: int = _limit(4_095, "longest cursor of a package")
    package_seen_hits: int = _limit(
        200, "largest number of earlier hits kept in a package cursor if grants overlap"
    )
    fan_in_width: int = _limit(64, "number of members of a package that are queried at once")
    fan_in_group: int = _limit(16, "number of package members whose next pages are read at once")
    fan_in_rounds: int = _limit(
        4, "largest number of rounds of queries to the members of a package for one page"
    )
    fan_in_steps: int = _limit(
        100, "largest number of pages of one member that are skipped to reach its next hit"
    )
    fan_in_tries: int = _limit(
        3, "number of pages without hits from a member before the member is left out"
    )
    fan_in_share: float = _limit(0.6, "share of the remaining time that one round may take")
    source_seconds: float = _limit(5.0, "time to wait for one member of a package in one round")
    narrower_searches: int = _limit(
        3, "largest number of additional searches with fewer words at a remote server"
    )
    narrower_share: float = _limit(
        0.5, "share of the remaining time that all searches with fewer words at a server may take"
    )
    fan_out_threads: int = _limit(
        32, "number of threads per worker that wait for members of packages"
    )
    heavy_page_chars: int = _limit(524_288, "page length above which a thread pool renders a page")
    render_seconds: float = _limit(
        2.0, "time to render the items of a long page; unfinished items are shown without text"
    )
    render_threads: int = _limit(4, "number of threads per worker that render long pages")
    pool_queue_items: int = _limit(
        256, "largest number of tasks waiting for a thread; beyond it, callers wait to add a task"
    )
    router_seconds: float = _limit(30.0, "time after which a hosting platform aborts a request")
    request_seconds: float = _limit(20.0, "total time for one request")
    upstream_seconds: float = _limit(15.0, "time for all work on a request that needs upstreams")
    upstream_bytes: int = _limit(16_777_216, "largest JSON body from an upstream that is parsed")
    json_structure: int = _limit(
        400_000, "largest number of structural characters ([]{},:) in JSON that is parsed"
    )
    json_levels: int = _limit(240, "largest number of nesting levels in JSON that is parsed")
    upstream_record_bytes: int = _limit(
        69_206_016, "largest JSON of one upstream record with fields=: 32 MiB of text, with escapes"
    )
    preview_chars: int = _limit(512, "length of the preview that is shown for a large value")
    upstream_message_chars: int = _limit(600, "longest message or hint in an upstream's error")
    upstream_detail_bytes: int = _limit(
        2_048, "largest size of any other member of an upstream's error"
    )
    upstream_warnings: int = _limit(20, "number of warnings passed on from one upstream answer")
    window_warnings: int = _limit(3, "largest number of warnings shown with a field window")
    upstream_suggestions: int = _limit(
        5, "largest number of similar names passed on from an upstream's error"
    )
    error_page_bytes: int = _limit(16_384, "how much of an error page is searched for its title")
    redirects: int = _limit(3, "number of redirects followed for an asset, download or synced URL")
    upstream_retries: int = _limit(
        2, "largest number of retries if an upstream aborts or temporarily refuses a read"
    )
    retry_pause_seconds: float = _limit(
        0.1, "pause before Rung retries a read if Retry-After is missing"
    )
    retry_wait_seconds: float = _limit(2.0, "longest Retry-After for which Rung waits")
    breaker_failures: int = _limit(
        5, "number of consecutive failures before requests to an upstream pause"
    )
    breaker_seconds: float = _limit(5.0, "pause before a failing upstream is tried again")
    spare_threads: int = _limit(2, "number of threads per worker that never wait for upstreams")
    token_seconds: float = _limit(60.0, "how long the acceptance of a token is cached")
    refused_token_seconds: float = _limit(5.0, "how long the refusal of a token is cached")
    grants_cached: int = _limit(512, "largest number of grants whose streams one thread caches")
    words_cached: int = _limit(1_024, "number of query words whose forms and counts are cached")
    tokens_cached: int = _limit(4_096, "number of tokens whose acceptance or refusal is cached")
    near_values: int = _limit(5, "number of similar values shown for a filter that matches nothing")
    near_value_records: int = _limit(
        200, "largest number of records whose values are compared with an unmatched filter"
    )
    doctor_seconds: float = _limit(5.0, "time for one step of rung doctor")
    doctor_bytes: int = _limit(1_048_576, "largest answer body that rung doctor reads")
    disk_free_bytes: int = _limit(268_435_456, "free disk space below which rung doctor warns")
    certificate_days: int = _limit(
        14, "remaining validity of a certificate below which rung doctor warns"
    )
    export_tries: int = _limit(
        4, "largest number of attempts for each request of an export, including the first"
    )
    export_pause_seconds: float = _limit(
        1.0, "first pause before an export retries without Retry-After; later pauses double"
    )
    export_wait_seconds: float = _limit(120.0, "longest Retry-After that an export waits for")
    export_empty_pages: int = _limit(1_000, "number of empty pages in a row that an export skips")
    config_file_bytes: int = _limit(65_536, "largest configuration file that commands read")
    client_file_bytes: int = _limit(
        67_108_864, "largest client configuration file that rung connect edits"
    )
    import_row_bytes: int = _limit(
        268_435_456, "largest JSON value, NDJSON line or CSV cell in an import"
    )
    import_unpacked_bytes: int = _limit(
        268_435_456, "unpacked size up to which any archive is accepted"
    )
    import_unpacked_ratio: int = _limit(
        200, "unpacked bytes allowed per packed byte of a larger archive"
    )
    import_attachment_bytes: int = _limit(
        67_108_864, "largest attachment in an import, or database in an archive"
    )
    import_sample_rows: int = _limit(
        1_000, "number of rows from which manifests or types are inferred"
    )
    import_waiting_rows: int = _limit(
        20_000, "largest number of rows that may wait for the manifests of new streams"
    )
    stream_fields: int = _limit(
        4_096, "largest number of fields of a new stream, including fields inside objects"
    )
    import_file_seconds: float = _limit(
        900.0, "CPU time allowed for importing one file; large files get more"
    )
    import_mebibyte_seconds: float = _limit(
        10.0, "CPU time allowed per MiB of a file in a step that may read the whole file"
    )
    import_record_seconds: float = _limit(
        10.0, "CPU time for parsing one record; the count restarts with each MiB that is read"
    )
    import_record_bytes: int = _limit(
        536_870_912, "memory allowed for parsing one record; large records get more"
    )
    import_record_ratio: int = _limit(12, "bytes of memory allowed per byte of a large record")
    import_kills: int = _limit(
        20, "number of records that exceed the record limits before the rest of a file is skipped"
    )
    start_seconds: float = _limit(
        5.0, "time to check a token in rung stdio or rung connect, or to fetch an issuer's keys"
    )
    work_seconds: int = _limit(
        30, "default CPU seconds per minute for one grant, token or address in each worker"
    )
    paused_batches: int = _limit(16, "batches per worker that may pause for other callers")
    served_seconds: float = _limit(10.0, "how long a caller counts as active after an answer")
    begins_chars: int = _limit(160, "length of the text shown from the start of a related hit")
    related_seconds: float = _limit(
        1.5, "time to compare the vectors of a grant's records with a question"
    )
    question_seconds: float = _limit(0.3, "time to embed a question with a local model")
    sent_question_seconds: float = _limit(1.0, "time to embed a question at an endpoint")
    store_seconds: float = _limit(5.0, "time for all work on a request that needs only the store")
    index_check_seconds: float = _limit(5.0, "time between two samples of the full-text indexes")
    index_check_rows: int = _limit(8, "number of rows of each full-text index in one sample")
    index_doctor_rows: int = _limit(
        200, "number of rows of each full-text index that `rung doctor` samples"
    )

    def __post_init__(self) -> None:
        order = ("upstream_seconds", "request_seconds", "router_seconds")
        for inner, outer in zip(order, order[1:]):
            if getattr(self, inner) >= getattr(self, outer):
                raise ValueError(f"{inner} must be smaller than {outer}")


BUDGETS = Budgets()


def describe(limits: Any) -> list[tuple[str, Any, str]]:
    """(name, value, why) of every limit, for the reference page."""
    return [(f.name, getattr(limits, f.name), f.metadata["why"]) for f in fields(limits)]
