"""Errors over REST: one status per kind, one body for all, in PDPP's words."""

from typing import Any

from evidence import wire
from evidence.errors import EvidenceError
from service.statuses import STATUS, TYPES


def body(error: EvidenceError, request_id: str) -> tuple[int, dict[str, Any]]:
    """(status, body) of an error."""
    status = STATUS[error.kind]
    return status, wrapped(status, wire.failure(error)["error"], request_id)


def wrapped(status: int, error: dict[str, Any], request_id: str) -> dict[str, Any]:
    """`{"error": {type, code, message, request_id, …}}`."""
    kind = TYPES.get(status, "api_error")
    return {"error": {"type": kind, **error, "request_id": request_id}}
