"""Warnings in the `meta` of a body: bounded where a source sends them, added where we have one."""

from typing import Any

import orjson

from evidence.limits import BUDGETS

Body = dict[str, Any]


def bounded(body: Body) -> Body:
    """The body with as many and as long warnings as fit an answer; no `meta` that is none."""
    meta = body.get("meta", {})
    if not isinstance(meta, dict):
        return {key: one for key, one in body.items() if key != "meta"}
    told = meta.get("warnings")
    if not told:
        return body
    listed = told if isinstance(told, list) else []
    kept = [_short(one) for one in listed[: BUDGETS.upstream_warnings] if isinstance(one, dict)]
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


def warning(code: str, message: str, **more: str) -> Body:
    return {"code": code, "message": message, **more}


def added(body: Body, told: Body, *, instead: bool = False) -> Body:
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
