"""Exit codes and JSON error bodies of the commands that read."""

from typing import Any, Final

from evidence import wire
from evidence.errors import EvidenceError
from service.statuses import STATUS, TYPES

FAILURE: Final = 1
USAGE: Final = 2

#: Exit codes by HTTP status; every other error is a plain failure.
CODES: Final = {400: USAGE, 401: 3, 403: 4, 404: 5}


def exit_code(error: EvidenceError) -> int:
    """1 a failure, 2 a wrong call, 3 no valid token, 4 forbidden, 5 not found."""
    return CODES.get(STATUS[error.kind], FAILURE)


def body(error: EvidenceError) -> dict[str, Any]:
    """The REST error body, without a request id because there was no HTTP request."""
    kind = TYPES.get(STATUS[error.kind], "api_error")
    return {"error": {"type": kind, **wire.failure(error)["error"]}}
