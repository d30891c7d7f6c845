"""Errors over REST: one status per kind, one body for all, in PDPP's words."""

from typing import Any

from evidence import wire
from evidence.errors import EvidenceError
from service.statuses import STATUS

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    410: "gone_error",
    413: "request_entity_too_large_error",
    429: "rate_limit_error",
}


def body(error: EvidenceError, request_id: str) -> tuple[int, dict[str, Any]]:
    """(status, body) of an error: `{"error": {type, code, message, request_id, …}}`."""
    status = STATUS[error.kind]
    found = wire.failure(error)["error"]
    return status, {
        "error": {"type": TYPES.get(status, "api_error"), **found, "request_id": request_id}
    }
