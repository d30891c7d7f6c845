"""Negotiates the revision of a message and validates it before its method runs.

A message is modern if it names its revision in `params._meta`, or if the header names a modern one.
Its body must then be complete, and the headers must agree with it. For all other messages, only the
revision and the frame are checked. The order of the checks is part of the protocol: clients choose
their next step by the first error.

Routing headers repeat parts of the body for proxies, so they must agree with it: `Mcp-Method` and
`Mcp-Name` the method and its target, `Mcp-Param-*` the arguments that a tool's schema marks with
`x-mcp-header`. A value that a header cannot contain is wrapped: `=?base64?<base64 of UTF-8>?=`.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from service.mcp import faults, versions
from service.mcp.faults import Fault, invalid_request, shortened

_OPENING: Final = "=?base64?"
_CLOSING: Final = "?="

#: The parameter that names the target of a method.
TARGET_PARAMETERS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

#: A header, and the path of the argument that it repeats.
Mirror = tuple[str, tuple[str, ...]]


class Headers:
    """Request headers from a WSGI environment; lookups ignore case."""

    __slots__ = ("_environ",)

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self._environ = environ

    def get(self, name: str) -> str | None:
        """The value of a header; None if it is missing."""
        value: str | None = self._environ.get("HTTP_" + name.upper().replace("-", "_"))
        return value


def mismatch(header: str, problem: str) -> Fault:
    """A header that is missing or differs from the body."""
    return Fault(faults.HEADER_MISMATCH, f"The {header} header {problem}.", status=400)


def decoded(header: str, value: str) -> str:
    """The text in a header, unwrapped. An inexact wrapping is refused."""
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
    expected: dict[str, Any] = {"Mcp-Method": method}
    if method in TARGET_PARAMETERS:
        expected["Mcp-Name"] = params.get(TARGET_PARAMETERS[method])
    for header, value in expected.items():
        sent = headers.get(header)
        if sent is not None and header == "Mcp-Name":
            sent = decoded(header, sent)
        if sent != value:
            missing = "is missing; it must repeat the value in the request body"
            raise mismatch(header, missing if sent is None else "differs from the request body")


def mirrors(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Mirror]:
    """The `Mcp-Param-*` headers that the schema of a tool declares; none for most."""
    for key, part in schema.get("properties", {}).items():
        if name := part.get("x-mcp-header"):
            yield f"Mcp-Param-{name}", (*path, key)
        yield from mirrors(part, (*path, key))


def check_mirrors(headers: Headers, declared: tuple[Mirror, ...], args: Mapping[str, Any]) -> None:
    """Refuses a call whose `Mcp-Param-*` headers do not equal its args."""
    for header, path in declared:
        value: Any = args
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        sent = headers.get(header)
        if value is None and sent is not None:
            raise mismatch(header, "contains an argument that is missing from the request body")
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


VERSION_HEADER: Final = "MCP-Protocol-Version"
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"


@dataclass(frozen=True, slots=True)
class Request:
    """One valid request. `headers` are set over HTTP only."""

    id: str | int
    method: str
    params: dict[str, Any]
    version: str
    modern: bool = False
    headers: Headers | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)


def claimed(message: Any) -> Any:
    """The revision that the body of a message names, or None."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(VERSION_KEY) if isinstance(meta, dict) else None


def posted(message: Any, headers: Headers) -> Request | None:
    """The request in a POST body; None if it needs no answer."""
    own = claimed(message)
    if own in (None, *versions.LEGACY) and is_opening(message):
        return legacy(message, versions.LEGACY[0], headers)
    sent = version_sent(headers)
    if own in versions.LEGACY:
        if sent not in (None, own):
            raise mismatch(VERSION_HEADER, "differs from the protocol version in the request body")
        return legacy(message, own, headers)
    if own is not None or sent in versions.MODERN:
        return modern(message, headers)
    return legacy(message, header_version(headers), headers)


def is_opening(message: Any) -> bool:
    """True for `initialize`, which negotiates the revision: its header does not matter."""
    return isinstance(message, dict) and message.get("method") == "initialize"


