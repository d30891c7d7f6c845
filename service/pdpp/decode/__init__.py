"""Decodes PDPP bodies into typed values, and handles all differences between upstreams."""

from functools import lru_cache
from typing import Any

from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.model import SYNC_STATES, Source, SyncStatus
from evidence.times import microseconds


def pick(body: Any, *names: str) -> Any:
    """The first member of `names` that is not None."""
    if isinstance(body, dict):
        for name in names:
            value = body.get(name)
            if value is not None:
                return value
    return None


def text_of(body: Any, name: str, *alternatives: str) -> str | None:
    """The first of the named members with text, unless it is empty."""
    value = body.get(name) if isinstance(body, dict) else None
    if value is None and alternatives:
        value = pick(body, *alternatives)
    return value if isinstance(value, str) and value else None


def rows(body: Any, *names: str) -> list[dict[str, Any]]:
    """The objects of the first list among `names`."""
    value = pick(body, *names)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def object_of(body: dict[str, Any], name: str) -> dict[str, Any]:
    """The object under a name, or {}."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def number_of(body: Any, name: str) -> int | None:
    """The member, if it is a whole number and not a boolean."""
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def texts(body: Any, *names: str) -> dict[str, Any]:
    """The members that are text, by name; None for others."""
    return {name: text_of(body, name) for name in names}


def numbers(body: Any, *names: str, suffix: str = "") -> dict[str, Any]:
    """The members that are whole numbers, by name without the suffix; None for others."""
    return {name: number_of(body, name + suffix) for name in names}


#: One value for all rows of a source.
_source = lru_cache(maxsize=1024)(Source)


def source_of(body: dict[str, Any]) -> Source:
    """The source of a row."""
    return _source(
        text_of(body, "connection_id", "connector_instance_id"),
        text_of(body, "connector_key", "connector_id"),
        short(text_of(body, "display_name"), CONTRACT.name_chars),
    )


def short(text: str | None, most: int) -> str | None:
    """A label, truncated with `…` if it is long."""
    return text if text is None or len(text) <= most else text[: most - 1] + "…"


def warnings_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    return rows(body.get("meta"), "warnings")


def sync_of(row: dict[str, Any]) -> SyncStatus | None:
    """How up to date the connection of a row is, if the row has a known state."""
    state = text_of(row, "state") or ""
    if state not in SYNC_STATES:
        return None
    return SyncStatus(state, _time(row, "synced_at"), _time(row, "complete_until"))


def _time(row: dict[str, Any], name: str) -> str | None:
    time = text_of(row, name)
    return time if time and microseconds(time) is not None else None


def as_of(body: dict[str, Any]) -> tuple[Source, ...]:
    """The connections that are not up to date."""
    stale = (source_of(row)._replace(sync=sync_of(row)) for row in rows(body.get("meta"), "as_of"))
    return tuple(
        source
        for source in stale
        if source.sync and len(source.connection_id or "") <= CONTRACT.name_chars
    )


def reference(row: dict[str, Any], stream: str | None, source: Source) -> RecordRef | None:
    """The record of a row: always from its envelope, never from the payload."""
    name = text_of(row, "stream", "stream_name") or stream
    key = text_of(row, "record_key", "record_id", "id")
    return RecordRef(name, key, source.connection_id) if name and key else None
