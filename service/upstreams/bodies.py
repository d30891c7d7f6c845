"""Bodies of upstreams: refused where they cannot be what was asked for, put right where they err.

Bodies are changed only where the port promises more than the contract: never more records than
asked for, offsets that count code points, warnings of a bounded size.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from evidence.limits import BUDGETS, CONTRACT
from service.upstreams.ports import (
    AggregateQuery,
    RecordQuery,
    SchemaQuery,
    SearchQuery,
    WindowRequest,
)
from service.upstreams.remote_errors import invalid

Body = dict[str, Any]

WARNINGS = 20
LISTS = ("data", "records")
HITS = ("data", "results", "hits")


def rows(body: Body, names: Sequence[str]) -> tuple[str, list[Body]]:
    """(name, rows) of the list a body holds; every row is an object."""
    for name in names:
        found = body.get(name)
        if isinstance(found, list) and all(isinstance(row, dict) for row in found):
            return name, found
    raise invalid("sends a list without rows")


def require(good: bool, what: str) -> None:
    """Raises `upstream_invalid_response` where a body lacks what makes it one of its kind."""
    if not good:
        raise invalid(f"sends no {what} where one was asked for")


def page(body: Body, query: RecordQuery) -> Body:
    """A list of records; where several connections are listed one after the other, a share of each.

    Such a list has no cursor: a warning says which connections to ask alone.
    """
    name, found = rows(body, LISTS)
    if body.get("next_cursor") or query.connection_id or len(found) <= query.limit:
        require(len(found) <= query.limit, "page of the size that was asked for")
        kept = found
    else:
        kept = _shared(found, query.limit)
    more = bool(body.get("has_more")) or len(kept) < len(found)
    if not more or body.get("next_cursor"):
        return body
    told = _warning(
        "partial_results",
        "This source cannot page over several connections at once. Retry with one as connection_id "
        f"to read all its records: {', '.join(_connections(found)) or 'schema lists them'}.",
        param="connection_id",
    )
    return {**body, name: kept, "has_more": True, "meta": _with(body, told, instead=True)}


def _shared(found: list[Body], limit: int) -> list[Body]:
    """At most `limit` rows, taken in turn from each connection, in the order they came in."""
    turns = Counter[str]()
    turn = list[tuple[int, int]]()
    for place, row in enumerate(found):
        name = _connection(row)
        turn.append((turns[name], place))
        turns[name] += 1
    kept = {place for _, place in sorted(turn)[:limit]}
    return [row for place, row in enumerate(found) if place in kept]


def _connections(found: list[Body]) -> list[str]:
    return [name for name in dict.fromkeys(map(_connection, found)) if name][: CONTRACT.candidates]


def _connection(row: Body) -> str:
    return str(row.get("connection_id") or row.get("connector_instance_id") or "")


def hits(body: Body, query: SearchQuery) -> Body:
    """A search page. Where more is promised than can be asked for, a warning says what helps."""
    name, found = rows(body, HITS)
    require(len(found) <= query.limit, "page of the size that was asked for")
    body = {**body, name: [_hit(row) for row in found]}
    if isinstance(body.get("meta"), dict) and not isinstance(body["meta"].get("recall"), dict):
        body["meta"] = {key: one for key, one in body["meta"].items() if key != "recall"}
    if not body.get("has_more") or body.get("next_cursor"):
        return body
    told = _warning(
        "partial_results",
        "This source gives no further page of a search. Raise limit, or narrow the search with "
        "streams or connection_id.",
        param="cursor",
    )
    return {**body, "meta": _with(body, told)}


def figure(body: Body, query: AggregateQuery) -> Body:
    """A figure or groups. Where groups are missing without a cursor, a warning says what helps."""
    inner = unwrapped(body)
    groups = inner.get("groups")
    require("value" in inner or isinstance(groups, list), "figure")
    if not isinstance(groups, list) or inner.get("next_cursor"):
        return body
    limit = query.limit or CONTRACT.groups_default
    others, known = inner.get("other_count"), inner.get("group_count")
    if isinstance(others, int):
        cut = others > 0
    else:  # a server that merges connections counts no others
        cut = len(groups) < known if isinstance(known, int) else len(groups) >= limit
    if not cut:
        return body
    helps = "connection_id or filter"
    if query.group_by_time:
        helps = f"a coarser granularity, {helps}"
    if limit < CONTRACT.page_items:
        helps = f"limit (up to {CONTRACT.page_items}), {helps}"
    told = _warning(
        "partial_results",
        f"This source gives no further groups after these. Reach the others with {helps}.",
        param="cursor",
    )
    return {**body, "meta": _with(body, told)}


def _hit(row: Body) -> Body:
    """A hit whose lists are lists, and whose excerpts say in a known way how they are read."""
    right = dict(row)
    for name in ("matched_fields", "evidence_excerpts"):
        if not isinstance(row.get(name, []), list):
            del right[name]
    if "evidence_excerpts" in right:
        excerpts = [one for one in right["evidence_excerpts"] if isinstance(one, dict)]
        right["evidence_excerpts"] = [_excerpt(one) for one in excerpts]
    return right


def _excerpt(found: Body) -> Body:
    read = found.get("read")
    if isinstance(read, dict) and isinstance(read.get("route"), str):
        return found
    return {name: value for name, value in found.items() if name != "read"}


def window(body: Body, asked: WindowRequest) -> Body:
    """A field window whose offsets count code points, as its text does.

    Some servers count its end in UTF-16, and their next offset skips text after an emoji.
    """
    found = body.get("window")
    if isinstance(body.get("binary"), dict) and not isinstance(found, dict):
        return body
    require(isinstance(found, dict) and isinstance(found.get("text"), str), "field window")
    assert isinstance(found, dict)
    text, start = found["text"], _whole(found.get("start_chars"))
    end, total = start + len(text), found.get("total_chars")
    whole = _whole(total) if total is not None else end
    right = {
        **found,
        "start_chars": start,
        "end_chars": end,
        "total_chars": max(whole, end),
        "complete": start == 0 and end >= whole,
        "has_more": end < whole,
        "next_offset_chars": end if end < whole else None,
    }
    wide = _utf16(text)
    if found.get("end_chars") == start + wide != end and asked.query:
        match = found.get("match_start_chars"), found.get("match_end_chars")
        if None not in match and _whole(match[1]) - _whole(match[0]) == _utf16(asked.query):
            right["match_end_chars"] = _whole(match[0]) + len(asked.query)
    return {**body, "window": right}


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _whole(value: Any) -> int:
    require(isinstance(value, int) and not isinstance(value, bool) and value >= 0, "offset")
    return int(value)


def schema(body: Body, query: SchemaQuery) -> Body:
    """A schema document, capabilities by field. Where none are told, a warning says what works."""
    described = streams(body) or []
    for stream in described:
        if isinstance(stream, dict):
            _tidy(stream)
    if query.stream is None or any(_tells(stream) for stream in described):
        return body
    told = _warning(
        "compatibility_fallback",
        "This source does not tell what its fields allow. filter, view and expand are refused to "
        "most tokens here; search, fields, sort by time and aggregate often work: try them.",
    )
    return {**body, "meta": _with(body, told)}


def _tidy(stream: Body) -> None:
    """Capabilities by the name of the field, where a server lists them; relations with names."""
    found = stream.get("field_capabilities") or {}
    if not isinstance(found, dict):
        listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        names = [one.get("name") or one.get("field") or one.get("path") for one in listed]
        found = {name: one for name, one in zip(names, listed) if isinstance(name, str)}
        stream["field_capabilities"] = found
    relations = stream.get("expand_capabilities")
    if relations:
        stream["expand_capabilities"] = [
            one
            for one in (relations if isinstance(relations, list) else [])
            if isinstance(one, dict) and isinstance(one.get("name"), str)
        ]


def streams(body: Body) -> list[Any] | None:
    """The streams of a schema document, in any of its shapes; None where it is none."""
    inner = unwrapped(body)
    connectors = inner.get("connectors")
    if isinstance(connectors, list):
        found = [one.get("streams") for one in connectors if isinstance(one, dict)]
        return [one for listed in found if isinstance(listed, list) for one in listed]
    listed = inner.get("streams")
    return listed if isinstance(listed, list) else None


def unwrapped(body: Body) -> Body:
    """What some servers put into `data`."""
    inner = body.get("data")
    return inner if isinstance(inner, dict) else body


def _tells(stream: Any) -> bool:
    """Whether any field of a stream has a capability that can be used."""
    fields = stream.get("field_capabilities") if isinstance(stream, dict) else None
    return any(_usable(one) for one in (fields or {}).values())


def _usable(flags: Any) -> bool:
    if isinstance(flags, str):
        return flags != "declared"
    if not isinstance(flags, dict):
        return False
    return flags.get("usable") is True or any(_usable(part) for part in flags.values())


def bounded(body: Body) -> Body:
    """The body with as many and as long warnings as fit an answer; no `meta` that is none."""
    meta = body.get("meta", {})
    if not isinstance(meta, dict):
        return {key: one for key, one in body.items() if key != "meta"}
    told = meta.get("warnings")
    if not told:
        return body
    listed = told if isinstance(told, list) else []
    kept = [_short(one) for one in listed[:WARNINGS] if isinstance(one, dict)]
    return {**body, "meta": {**meta, "warnings": kept}}


def _short(warning: Body) -> Body:
    most = BUDGETS.message_chars
    return {
        name: f"{value[: most - 1]}…" if isinstance(value, str) and len(value) > most else value
        for name, value in warning.items()
        if isinstance(value, (str, int, float)) or (name == "detail" and _is_small(value))
    }


def _is_small(value: Any) -> bool:
    return len(orjson.dumps(value)) <= BUDGETS.upstream_detail_bytes


def _warning(code: str, message: str, **more: str) -> Body:
    return {"code": code, "message": message, **more}


def _with(body: Body, told: Body, *, instead: bool = False) -> Body:
    """The `meta` of a body with one more warning, or one in place of others of its code."""
    meta = body.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    before = meta.get("warnings")
    kept = [
        one
        for one in (before if isinstance(before, list) else [])
        if not (instead and isinstance(one, dict) and one.get("code") == told["code"])
    ]
    return {**meta, "warnings": [*kept, told]}
