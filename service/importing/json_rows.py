"""Rows of JSON values: PDPP's ingest form, a record as `rung export` writes it, or a plain one."""

from typing import Any

from service.importing.exact_json import loads
from service.importing.text_repair import Repair
from service.records.intake import Row

_INGEST_WORDS = frozenset({"key", "data", "emitted_at", "stream", "op"})
_EXPORTED = frozenset({"id", "stream", "emitted_at"})
_ADDED = frozenset({"fetch_url", "available"})


def parsed(content: bytes, repair: Repair, what: str) -> Row | str:
    """A row from JSON in any of these forms; `what` is its place in a file, such as `line`."""
    try:
        value = loads(content)
    except ValueError as error:
        return f"This {what} is not JSON: {error}."
    return row_of(repair.value(value) if b"\\u0000" in content else value)


def row_of(value: Any) -> Row | str:
    if not isinstance(value, dict):
        return "A record must be a JSON object."
    if value.get("object") == "record" and _EXPORTED <= value.keys():
        return _exported(value)
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


def _exported(value: dict[str, Any]) -> Row | str:
    data, deleted = value.get("data") or {}, value.get("deleted") is True
    if not isinstance(data, dict) or not isinstance(value["emitted_at"], str):
        return '"data" must be an object, "emitted_at" a string.'
    data = {name: _stored(item) for name, item in data.items()}
    return Row(data, value["id"], value["emitted_at"], str(value["stream"]), deleted)


def _stored(value: Any) -> Any:
    """A value without the members that a source adds to a blob reference."""
    if isinstance(value, list):
        return [_stored(item) for item in value]
    if isinstance(value, dict) and "blob_id" in value:
        return {name: item for name, item in value.items() if name not in _ADDED}
    return value


def _is_ingest_form(value: dict[str, Any]) -> bool:
    if not value.keys() <= _INGEST_WORDS or value.keys() <= {"data"}:
        return False
    return isinstance(value.get("data"), dict) or value.get("op") == "delete"
