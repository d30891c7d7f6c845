"""Checks the bodies that upstreams send: refuses unexpected ones and corrects known errors.

Bodies are changed only where the port promises more than the contract: at most the requested number
of records, offsets in code points, warnings of limited size.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evidence.model import known
from evidence.limits import BUDGETS, CONTRACT
from service.pdpp.decode import number_of, object_of, short, text_of
from service.pdpp.decode import rows as object_rows
from service.ports import AggregateQuery, RecordQuery, SchemaQuery, SearchQuery, WindowRequest
from service.sources.remote.remote_errors import invalid, is_small

Body = dict[str, Any]


def bounded(body: Body) -> Body:
    """The body with at most 20 warnings, each shortened; drops a `meta` that is not an object."""
    meta = body.get("meta", {})
    if not isinstance(meta, dict):
        return {key: member for key, member in body.items() if key != "meta"}
    if not meta.get("warnings"):
        return body
    warnings = map(_short, object_rows(meta, "warnings")[: BUDGETS.upstream_warnings])
    return {**body, "meta": {**meta, "warnings": [*warnings]}}


def _short(warning: Body) -> Body:
    return {
        name: short(value, BUDGETS.message_chars) if isinstance(value, str) else value
        for name, value in warning.items()
        if isinstance(value, (str, int, float)) or (name == "detail" and is_small(value))
    }


def warned(
    body: Body, code: str, message: str, *, param: str | None = None, instead: bool = False
) -> Body:
    """The body with one more warning in its `meta`, or with those of its code replaced."""
    meta = object_of(body, "meta")
    earlier = [
        notice
        for notice in object_rows(meta, "warnings")
        if not (instead and notice.get("code") == code)
    ]
    warning = known({"code": code, "message": message, "param": param})
    return {**body, "meta": {**meta, "warnings": [*earlier, warning]}}


LISTS = ("data", "records")
HITS = ("data", "results", "hits")


def rows(body: Body, names: Sequence[str]) -> tuple[str, list[Body]]:
    """(name, rows) of the list a body holds; every row is an object."""
    for name in names:
        listing = body.get(name)
        if isinstance(listing, list) and all(isinstance(row, dict) for row in listing):
            return name, listing
    raise invalid("returned a list without rows")


def require(good: bool, what: str) -> None:
    """Raises `upstream_invalid_response` if a body lacks a required member."""
    if not good:
        raise invalid(f"returned no {what}")


def record(body: Body) -> Body:
    """A record."""
    require(isinstance(body.get("data"), dict), "record")
    return body


def page(body: Body, query: RecordQuery) -> Body:
    """A list of records; if several connections are listed one after the other, a share of each.

    Such a list has no cursor: a warning lists the connections to query separately.
    """
    body = _forward(body, query.cursor)
    name, records = rows(body, LISTS)
    if len(records) > query.limit and (body.get("next_cursor") or query.connection_id):
        return _cut(body, name, query.limit)
    chosen = _shared(records, query.limit) if len(records) > query.limit else records
    incomplete = bool(body.get("has_more")) or len(chosen) < len(records)
    if not incomplete or body.get("next_cursor"):
        return body
    return warned(
        {**body, name: chosen, "has_more": True},
        "partial_results",
        "This source cannot page through several connections at once. To read all records of one "
        "connection, retry with its connection_id: "
        f"{', '.join(_connections(records)) or 'schema lists them'}.",
        param="connection_id",
        instead=True,
    )


def figure(body: Body, query: AggregateQuery) -> Body:
    """A single value, or at most the requested number of groups; warns if some are missing."""
    inner = unwrapped(body)
    groups = inner.get("groups")
    require("value" in inner or isinstance(groups, list), "figure")
    if not isinstance(groups, list):
        return body
    if len(groups) > (query.limit or CONTRACT.page_items):
        return _cut_groups(body, inner, query.limit or CONTRACT.page_items)
    return body if inner.get("next_cursor") else _without_cursor(body, inner, query)


def _cut_groups(body: Body, inner: Body, most: int) -> Body:
    """The requested number of groups, and a warning about the others."""
    groups = inner["groups"]
    counts = [inner.get("other_count"), *(number_of(group, "count") for group in groups[most:])]
    whole_counts = [count for count in counts if isinstance(count, int)]
    cut = {**inner, "groups": groups[:most], "other_count": sum(whole_counts)}
    if len(whole_counts) < len(counts):
        del cut["other_count"]
    return warned(
        cut if inner is body else {**body, "data": cut},
        "partial_results",
        f"This source returned {len(groups)} groups, although the limit is {most}. Groups left "
        f"out: {len(groups) - most}. {_larger(len(groups), most)}",
        param="limit",
    )


def _without_cursor(body: Body, inner: Body, query: AggregateQuery) -> Body:
    """Groups of a source without a cursor; if it has more, a warning explains how to reach them."""
    limit = query.limit or CONTRACT.groups_default
    other_count, group_count = inner.get("other_count"), inner.get("group_count")
    if isinstance(other_count, int):
        cut = other_count > 0
    else:  # a server that merges connections counts no other groups
        cut = (
            len(inner["groups"]) < group_count
            if isinstance(group_count, int)
            else len(inner["groups"]) >= limit
        )
    if not cut:
        return body
    helps = "connection_id or filter"
    if query.group_by_time:
        helps = f"a coarser granularity, {helps}"
    if limit < CONTRACT.page_items:
        helps = f"limit (up to {CONTRACT.page_items}), {helps}"
    return warned(
        body,
        "partial_results",
        f"This source returns only one page of groups. To see other groups, use {helps}.",
        param="cursor",
    )


def _forward(body: Body, cursor: str | None) -> Body:
    """The body, if its cursor leads to another page; raises if it repeats this one."""
    following = text_of(body, "next_cursor") or text_of(body.get("meta"), "next_cursor")
    if cursor is None or following != cursor:
        return body
    if body.get("has_more"):
        raise invalid("returned the same page again")
    return {name: member for name, member in body.items() if name != "next_cursor"}


def _cut(body: Body, name: str, limit: int) -> Body:
    """The requested number of rows, and a warning about the others.

    The cursor of the answer leads past all of them.
    """
    count = len(body[name])
    return warned(
        {**body, name: body[name][:limit], "has_more": True},
        "partial_results",
        f"This source returned {count} rows instead of {limit}. Rows left out of all "
        f"pages: {count - limit}. {_larger(count, limit)}",
        param="limit",
    )


def _larger(count: int, limit: int) -> str:
    """The advice for reaching the rows that are left out."""
    if limit >= CONTRACT.page_items:
        return "To see them, narrow the request."
    larger = min(count, CONTRACT.page_items)
    return f"To see them, retry with limit={larger}, or narrow the request."


def _shared(records: list[Body], limit: int) -> list[Body]:
    """At most `limit` rows, taken in turn from each connection, in the order they came in."""
    turns = Counter[str]()
    turn = list[tuple[int, int]]()
    for index, row in enumerate(records):
        name = _connection(row)
        turn.append((turns[name], index))
        turns[name] += 1
    chosen = {index for _, index in sorted(turn)[:limit]}
    return [row for index, row in enumerate(records) if index in chosen]


def _connections(records: list[Body]) -> list[str]:
    return [id for id in dict.fromkeys(map(_connection, records)) if id][: CONTRACT.candidates]


def _connection(row: Body) -> str:
    return str(row.get("connection_id") or row.get("connector_instance_id") or "")


def hits(body: Body, query: SearchQuery) -> Body:
    """A search page. If it announces more than can be requested, a warning has the fix."""
    body = _forward(body, query.cursor)
    name, hit_rows = rows(body, HITS)
    cut = len(hit_rows) > query.limit
    body = _cut(body, name, query.limit) if cut else body
    body = {**body, name: [_hit(row) for row in body[name]]}
    if isinstance(body.get("meta"), dict) and not isinstance(body["meta"].get("recall"), dict):
        body["meta"] = {key: member for key, member in body["meta"].items() if key != "recall"}
    if cut or not body.get("has_more") or body.get("next_cursor"):
        return body
    return warned(
        body,
        "partial_results",
        "This source returns only one page of search results. Raise limit, or narrow the search "
        "with streams or connection_id.",
        param="cursor",
    )


def _hit(row: Body) -> Body:
    """A hit whose lists are lists, and whose excerpts have their read in a known form."""
    right = dict(row)
    for name in ("matched_fields", "evidence_excerpts"):
        if not isinstance(row.get(name, []), list):
            del right[name]
    if "evidence_excerpts" in right:
        right["evidence_excerpts"] = [*map(_excerpt, object_rows(right, "evidence_excerpts"))]
    return right


def _excerpt(excerpt: Body) -> Body:
    read = excerpt.get("read")
    if isinstance(read, dict) and isinstance(read.get("route"), str):
        return excerpt
    return {name: value for name, value in excerpt.items() if name != "read"}


def window(body: Body, request: WindowRequest) -> Body:
    """A field window whose offsets count code points, as its text does.

    Some servers count its end in UTF-16, and their next offset skips text after an emoji.
    """
    received = body.get("window")
    if isinstance(body.get("binary"), dict) and not isinstance(received, dict):
        return body
    require(isinstance(received, dict) and isinstance(received.get("text"), str), "field window")
    assert isinstance(received, dict)
    text, start = received["text"], _whole(received.get("start_chars"))
    end, total = start + len(text), received.get("total_chars")
    whole = _whole(total) if total is not None else end
    right = {
        **received,
        "start_chars": start,
        "end_chars": end,
        "total_chars": max(whole, end),
        "complete": start == 0 and end >= whole,
        "has_more": end < whole,
        "next_offset_chars": end if end < whole else None,
    }
    wide = _utf16(text)
    if received.get("end_chars") == start + wide != end and request.query:
        match = received.get("match_start_chars"), received.get("match_end_chars")
        if None not in match and _whole(match[1]) - _whole(match[0]) == _utf16(request.query):
            right["match_end_chars"] = _whole(match[0]) + len(request.query)
    return {**body, "window": right}


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _whole(value: Any) -> int:
    require(isinstance(value, int) and not isinstance(value, bool) and value >= 0, "offset")
    return int(value)


def schema(body: Body, query: SchemaQuery) -> Body:
    """A schema document, capabilities by field. Without any, a warning lists what works."""
    described = streams(body) or []
    for stream in described:
        if isinstance(stream, dict):
            _tidy(stream)
    capabilities = [
        object_of(stream, "field_capabilities") for stream in described if isinstance(stream, dict)
    ]
    if query.stream is None or any(
        _usable(flags) for fields in capabilities for flags in fields.values()
    ):
        return body
    return warned(
        body,
        "compatibility_fallback",
        "This source does not describe its fields. It refuses the arguments `filter`, `view` and "
        "`expand` for most tokens; search, `fields`, sorting by time and aggregate often work.",
    )


def _tidy(stream: Body) -> None:
    """Turns lists of capabilities into objects by field name, and adds names to relations."""
    fields = stream.get("field_capabilities") or {}
    if not isinstance(fields, dict):
        capability_rows = object_rows(stream, "field_capabilities")
        names = [row.get("name") or row.get("field") or row.get("path") for row in capability_rows]
        fields = {name: row for name, row in zip(names, capability_rows) if isinstance(name, str)}
        stream["field_capabilities"] = fields
    if stream.get("expand_capabilities"):
        relations = object_rows(stream, "expand_capabilities")
        valid_relations = [row for row in relations if isinstance(row.get("name"), str)]
        stream["expand_capabilities"] = valid_relations


def streams(body: Body) -> list[Any] | None:
    """The streams of a schema document, in any of its shapes; None for other bodies."""
    inner = unwrapped(body)
    connectors = inner.get("connectors")
    if isinstance(connectors, list):
        lists = [entry.get("streams") for entry in connectors if isinstance(entry, dict)]
        return [stream for listing in lists if isinstance(listing, list) for stream in listing]
    listing = inner.get("streams")
    return listing if isinstance(listing, list) else None


def unwrapped(body: Body) -> Body:
    """The document, unwrapped from `data` if the server wraps it."""
    inner = body.get("data")
    return inner if isinstance(inner, dict) else body


def _usable(flags: Any) -> bool:
    """True if a field has a capability that can be used."""
    if isinstance(flags, str):
        return flags != "declared"
    if not isinstance(flags, dict):
        return False
    return flags.get("usable") is True or any(_usable(part) for part in flags.values())
