"""The protocol's JSON-RPC errors, each with its HTTP status.

A failing tool is not a fault: its result has `isError`. Faults are for invalid messages, and for
resources, which cannot fail otherwise.
"""

from collections.abc import Mapping
from typing import Any, Final

from evidence.errors import EvidenceError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

QUOTED_CHARS: Final = 80


class Fault(Exception):
    """A JSON-RPC error. `status` is the HTTP status; stdio ignores it."""

    def __init__(
        self, code: int, message: str, *, status: int = 200, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.data = data

    @property
    def log_code(self) -> str:
        """The code to log: the code of the underlying error, or else the number."""
        code = (self.data or {}).get("code")
        return code if isinstance(code, str) else str(self.code)

    def body(self, id: str | int | None) -> dict[str, Any]:
        """The JSON-RPC message. `id` is included even if null, because clients require it."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": id, "error": error}


def invalid_request(message: str) -> Fault:
    """The body is not a JSON-RPC request. Both eras return HTTP 400."""
    return Fault(INVALID_REQUEST, message, status=400)


def invalid_params(message: str, **data: Any) -> Fault:
    """The method is known, its parameters are invalid. In band: HTTP 200 in both eras."""
    return Fault(INVALID_PARAMS, message, data=data or None)


def of_error(error: EvidenceError, code: int, *, status: int = 200, **details: Any) -> Fault:
    """An error as a fault, with its members and `details` as data."""
    # With its hint, because many clients show only the message.
    return Fault(code, error.text, status=status, data={**error.body(), **details})


def shortened(text: str) -> str:
    """A client-supplied string, shortened for an error message."""
    return text if len(text) <= QUOTED_CHARS else text[:QUOTED_CHARS] + "…"
