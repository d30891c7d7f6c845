"""Field paths: a literal top-level name, or a JSON Pointer (RFC 6901) that starts with `/`."""

from collections.abc import Iterator
from typing import Any

from evidence.errors import InvalidRequest, NotFound

_ABSENT = object()


def top_level(path: str) -> str:
    """The top-level field of a path; raises 400 `invalid_field_path`."""
    if not path or "\0" in path or path == "/":
        raise InvalidRequest(
            "field_path does not name a field. Pass a field name, or a JSON Pointer that starts "
            "with '/'.",
            code="invalid_field_path",
            param="field_path",
        )
    return _tokens(path)[0] if path.startswith("/") else path


def path_of(name: str) -> str:
    """The field path of a top-level field: its name, or a pointer if the name looks like one."""
    return escaped(name) if name.startswith("/") else name


def is_nested(path: str) -> bool:
    """True if a path names something inside a top-level field."""
    return path.startswith("/") and "/" in path[1:]


def escaped(name: str) -> str:
    """The JSON Pointer of a top-level field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def find(data: dict[str, Any], path: str) -> Any:
    """The value at a path of a record, or None."""
    if not path.startswith("/"):
        return data.get(path)
    value: Any = data
    for token in _tokens(path):
        value = _member(value, token)
    return value


def searched_text(value: Any) -> str:
    """The text of a value whose words are searched; for an array, its strings, one per line."""
    if isinstance(value, str):
        return value
    return "\n".join(strings(value)) if isinstance(value, list) else ""


def strings(value: Any) -> Iterator[str]:
    """All strings inside a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def inside(value: Any, path: str) -> Any:
    """The value at the rest of the pointer inside a top-level value; 404 `field_not_found`."""
    if not path.startswith("/"):
        return value
    for token in _tokens(path)[1:]:
        value = _member(value, token, _ABSENT)
        if value is _ABSENT:
            raise NotFound(
                f"There is nothing at {token!r} in the value. Read the whole field instead.",
                code="field_not_found",
                param="field_path",
            )
    return value


def json_type(value: Any) -> str:
    """The JSON type of a value, in JSON Schema's words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "array"


def _tokens(path: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _member(value: Any, token: str, absent: Any = None) -> Any:
    """The member of an object or an array that a token of a pointer names."""
    if isinstance(value, dict):
        return value.get(token, absent)
    return value[int(token)] if isinstance(value, list) and _is_index(token, len(value)) else absent


def _is_index(token: str, length: int) -> bool:
    plain = token.isascii() and token.isdigit() and (token == "0" or not token.startswith("0"))
    return plain and int(token) < length
