"""Describes `/mcp` as HTTP; the protocol itself defines the schema of its messages."""

from service.openapi.paths import SECURED, Paths, headers, operation_info
from service.openapi.shapes import Shape, ref
from service.statuses import STATUS

#: Kinds of error that end a request before its message is read.
REFUSED_MESSAGES = (
    *("invalid", "forbidden", "not_found", "too_large", "rate_limited"),
    *("internal", "unavailable", "timed_out"),
)


def of_messages(of_records: bool, of_papers: bool, closed: bool) -> Paths:
    """The paths `/mcp` and `/mcp/papers`, as they are mounted."""
    paths = {"/mcp": _mcp("mcp", of_records or closed)}
    return paths | ({"/mcp/papers": _mcp("mcp_papers", closed)} if of_papers else {})


def _mcp(name: str, secured: bool) -> Shape:
    """The path item of an endpoint; `name` is its operation id."""
    asked = {
        "schema": ref("JsonRpcMessages"),
        "example": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    }
    answer = {"application/json": {"schema": ref("JsonRpcAnswers")}}
    shown = {"headers": headers("Request-Id"), "content": answer}
    statuses = {str(STATUS[kind]): "Refused, as a JSON-RPC error." for kind in REFUSED_MESSAGES}
    statuses |= {"401": "No usable token."} if secured else {}
    statuses |= {"415": "The content type is not JSON."}
    refused = {status: {"description": why, **shown} for status, why in statuses.items()}
    return {
        "post": {
            **operation_info(
                name,
                "Call tools over MCP",
                "Accepts one JSON-RPC message of the Model Context Protocol and returns one "
                "JSON answer: `initialize`, `tools/list`, `tools/call`, `resources/read` and "
                "`ping`. There are no sessions and no event streams. Revision 2025-03-26 also "
                "accepts a list of messages. A tool that fails returns 200 with `isError`.",
                "mcp",
            ),
            "security": SECURED if secured else [],
            "requestBody": {"required": True, "content": {"application/json": asked}},
            "responses": {
                "200": {"description": "The answer to the message.", **shown},
                "202": {"description": "The notification was accepted; there is no answer."},
                **dict(sorted(refused.items())),
            },
        }
    }
