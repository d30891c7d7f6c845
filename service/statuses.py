"""The HTTP status of each kind of error, for every surface that speaks HTTP."""

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
