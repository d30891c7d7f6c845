"""Rows of JSON values: PDPP's ingest form, or the plain record."""

from typing import Any

from service.records.intake import Row

_INGEST_WORDS = frozenset({"key", "data", "emitted_at", "stream", "op"})


def row_of(value: Any) -> Row | str:
    """A row from a JSON value: PDPP's ingest form, or the plain record."""
    if not isinstance(value, dict):
        return "A record must be a JSON object."
    if not _is_ingest_form(value):
        return Row(data=value)
    data, op = value.get("data"), value.get("op")
    if op not in (None, "upsert", "put", "delete"):
        return f'"op" is {op!r}; it may be "delete", or be left out.'
    if data is None and op == "delete":
        data = {}
    if not isinstance(data, dict):
        return '"data" must be an object.'
    for name in ("emitted_at", "stream"):
        if not isinstance(value.get(name), (str, type(None))):
            return f'"{name}" must be a string.'
    return Row(data, value.get("key"), value.get("emitted_at"), value.get("stream"), op == "delete")


def _is_ingest_form(value: dict[str, Any]) -> bool:
    if not value.keys() <= _INGEST_WORDS or value.keys() <= {"data"}:
        return False
    return isinstance(value.get("data"), dict) or value.get("op") == "delete"
