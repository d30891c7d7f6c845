"""Shared by all HTTP surfaces: bodies, and headers of error responses."""

from typing import Any, Final

from werkzeug.wsgi import get_content_length, get_input_stream

from evidence.errors import EvidenceError, InvalidRequest, TooLarge
from evidence.limits import BUDGETS
from service.access import guard

#: A WSGI environment.
Environ = dict[str, Any]

PREFLIGHT_SECONDS: Final = "7200"
#: Media types of attachments that a browser may show; it saves all others.
SHOWN_INLINE: Final = frozenset("""
    application/pdf image/avif image/bmp image/gif image/jpeg image/png image/tiff image/webp
    image/x-icon
    """.split())


def read_body(environ: Environ) -> bytes:
    """The whole body, chunked or not. Raises `TooLarge`, before reading if possible.

    It reads in pieces, because the limit of a framework truncates a chunked body silently.
    """
    parts, missing = list[bytes](), BUDGETS.body_bytes + 1
    if (get_content_length(environ) or 0) >= missing:
        raise too_large()
    stream = get_input_stream(environ)
    try:
        while missing and (part := stream.read(min(missing, BUDGETS.piece_bytes))):
            parts.append(part)
            missing -= len(part)
    except Exception:  # a malformed chunk: the exception depends on the server
        raise InvalidRequest("The request body is incomplete.", hint="Send it again.") from None
    if not missing:
        raise too_large()
    return b"".join(parts)


def too_large() -> TooLarge:
    """The error for a body over the limit."""
    limit = BUDGETS.body_bytes
    message = f"The body is larger than {limit} bytes."
    return TooLarge(message, hint="Send a smaller message.", limit=limit)


def preflight(verbs: str, headers: str) -> dict[str, str]:
    """The headers that let a page of an allowed origin send these verbs and headers."""
    return {
        "Access-Control-Allow-Methods": verbs,
        "Access-Control-Allow-Headers": headers,
        "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    }


def refusal_headers(
    error: EvidenceError, status: int, access: guard.Guard, authorization: str | None
) -> dict[str, str]:
    """`WWW-Authenticate` of a 401, and `Retry-After` if the error has one."""
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = access.challenge(authorization)
    if "retry_after" in error.details:
        headers["Retry-After"] = str(error.details["retry_after"])
    return headers
