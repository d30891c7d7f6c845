"""Routing headers: they repeat parts of the body for proxies, so they must agree with it.

`Mcp-Method` and `Mcp-Name` repeat the method and its target. `Mcp-Param-*` repeat arguments that a
tool's schema marks with `x-mcp-header`. A value no header can carry as it is comes wrapped:
`=?base64?<base64 of the UTF-8>?=`.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import orjson

from service.mcp.faults import HEADER_MISMATCH, Fault

_OPENING: Final = "=?base64?"
_CLOSING: Final = "?="

#: The parameter that names what a method acts on.
NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

#: A header, and the path of the argument it repeats.
Mirror = tuple[str, tuple[str, ...]]


class Headers(Protocol):
    """Request headers, looked up without regard to case."""

    def get(self, name: str, /) -> str | None: ...


def mismatch(header: str, problem: str) -> Fault:
    """A header that is missing or differs from the body."""
    return Fault(HEADER_MISMATCH, f"The {header} header {problem}.", status=400)


def decoded(header: str, value: str) -> str:
    """The text a header carries, unwrapped. A wrapping that is not exact is refused."""
    if not (value.startswith(_OPENING) and value.endswith(_CLOSING)):
        return value
    wrapped = value[len(_OPENING) : -len(_CLOSING)]
    try:
        raw = b64decode(wrapped, validate=True)
        if b64encode(raw).decode("ascii") != wrapped:
            raise ValueError("not the canonical spelling")
        return raw.decode("utf-8")
    except ValueError:
        raise mismatch(header, "is wrapped as base64 but does not decode to UTF-8") from None


def check_routing(headers: Headers, method: str, params: Mapping[str, Any]) -> None:
    """Refuses a request whose `Mcp-Method` or `Mcp-Name` differs from its body."""
    _check("Mcp-Method", headers.get("Mcp-Method"), method)
    key = NAMED_BY.get(method)
    if key is not None:
        name = headers.get("Mcp-Name")
        _check("Mcp-Name", decoded("Mcp-Name", name) if name is not None else None, params.get(key))


def _check(header: str, sent: str | None, expected: Any) -> None:
    if sent == expected:
        return
    if sent is None:
        raise mismatch(header, "is missing; it must repeat the request body")
    raise mismatch(header, "differs from the request body")


def mirrors(tool: Mapping[str, Any]) -> tuple[Mirror, ...]:
    """The `Mcp-Param-*` headers a tool declares; none for most."""
    return tuple(_declared(tool.get("inputSchema", {}), ()))


def _declared(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Mirror]:
    for key, part in schema.get("properties", {}).items():
        if name := part.get("x-mcp-header"):
            yield f"Mcp-Param-{name}", (*path, key)
        yield from _declared(part, (*path, key))


def check_mirrors(
    headers: Headers, declared: tuple[Mirror, ...], arguments: Mapping[str, Any]
) -> None:
    """Refuses a call whose `Mcp-Param-*` headers are not its arguments, value for value."""
    for header, path in declared:
        value: Any = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        sent = headers.get(header)
        if value is None and sent is not None:
            raise mismatch(header, "repeats an argument that the request body does not have")
        if value is not None and (sent is None or not _same(decoded(header, sent), value)):
            raise mismatch(header, "is missing or differs from the argument in the request body")


def _same(sent: str, value: Any) -> bool:
    """Compares text exactly, numbers by value, booleans only with booleans."""
    if isinstance(value, str):
        return sent == value
    try:
        parsed = orjson.loads(sent)
    except orjson.JSONDecodeError:
        return False
    return isinstance(parsed, bool) == isinstance(value, bool) and bool(parsed == value)
