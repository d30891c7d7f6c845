"""Warnings in the `meta` of a body: those of the source bounded, and our own added."""

from typing import Any

from evidence.limits import BUDGETS
from service.pdpp.decode import short
from service.sources.remote.remote_errors import is_small

Body = dict[str, Any]


def bounded(body: Body) -> Body:
    """The body with at most 20 warnings, each shortened; drops a `meta` that is not an object."""
    meta = body.get("meta", {})
    if not isinstance(meta, dict):
        return {key: one for key, one in body.items() if key != "meta"}
    warnings = meta.get("warnings")
    if not warnings:
        return body
    listed = warnings if isinstance(warnings, list) else []
    kept = [_short(one) for one in listed[: BUDGETS.upstream_warnings] if isinstance(one, dict)]
    return {**body, "meta": {**meta, "warnings": kept}}


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
    meta = body.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    before = meta.get("warnings")
    kept = [
        one
        for one in (before if isinstance(before, list) else [])
        if not (instead and isinstance(one, dict) and one.get("code") == code)
    ]
    warning = {"code": code, "message": message, **({"param": param} if param else {})}
    return {**body, "meta": {**meta, "warnings": [*kept, warning]}}
