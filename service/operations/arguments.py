"""Arguments as callers write them, before any check, and the descriptions of REST arguments."""

from collections.abc import Mapping
from typing import Any

from evidence.handles import RecordRef, without_session
from service.ports.types import NonText

#: Names that hosts add to the arguments of every tool. They are ignored.
ADDED_BY_HOSTS = ("toolCallId", "sessionId", "chatInput", "action", "tool", "random_string")


def normalized(raw: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without blank ones, and with the type that is declared instead of text."""
    parsed = {
        name: (
            declared[name].of_text(value)
            if isinstance(value, str) and isinstance(declared.get(name), NonText)
            else value
        )
        for name, value in raw.items()
    }
    return {
        name: value
        for name, value in parsed.items()
        if name not in declared or value not in (None, "", [], {})
    }


def renamed(raw: dict[str, Any], **aliases: str) -> dict[str, Any]:
    """Arguments with aliases replaced by declared names; a declared name wins."""
    arguments = {name: value for name, value in raw.items() if name not in aliases}
    for alias, name in aliases.items():
        if alias in raw:
            arguments.setdefault(name, raw[alias])
    return arguments


def with_id(raw: dict[str, Any]) -> dict[str, Any]:
    """Arguments with the `id` built from a `stream` and a `record_id`.

    An id that is an address loses the secret path of a browser session before it can be repeated.
    """
    if isinstance(raw.get("id"), str):
        return {**raw, "id": without_session(raw["id"])}
    parts = raw.get("stream"), raw.get("record_id")
    if "id" in raw or not all(isinstance(part, str) for part in parts):
        return raw
    rest = {name: value for name, value in raw.items() if name not in ("stream", "record_id")}
    return {"id": str(RecordRef(str(parts[0]), str(parts[1]))), **rest}


def over_rest(field: Any, default: Any = None) -> str:
    """The description of an argument over REST, with its default there."""
    meant: str = field.metadata.get("rest", field.metadata["description"])
    default = field.metadata.get("default") if default is None else default
    return meant if default is None else f"{meant.removesuffix('.')}, {default} by default."
