"""Blob bytes over HTTP: whole or one range, in pieces, never shown inline unless harmless."""

import re

from flask import Response, request

from service.http_edge import SHOWN_INLINE
from service.rest import errors, web
from service.ports import Blob

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE = re.compile(rf'{_TOKEN}/{_TOKEN}( *; *{_TOKEN}=({_TOKEN}|"[A-Za-z0-9 /_.:+-]*"))*')
UNKNOWN_TYPE = "application/octet-stream"


def respond(blob: Blob, headers: dict[str, str]) -> Response:
    """200 with all bytes, 206 with one range, 416 for a range outside the blob."""
    start, stop, partial = 0, blob.size_bytes, False
    tag = f'"{blob.sha256}"' if blob.sha256 else None
    asked = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if asked and (asked[1] or asked[2]) and blob.size_bytes and _is_still(tag):
        start, stop = _bounds(asked[1], asked[2], blob.size_bytes)
        partial = True
    if start >= stop and blob.size_bytes:
        return _outside(blob.size_bytes, headers["Request-Id"])
    found = {
        **headers,
        "Content-Length": str(stop - start),
        "Accept-Ranges": "bytes",
    }
    if tag:
        found["ETag"] = tag
    if partial:
        found["Content-Range"] = f"bytes {start}-{stop - 1}/{blob.size_bytes}"
    if blob.media_type.split(";")[0].strip().lower() not in SHOWN_INLINE:
        found["Content-Disposition"] = "attachment"
    body = () if request.method == "HEAD" else blob.chunks(start, stop)
    response = Response(body, 206 if partial else 200, found)
    known = len(blob.media_type) < 256 and _MEDIA_TYPE.fullmatch(blob.media_type)
    response.headers["Content-Type"] = blob.media_type if known else UNKNOWN_TYPE
    return response


def _is_still(tag: str | None) -> bool:
    """True if If-Range matches the blob; a date never does."""
    if_range = request.headers.get("If-Range")
    return if_range is None or if_range.strip() == tag


def _outside(size: int, request_id: str) -> Response:
    found = {
        "code": "range_not_satisfiable",
        "message": f"The range is outside the blob, which has {size} bytes. Request one inside it.",
        "param": "Range",
    }
    body = errors.wrapped(416, found, request_id)
    return web.reply(body, 416, **{"Content-Range": f"bytes */{size}"})


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    """(start, stop) of `first-last`, `first-` or `-length`."""
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size
