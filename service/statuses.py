"""The HTTP status and error type of each kind of error."""

from typing import Final

STATUS: Final = {
    "invalid": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "ambiguous": 409,
    "gone": 410,
    "too_large": 413,
    "not_text": 422,
    "rate_limited": 429,
    "unavailable": 503,
    "timed_out": 504,
    "internal": 500,
}

#: `error.code` of requests that are refused before an operation runs; others are `invalid_request`.
CODES: Final = {
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "request_too_large",
    415: "unsupported_media_type",
    500: "api_error",
    503: "overloaded",
}

#: `error.type` of REST, in PDPP's words; every other status is an `api_error`.
TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    410: "gone_error",
    413: "request_entity_too_large_error",
    415: "invalid_request_error",
    416: "invalid_request_error",
    429: "rate_limit_error",
}

#: Statuses that no kind of error has. Sources may use the other codes with any kind.
_STATUS_OF_CODE: Final = {CODES[status]: status for status in (405, 415)}


def status_of(kind: str, code: str) -> int:
    """The status of an error that an HTTP surface raises before it reads a body."""
    return _STATUS_OF_CODE.get(code) or STATUS[kind]
