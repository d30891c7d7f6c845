"""Calls that are refused over `worlds.two_mailboxes`, each with its code and its message."""

from typing import Any, NamedTuple

from evidence.limits import CONTRACT
from tests.helpers.api import record_path

STATUS = {
    "invalid_request": 400,
    "invalid_filter": 400,
    "invalid_sort": 400,
    "invalid_expand": 400,
    "invalid_cursor": 400,
    "invalid_window": 400,
    "invalid_field_path": 400,
    "conflicting_connection_id": 400,
    "field_not_granted": 403,
    "grant_stream_not_allowed": 403,
    "not_found": 404,
    "connection_not_found": 404,
    "field_not_found": 404,
    "query_not_found": 404,
    "ambiguous_connection": 409,
    "ambiguous_schema_detail": 409,
}
MAIL = {"stream": "messages", "connection_id": "mail-work"}
ID = "mail-work/messages:m1"
RECORD = record_path("messages", "m1")
FIELD = {"id": ID, "field_path": "body"}
BY_TIME = {**MAIL, "metric": "count", "group_by_time": "received_at"}


class Bad(NamedTuple):
    """A call that MCP refuses. The error text matches `says`.

    `rest` is the address of the same request. None derives it from the arguments; "" means that
    REST has none. REST clamps the argument `clamped` to its maximum instead of refusing it.
    """

    tool: str
    args: dict[str, Any]
    code: str
    says: str
    rest: str | None = None
    clamped: str | None = None


def search(query: str, code: str = "invalid_request", says: str = "word", **args: Any) -> Bad:
    return Bad("search", {"query": query, **args}, code, says)


def listed(code: str, says: str, rest: str | None = None, /, **args: Any) -> Bad:
    return Bad("query_records", {**MAIL, **args}, code, says, rest)


def counted(code: str, says: str, rest: str | None = None, /, **args: Any) -> Bad:
    return Bad("aggregate", {**MAIL, **args}, code, says, rest)


def read(code: str, says: str, rest: str | None = None, /, **args: Any) -> Bad:
    return Bad("read_record_field", {**FIELD, **args}, code, says, rest)


def clamped(name: str, bad: Bad) -> Bad:
    return bad._replace(clamped=name)


def fetch(id: Any, code: str, says: str, rest: str | None = None, **args: Any) -> Bad:
    return Bad("fetch", {"id": id, **args}, code, says, rest)


RECORDS = "/v1/streams/messages/records?connection_id=mail-work&"
WINDOW = f"{RECORD}/field-window?connection_id=mail-work&"
LIMIT = "Use a (whole number,|number from) [0-9,]+ (to [0-9,]+|or more)"