def version_sent(headers: Headers) -> str | None:
    """The value of the version header, which proxies may repeat."""
    value = headers.get(VERSION_HEADER)
    copies = {copy.strip() for copy in (value or "").split(",")}
    if len(copies) > 1:
        raise mismatch(VERSION_HEADER, "names several protocol versions")
    return value and copies.pop()


def header_version(headers: Headers) -> str:
    """The revision in the header, or else the default. Refuses an unknown revision."""
    value = version_sent(headers)
    if value is None:
        return versions.ASSUMED_VERSION
    if value not in versions.SUPPORTED:
        raise unsupported(value)
    return value


def modern(message: Any, headers: Headers | None) -> Request | None:
    """A modern request, complete and (over HTTP) in agreement with its headers."""
    if is_response(message):
        raise invalid_request(
            "This is a JSON-RPC response, but this server sends no requests to clients. Send a "
            "request."
        )
    method = method_of(message)
    sent = version_sent(headers) if headers is not None else None
    if "id" not in message:
        if sent is not None and sent not in versions.SUPPORTED:
            raise unsupported(sent)
        return None
    id = id_of(message)
    params, version, capabilities = _claims(message)
    if headers is not None and sent != version:
        raise mismatch(
            VERSION_HEADER, "is missing or differs from the protocol version in the request body"
        )
    if version not in versions.MODERN:
        raise unsupported(version)
    if headers is not None:
        check_routing(headers, method, params)
    return Request(id, method, params, version, True, headers, capabilities)


def legacy(message: Any, version: str, headers: Headers | None) -> Request | None:
    """A legacy request at `version`; None for notifications and responses."""
    if is_response(message):
        return None
    method = method_of(message)
    if "id" not in message:
        return None
    id = id_of(message)
    params = message.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise Fault(faults.INVALID_PARAMS, "`params` must be an object.")
    return Request(id, method, params, version, headers=headers)


def is_response(message: Any) -> bool:
    """True if a message is a response. Rung sends no requests, but clients may send responses."""
    return (
        isinstance(message, dict)
        and "method" not in message
        and ("result" in message or "error" in message)
    )


def method_of(message: Any) -> str:
    """The method of a well-formed frame."""
    if isinstance(message, list):
        raise invalid_request(
            "This protocol version does not support batches. Send one message at a time."
        )
    if not isinstance(message, dict):
        raise invalid_request("Send a JSON-RPC 2.0 request object.")
    if message.get("jsonrpc") != "2.0":
        raise invalid_request('A JSON-RPC request must contain `"jsonrpc": "2.0"`.')
    method = message.get("method")
    if not isinstance(method, str):
        raise invalid_request("A JSON-RPC request must contain a string named `method`.")
    return method


def id_of(message: Mapping[str, Any]) -> str | int:
    """The id of a request, which answers must repeat."""
    id = message["id"]
    if isinstance(id, bool) or not isinstance(id, (str, int)):
        raise invalid_request("A request `id` must be a string or an integer.")
    return id


def _claims(message: Mapping[str, Any]) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """(params, revision, client capabilities) of a modern request; all are required."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(params, dict) and isinstance(meta, dict):
        version, capabilities = meta.get(VERSION_KEY), meta.get(CAPABILITIES_KEY)
        if isinstance(version, str) and isinstance(capabilities, dict):
            return params, version, capabilities
    raise Fault(
        faults.INVALID_PARAMS,
        f"Each request must contain `params._meta` with `{VERSION_KEY}` (a string) and "
        f"`{CAPABILITIES_KEY}` (an object).",
        status=400,
    )


def unsupported(version: str) -> Fault:
    """The error for an unknown revision, with the known ones, so that a client can choose again."""
    return Fault(
        faults.UNSUPPORTED_VERSION,
        f"Protocol version {shortened(version)} is not supported. Use one of: "
        f"{', '.join(versions.SUPPORTED)}.",
        status=400,
        data={"supported": list(versions.SUPPORTED), "requested": shortened(version)},
    )
