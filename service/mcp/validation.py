"""Negotiates the revision of a message and validates it before its method runs.

A message is modern if it names its revision in `params._meta`, or if the header names a modern
one. Its body must then be complete, and the headers must agree with it. Of all others, only the
revision and the frame are checked. The order of the checks is part of the protocol: clients choose
their next step by the first error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from service.mcp import versions
from service.mcp.faults import INVALID_PARAMS, UNSUPPORTED_VERSION, Fault, invalid_request, shown
from service.mcp.headers import Headers, check_routing, mismatch

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
    """The revision a message names in its own body, or None."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(VERSION_KEY) if isinstance(meta, dict) else None


def validate_http(message: Any, headers: Headers) -> Request | None:
    """The request in a posted message; None if it needs no answer."""
    sent, own = headers.get(VERSION_HEADER), claimed(message)
    if own in versions.LEGACY:
        if sent not in (None, own):
            raise mismatch(VERSION_HEADER, "differs from the revision in the request body")
        return validate_legacy(message, own, headers)
    if own is not None or sent in versions.MODERN:
        return validate_modern(message, headers)
    return validate_legacy(message, header_version(sent), headers)


def header_version(value: str | None) -> str:
    """The revision the header names, else the assumed one. Refuses a revision unknown here."""
    if value is None:
        return versions.ASSUMED_VERSION
    if value not in versions.SUPPORTED:
        raise unsupported(value)
    return value


def validate_modern(message: Any, headers: Headers | None) -> Request | None:
    """A modern request, complete and (over HTTP) in agreement with its headers."""
    if is_response(message):
        raise invalid_request(
            "This is a JSON-RPC response, but this server sends no requests to clients. Send a "
            "request."
        )
    method = method_of(message)
    sent = headers.get(VERSION_HEADER) if headers is not None else None
    if "id" not in message:
        if sent is not None and sent not in versions.SUPPORTED:
            raise unsupported(sent)
        return None
    id = id_of(message)
    params, version, capabilities = _claims(message)
    if headers is not None and sent != version:
        raise mismatch(VERSION_HEADER, "is missing or differs from the revision in the body")
    if version not in versions.MODERN:
        raise unsupported(version)
    if headers is not None:
        check_routing(headers, method, params)
    return Request(id, method, params, version, True, headers, capabilities)


def validate_legacy(message: Any, version: str, headers: Headers | None) -> Request | None:
    """A legacy request at `version`. Notifications and posted responses ask for nothing."""
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
        raise Fault(INVALID_PARAMS, "`params` must be an object.")
    return Request(id, method, params, version, headers=headers)


def is_response(message: Any) -> bool:
    """True if a message answers a request of ours. There are none, but clients may think so."""
    return (
        isinstance(message, dict)
        and "method" not in message
        and ("result" in message or "error" in message)
    )


def method_of(message: Any) -> str:
    """The method of a well-formed frame."""
    if isinstance(message, list):
        raise invalid_request("This revision does not support batches. Send one message at a time.")
    if not isinstance(message, dict):
        raise invalid_request("Send a JSON-RPC 2.0 request object.")
    if message.get("jsonrpc") != "2.0":
        raise invalid_request('A JSON-RPC request needs `"jsonrpc": "2.0"`.')
    method = message.get("method")
    if not isinstance(method, str):
        raise invalid_request("A JSON-RPC request needs `method`, a string.")
    return method


def id_of(message: Mapping[str, Any]) -> str | int:
    """The id of a request, which answers must repeat."""
    id = message["id"]
    if isinstance(id, bool) or not isinstance(id, (str, int)):
        raise invalid_request("A request `id` must be a string or an integer.")
    return id


def _claims(message: Mapping[str, Any]) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """(params, revision, client capabilities) of a modern request, which must carry them all."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(params, dict) and isinstance(meta, dict):
        version, capabilities = meta.get(VERSION_KEY), meta.get(CAPABILITIES_KEY)
        if isinstance(version, str) and isinstance(capabilities, dict):
            return params, version, capabilities
    raise Fault(
        INVALID_PARAMS,
        f"Each request needs `params._meta` with `{VERSION_KEY}` (a string) and "
        f"`{CAPABILITIES_KEY}` (an object).",
        status=400,
    )


def unsupported(version: str) -> Fault:
    """A revision unknown here, with those that are known, so that a client can choose again."""
    return Fault(
        UNSUPPORTED_VERSION,
        f"Protocol version {shown(version)} is not supported. Use one of: "
        f"{', '.join(versions.SUPPORTED)}.",
        status=400,
        data={"supported": list(versions.SUPPORTED), "requested": shown(version)},
    )
