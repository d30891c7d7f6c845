"""The bodies of /v1: the PDPP envelope with `links` and `meta`."""

from service.openapi.shapes import (
    ANYTHING,
    FLAG,
    MAYBE_TEXT,
    MAYBE_WHOLE,
    TEXT,
    TEXTS,
    WHOLE,
    Shape,
    body,
    many,
    open_map,
    ref,
    told,
    word,
)

_ADDRESSED = {"links": ref("Links"), "meta": ref("Meta")}
_CONNECTION = {
    "connection_id": told(TEXT, "The source; pass it back as connection_id."),
    "connector_instance_id": told(TEXT, "Deprecated: the same as connection_id."),
    "connector_key": told(TEXT, "What kind of source it is."),
    "display_name": told(TEXT, "What its owner calls the source."),
}
_SPAN = {
    "start_chars": told(WHOLE, "Where the text stands in the field, in code points."),
    "end_chars": WHOLE,
    "total_chars": told(WHOLE, "The size of the field in code points."),
}
_MATCH = {"match_start_chars": MAYBE_WHOLE, "match_end_chars": MAYBE_WHOLE}
_CAPABILITY = body(
    "Whether the stream declares it, and whether this token may use it.",
    {"declared": FLAG, "usable": FLAG},
    {"reason": TEXT, "operators": TEXTS},
)