CASES: dict[str, Bad] = {
    # arguments nobody declared
    "schema: unknown": Bad("schema", {"streams": "x"}, "invalid_request", "'stream'", ""),
    "records: name": listed("invalid_request", "'stream'", "", streem="x"),
    "records: typo": listed("invalid_request", "'sort'", sortt="x"),
    "records: case": listed("invalid_request", "'limit'|limit", Limit=5),
    "search: unknown": search("x", says="'limit'|limit", limits=5),
    "aggregate: unknown": counted("invalid_request", "group_by", metric="count", groupby="x"),
    "fetch: unknown": fetch(ID, "invalid_request", "fields", field=["id"]),
    "field: unknown": read("invalid_request", "offset_chars", offset=5),
    "records: id": listed("invalid_request", "accepts|Supported", id=ID),
    # names that are not there
    "records: stream": Bad("query_records", {"stream": "x"}, "grant_stream_not_allowed", "schema"),
    "schema: stream": Bad("schema", {"stream": "x"}, "grant_stream_not_allowed", "schema"),
    "search: stream": search("x", "grant_stream_not_allowed", "schema", streams=["x"]),
    "aggregate: stream": Bad(
        "aggregate", {"stream": "x", "metric": "count"}, "grant_stream_not_allowed", "schema"
    ),
    "near stream": Bad(
        "query_records", {"stream": "mesages"}, "grant_stream_not_allowed", "'?messages'?"
    ),
    "records: connection": listed("connection_not_found", "schema", connection_id="nope"),
    "schema: connection": Bad("schema", {"connection_id": "x"}, "connection_not_found", "schema"),
    "search: connection": search("x", "connection_not_found", "schema", connection_id="nope"),
    "near connection": listed("connection_not_found", "mail-work", connection_id="mail-wrk"),
    "records: field": listed("field_not_granted", "schema", fields=["nope"]),
    "near field": listed("field_not_granted", "subject", fields=["subjekt"]),
    "filter: field": listed("field_not_granted", "schema", filter={"nope": 1}),
    "sort: field": listed("field_not_granted", "schema", sort="-nope"),
    "sort: nothing": listed("field_not_granted", "schema", sort="-"),
    "aggregate: field": counted("field_not_granted", "schema", metric="sum", field="nope"),
    "group: field": counted("field_not_granted", "schema", metric="count", group_by="nope"),
    "fetch: field": fetch(ID, "field_not_granted", "schema", fields=["nope"]),
    "view": listed("invalid_request", "basic", view="nope"),
    "relation": listed("invalid_expand", "attachments", expand=["nope"]),
    # bounds and types
    "limit 0": listed("invalid_request", LIMIT, limit=0),
    "limit -1": listed("invalid_request", LIMIT, limit=-1),
    "limit 101": clamped("limit", listed("invalid_request", LIMIT, limit=CONTRACT.page_items + 1)),
    "limit 1e9": listed("invalid_request", LIMIT, limit=1e9),
    "limit true": listed("invalid_request", LIMIT, limit=True),
    "limit as text": listed("invalid_request", LIMIT, "", limit="5.0"),
    "limit 5.5": listed("invalid_request", LIMIT, limit=5.5),
    "search: limit 0": search("x", says=LIMIT, limit=0),
    "search: limit 101": clamped("limit", search("x", says=LIMIT, limit=CONTRACT.page_items + 1)),
    "groups: limit 101": counted(
        "invalid_request", LIMIT, metric="count", group_by="folder", limit=CONTRACT.page_items + 1
    ),
    "groups: limit 0": counted(
        "invalid_request", LIMIT, metric="count", group_by="folder", limit=0
    ),
    "limit without groups": counted("invalid_request", "group_by", metric="count", limit=5),
    "no fields": listed("invalid_request", "fields", RECORDS + "fields=", fields=[""]),
    "fields as text": listed("invalid_request", "list", "", fields="id"),
    "too many fields": listed(
        "invalid_request", f"{CONTRACT.names_in_list}", fields=["id"] * (CONTRACT.names_in_list + 1)
    ),
    "count": listed("invalid_request", "exact", count="all"),
    "detail": Bad("schema", {"detail": "all"}, "invalid_request", "compact"),
    "full without stream": Bad("schema", {"detail": "full"}, "invalid_request", "stream"),
    "full of many": Bad(
        "schema", {"detail": "full", "stream": "messages"}, "ambiguous_schema_detail", "bank"
    ),
    "view and fields": listed("invalid_request", "not both", view="basic", fields=["id"]),
    "missing metric": counted("invalid_request", "metric"),
    "metric": counted("invalid_request", "count_distinct", metric="median"),
    # filters
    "filter as text": listed("invalid_filter", "object", filter="size>3"),
    "filter as list": listed("invalid_filter", "object", "", filter=[1]),
    "filter no operator": listed("invalid_filter", "gte", "", filter={"size": {}}),
    "filter operator": listed("invalid_filter", "gte", filter={"size": {"like": 3}}),
    "filter list": listed("invalid_filter", "number", "", filter={"size": [1]}),
    "filter null": listed("invalid_filter", "number", "", filter={"size": None}),
    "filter bracket": listed(
        "invalid_filter", "cannot be filtered", RECORDS + "filter[]=1", filter={"a]": 1}
    ),
    "filter deep": listed(
        "invalid_filter",
        "gte",
        RECORDS + "filter[size][gte][x]=1",
        filter={"size": {"x": {"gte": 1}}},
    ),
    "filter undeclared": listed("invalid_filter", "search", filter={"body": "x"}),
    "filter no number": listed("invalid_filter", "integer", filter={"size": "many"}),
    "filter no boolean": listed("invalid_filter", "boolean", filter={"unread": "maybe"}),
    "filter no time": listed("invalid_filter", "date-time", filter={"received_at": {"gt": "now"}}),
    "filter long": listed("invalid_filter", "256", filter={"folder": "x" * 257}),
    "filter wide": listed("invalid_filter", "20", filter={f"f{n}": 1 for n in range(21)}),
    "filter of many streams": search("x", "invalid_filter", "streams", filter={"size": 1}),
    # sorting, relations
    "sort undeclared": listed("invalid_sort", "-received_at", sort="size"),
    "expand limit": listed(
        "invalid_expand", "at most 5", expand=["attachments"], expand_limit={"attachments": 6}
    ),
    "expand limit 0": listed("invalid_expand", "start at 1", expand_limit={"attachments": 0}),
    "expand limit number": listed("invalid_expand", "object", expand_limit=5),
    # queries
    "query empty": search("", says="1 and 500|needs query"),
    "query too long": search("x" * 501, says="1 and 500"),
    "query NUL": search("\0", says="NUL"),
    **{f"query {query}": search(query) for query in ("...", '"', "*", "^", "--", "-lantern", "{}")},
    # ids
    "id empty": fetch("", "invalid_request", "id", ""),
    "id NUL": fetch("messages:\0", "invalid_request", "NUL|id", "/v1/streams/messages/records/%00"),
    "id %00": fetch(
        "messages:%00", "invalid_request", "returned", "/v1/streams/messages/records/%00"
    ),
    "id ..": fetch("messages:..", "invalid_request", "returned", ""),
    "id of dots": fetch(
        "messages:%2e%2E", "not_found", "[Ss]earch", "/v1/streams/messages/records/%2e%2E"
    ),
    "stream of dots": fetch(
        "%2E%2E:m1", "invalid_request", "returned", "/v1/streams/%2E%2E/records/m1"
    ),
    "id word": fetch("m1", "invalid_request", "connection_id/stream:record_id", ""),
    "id number": fetch(5, "invalid_request", "id", ""),
    "id traversal": fetch("mail-work/messages:../../etc/passwd", "not_found", "[Ss]earch"),
    "id nobody": fetch("mail-work/messages:nope", "not_found", "[Ss]earch"),
    "id long": fetch("x" * 8_193, "invalid_request", "8192", ""),
    "id ambiguous": fetch("messages:m1", "ambiguous_connection", "bank"),
    "id conflicting": fetch(
        ID, "conflicting_connection_id", "Leave connection_id out", "", connection_id="bank"
    ),
    "uri of nothing": fetch("pdpp://record/", "invalid_request", "returned", ""),
    "uri of a stream": fetch("pdpp://record/e30", "invalid_request", "record id", ""),
    # windows
    "no path": Bad("read_record_field", {"id": ID}, "invalid_request", "field_path|needs field"),
    "path /": read("invalid_field_path", "JSON Pointer", field_path="/"),
    "path //": read("field_not_granted", "schema", field_path="//"),
    "path /a/b/c": read("field_not_granted", "schema", field_path="/a/b/c"),
    "path NUL": read("invalid_request", "NUL", field_path="\0"),
    "path into text": read("field_not_found", "whole field", field_path="/body/0"),
    "path index": read("field_not_found", "whole field", field_path="/headers/to/00"),
    "path past end": read("field_not_found", "whole field", field_path="/headers/to/9"),
    "window of none": read("invalid_request", LIMIT, limit_chars=0),
    "window too large": clamped("limit_chars", read("invalid_request", LIMIT, limit_chars=16_385)),
    "offset -1": read("invalid_request", LIMIT, offset_chars=-1),
    "offset and query": read("invalid_window", "not both", query="x", offset_chars=1),
    "match alone": read("invalid_window", "query", match=2),
    "match 0": read("invalid_request", LIMIT, query="x", match=0),
    "match 10**9": read("query_not_found", "smaller", query="lantern", match=10**9),
    "match 2**53 - 1": read("query_not_found", "smaller", query="lantern", match=2**53 - 1),
    "match 2**53": read("invalid_request", LIMIT, query="lantern", match=2**53),
    "query not there": read("query_not_found", "offset_chars", query="no such words"),
    "query of dots": read("query_not_found", "offset_chars", query="...?"),
    "context": read("invalid_request", LIMIT, query="x", before_chars=8_193),
    "cursor and offset": read(
        "invalid_window",
        "not both",
        WINDOW + "field=body&q=x&offset_chars=1",
        query="x",
        offset_chars=1,
    ),
    # aggregates
    "sum of nothing": counted("invalid_request", "field", metric="sum"),
    "count of a field": counted(
        "invalid_request", "Leave out `field`", metric="count", field="size"
    ),
    "sum undeclared": counted("invalid_request", "size", metric="sum", field="body"),
    "group undeclared": counted("invalid_request", "folder", metric="count", group_by="body"),
    "group a sum of text": counted(
        "invalid_request", "size", metric="sum", field="body", group_by="folder"
    ),
    "no granularity": Bad("aggregate", BY_TIME, "invalid_request", "granularity"),
    "granularity": Bad("aggregate", {**BY_TIME, "granularity": "era"}, "invalid_request", "week"),
    **{
        f"zone {zone}": Bad(
            "aggregate",
            {**BY_TIME, "granularity": "day", "time_zone": zone},
            "invalid_request",
            "IANA",
        )
        for zone in ("../../etc/passwd", "/etc/passwd", "America", "zone.tab", "Nope/Nope", "..")
    },
    # changes
    "bookmark": listed("invalid_cursor", "returned", changes_since="2026-01-01T00:00:00Z"),
    "changes filtered": listed(
        "invalid_request", "Combine it only", changes_since="beginning", filter={"size": 1}
    ),
    "changes counted": listed(
        "invalid_request", "Combine it only", changes_since="beginning", count="exact"
    ),
    "changes expanded": listed(
        "invalid_expand", "Combine it only", changes_since="beginning", expand=["attachments"]
    ),
    "cursor": listed("invalid_cursor", "start over", cursor="eyJ4IjoxfQ"),
    "cursor not text": listed("invalid_cursor", "start over", cursor="ü/\\"),
    "search cursor": search("x", "invalid_cursor", "start over", cursor="c.AAAA"),
}