SHAPES: dict[str, Shape] = {
    "Links": body(
        "Addresses below this server.",
        {"self": told(TEXT, "What was asked.")},
        {"next": told(MAYBE_TEXT, "The next page; null at the end, or where POST has to ask.")},
    ),
    "Meta": body(
        "What is said beside the data.",
        {
            "count": told(
                {"type": ["object", "integer", "null"]},
                "`{kind, value}` of all matches; in searches a number, or null if not counted.",
            ),
            "warnings": many(ref("Warning")),
        },
        {
            "window": open_map(ANYTHING),
            "count_accuracy": word("exact", "lower_bound", "estimated", "not_counted"),
            "recall": ref("Recall"),
            "counts": told(
                body(
                    "",
                    {"some": WHOLE, "accuracy": word("exact", "lower_bound")},
                    {"all": WHOLE},
                ),
                "Records that have at least one word of the query, and those that have all.",
            ),
            "absent_words": told(TEXTS, "Words of the query that no record has."),
            "nearest_words": told(open_map(TEXTS), "The words that are spelled most like them."),
            "package": told(open_map(ANYTHING), "Which sources of a package answered."),
        },
    ),
    "Warning": body(
        "Something the answer leaves out or did otherwise than asked.",
        {"code": TEXT, "message": TEXT},
        {
            "param": TEXT,
            "field": TEXT,
            "connection_id": TEXT,
            "detail": told(
                open_map(ANYTHING), "Of `limit_clamped`: `requested_limit` and `max_limit`."
            ),
        },
    ),
    "Recall": body(
        "Whether every match was ranked.",
        {},
        {"complete": FLAG, "truncated": FLAG, "ranking_scope": TEXT},
    ),
    "Read": body(
        "The request that reads the whole value.",
        {"route": TEXT, "field": TEXT},
        {"method": word("GET"), "stream": TEXT, "record_id": TEXT, "connection_id": TEXT},
    ),
    "Value": told(
        ANYTHING,
        "A value of a field as it was imported. A value over 1 MiB, and the largest values of a "
        "record over 8 MiB, are an object `field_preview` with `preview_text`, `size_chars` and "
        "`read`; base64 text is an object `binary_field` with `mime_type`, `size_bytes`, "
        "`fetch_url` and `read`. A blob has `fetch_url`, or `available` false if its bytes are not "
        "stored.",
    ),
    "Record": body(
        "One record. A deleted one, in an answer to changes_since, has no data.",
        {"object": word("record"), "id": TEXT, "stream": TEXT},
        {
            "data": open_map(ref("Value")),
            "emitted_at": TEXT,
            "authored_at": TEXT,
            **_CONNECTION,
            "roles": told(open_map(TEXT), "Which field is the title, the text, the time."),
            "expanded": told(open_map(ANYTHING), "Related records, by relation."),
            "deleted": FLAG,
            "deleted_at": TEXT,
        },
    ),
    "RecordAnswer": {
        "allOf": [ref("Record"), body("With its address.", {**_ADDRESSED}, {})],
        "description": "One record with its address.",
    },
    "RecordPage": body(
        "A page of records of one stream.",
        {"object": word("list"), "has_more": FLAG, "data": many(ref("Record")), **_ADDRESSED},
        {
            "url": TEXT,
            "next_cursor": told(MAYBE_TEXT, "The cursor of the next page."),
            "next_changes_since": told(TEXT, "The bookmark to ask for later changes with."),
        },
    ),
    "Excerpt": body(
        "Text around a proven match, with `<mark>`.",
        {"field_path": TEXT, "preview_text": TEXT},
        {
            "object": word("evidence_excerpt"),
            **_SPAN,
            **_MATCH,
            "truncated": FLAG,
            "read": ref("Read"),
            "links": body("", {"read": told(TEXT, "Opens the field at the match.")}, {}),
        },
    ),
    "Hit": body(
        "A record that matches.",
        {"object": word("search_result"), "stream": TEXT, "record_key": TEXT},
        {
            **_CONNECTION,
            "connector_id": TEXT,
            "title": MAYBE_TEXT,
            "record_url": TEXT,
            "emitted_at": TEXT,
            "authored_at": TEXT,
            "matched_fields": TEXTS,
            "snippet": open_map(ANYTHING),
            "evidence_excerpts": many(ref("Excerpt")),
            "rank": told(WHOLE, "Its place among all hits, from 1."),
            "coverage": told({"type": "number"}, "How much of the query it holds, 0 to 1."),
            "matched_words": TEXTS,
            "missing_words": TEXTS,
            "forms": told(open_map(TEXT), "Words of the query and their form in the text."),
        },
    ),
    "SearchPage": body(
        "A page of hits, best first.",
        {"object": word("list"), "has_more": FLAG, "data": many(ref("Hit")), **_ADDRESSED},
        {"url": TEXT, "next_cursor": MAYBE_TEXT},
    ),
    "FieldWindow": body(
        "Part of a field: `window` of text, or `binary` for what is no text.",
        {"object": word("field_window"), "stream": TEXT, "record_id": TEXT, **_ADDRESSED},
        {
            **_CONNECTION,
            "url": TEXT,
            "field": body("", {"path": TEXT}, {"type": TEXT, "media_type": TEXT}),
            "window": body(
                "Offsets count code points.",
                {"text": TEXT, **_SPAN},
                {
                    "limit_chars": WHOLE,
                    "complete": told(FLAG, "Whether this is the whole field."),
                    "has_more": FLAG,
                    **_MATCH,
                    "next_offset_chars": MAYBE_WHOLE,
                    "previous_offset_chars": MAYBE_WHOLE,
                    "match": told(WHOLE, "Which occurrence this is, from 1."),
                    "next_match": MAYBE_WHOLE,
                },
            ),
            "binary": open_map(ANYTHING),
        },
    ),
    "Aggregation": body(
        "A figure in `value`, or counts in `groups`.",
        {"object": word("aggregation"), "stream": TEXT, "metric": TEXT, **_ADDRESSED},
        {
            **{name: MAYBE_TEXT for name in ("field", "group_by", "group_by_time")},
            "granularity": MAYBE_TEXT,
            "time_zone": MAYBE_TEXT,
            "approximate": FLAG,
            "filtered_record_count": MAYBE_WHOLE,
            "value": told(ANYTHING, "A number; text where the field is, such as the latest time."),
            "groups": many(body("", {"key": ANYTHING, "count": WHOLE}, {})),
            "limit": WHOLE,
            "other_count": told(WHOLE, "Records in the groups after these."),
            "next_cursor": told(MAYBE_TEXT, "For the groups after these; null after the last."),
            "group_count": told(WHOLE, "How many groups there are."),
        },
    ),
    "Schema": body(
        "What this token may read. `detail` is compact in the short form.",
        {"object": word("schema"), "connectors": many(ref("SchemaConnector")), **_ADDRESSED},
        {"detail": TEXT, "bearer": open_map(ANYTHING)},
    ),
    "SchemaConnector": body(
        "A kind of source, with its streams.",
        {"streams": many(open_map(ANYTHING))},
        {
            "object": word("connector"),
            "connector_key": TEXT,
            "connector_id": TEXT,
            "stream_count": WHOLE,
            "source": open_map(ANYTHING),
            "granted_connections": many(ref("Connection")),
        },
    ),
    "Connection": body("A source of one kind.", {"connection_id": TEXT}, {"display_name": TEXT}),
    "ConnectorList": body(
        "The granted connectors.",
        {"object": word("list"), "data": many(ref("SchemaConnector")), **_ADDRESSED},
        {"has_more": FLAG},
    ),
    "StreamList": body(
        "One row per stream and connection.",
        {
            "object": word("list"),
            "data": many(
                body(
                    "",
                    {"object": word("stream"), "name": TEXT},
                    {**_CONNECTION, "record_count": MAYBE_WHOLE, "freshness": open_map(ANYTHING)},
                )
            ),
            **_ADDRESSED,
        },
        {"has_more": FLAG},
    ),
    "StreamMetadata": body(
        "Fields of a stream, and what can be asked of each.",
        {"object": word("stream_metadata"), "name": TEXT, **_ADDRESSED},
        {
            "primary_key": TEXTS,
            "cursor_field": MAYBE_TEXT,
            "schema": told(open_map(ANYTHING), "The JSON Schema of a record's data."),
            "query": open_map(ANYTHING),
            "views": many(open_map(ANYTHING)),
            "relationships": many(open_map(ANYTHING)),
            "field_capabilities": open_map(ref("FieldCapabilities")),
            "expand_capabilities": many(open_map(ANYTHING)),
        },
    ),
    "FieldCapabilities": body(
        "What can be asked of a field.",
        {"granted": FLAG},
        {
            "type": TEXT,
            "role": TEXT,
            "schema": open_map(ANYTHING),
            "exact_filter": _CAPABILITY,
            "range_filter": _CAPABILITY,
            "lexical_search": _CAPABILITY,
            "aggregation": open_map(_CAPABILITY),
        },
    ),
}

#: Which shape answers which operation or listing.
ANSWERS = {
    "schema": "Schema",
    "query_records": "RecordPage",
    "aggregate": "Aggregation",
    "search": "SearchPage",
    "fetch": "RecordAnswer",
    "read_record_field": "FieldWindow",
    "connectors": "ConnectorList",
    "streams": "StreamList",
    "stream": "StreamMetadata",
}
