"""REST under /v1 and /papers/v1: the routes of the operations and of blobs.

Bodies of records follow PDPP. Bodies of papers have their next calls as links.
"""

import re
from collections.abc import Callable
from typing import Any

from flask import Blueprint, Flask, Response, abort, g, request, url_for

from evidence import papers_wire
from evidence.errors import InvalidRequest
from evidence.handles import RecordRef
from service.access.guard import Guard
from service.bootstrap import Services
from service.operations import OPERATIONS, bodies, paper_links
from service.operations.base import PaperOperation, RecordOperation, run_bounded
from service.operations.bodies import Address
from service.operations.listings import BLOB, BY_MEANING, LISTINGS, Listing
from service.operations.papers import PAPER_OPERATIONS
from service.ports import Blob
from service.rest import arguments, web

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE = re.compile(rf'{_TOKEN}/{_TOKEN}( *; *{_TOKEN}=({_TOKEN}|"[A-Za-z0-9 /_.:+-]*"))*')
UNKNOWN_TYPE = "application/octet-stream"


def respond(blob: Blob, headers: dict[str, str]) -> Response:
    """200 with all bytes, 206 with one range, 416 for a range outside the blob."""
    start, stop, partial = 0, blob.size_bytes, False
    tag = f'"{blob.sha256}"' if blob.sha256 else None
    byte_range = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    # A date in If-Range never matches.
    still = request.headers.get("If-Range", tag or "").strip() == (tag or "")
    if byte_range and (byte_range[1] or byte_range[2]) and blob.size_bytes and still:
        start, stop = _bounds(byte_range[1], byte_range[2], blob.size_bytes)
        partial = True
    if start >= stop and blob.size_bytes:
        size = blob.size_bytes
        message = f"The range is outside the blob ({size} bytes). Request a range within the blob."
        refused = {"code": "range_not_satisfiable", "message": message, "param": "Range"}
        return web.refused(416, refused, **{"Content-Range": f"bytes */{size}"})
    fields = {**headers, "Content-Length": str(stop - start), "Accept-Ranges": "bytes"}
    if tag:
        fields["ETag"] = tag
    if partial:
        fields["Content-Range"] = f"bytes {start}-{stop - 1}/{blob.size_bytes}"
    if blob.harmless_type is None:
        fields["Content-Disposition"] = "attachment"
    content = () if request.method == "HEAD" else blob.chunks(start, stop)
    response = Response(content, 206 if partial else 200, fields)
    valid = len(blob.media_type) < 256 and _MEDIA_TYPE.fullmatch(blob.media_type)
    response.headers["Content-Type"] = blob.media_type if valid else UNKNOWN_TYPE
    return response


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    """(start, stop) of `first-last`, `first-` or `-length`."""
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


PDPP_VERSION = "2026-04-06"
PREFIX = "/v1"
HEADERS = {"PDPP-Version": PDPP_VERSION}
PAPERS_PREFIX = "/papers/v1"
#: For an open library: snapshots change rarely, and a minute of delay does no harm.
OPEN_HEADERS = {"Cache-Control": "public, max-age=60, stale-while-revalidate=600", "Vary": "Origin"}
Served = RecordOperation[Any, Any] | Listing[Any]
#: The route of a record, which also has a page for people.
PAGED = "rest.fetch"


def mount(app: Flask, services: Services, guard: Guard) -> None:
    """Adds the read routes under /v1 to an application that is `web.prepare`d."""
    routes = Blueprint("rest", __name__)
    routes.before_request(lambda: _open(services, guard))
    by_meaning = BY_MEANING if services.has_encoder else ()
    served: tuple[Served, ...] = (*OPERATIONS, *LISTINGS, *by_meaning)
    for operation in served:
        rule = _rule(operation.route.path)
        routes.add_url_rule(rule, operation.name, _view(operation))
        if operation.route.posted:
            name = f"post_{operation.name}"
            routes.add_url_rule(rule, name, _posted_view(operation), methods=["POST"])
    routes.add_url_rule(_rule(BLOB.route.path), "blob", _blob)
    app.register_blueprint(routes)


def _rule(path: str) -> str:
    return path.replace("<", "<segment:")


def _open(services: Services, guard: Guard) -> Response | None:
    """Every route needs a client token; public routes are declared elsewhere.

    A browser that opens the `url` of a hit is redirected to the page of the record.
    """
    if request.endpoint == PAGED and "Authorization" not in request.headers and web.prefers_page():
        return _page_of_record()
    token = web.begin(guard)
    version = request.headers.get("PDPP-Version")
    if version not in (None, PDPP_VERSION):
        raise InvalidRequest(
            f"This service supports PDPP-Version {PDPP_VERSION}. Send that value, or leave the "
            "header out.",
            code="unsupported_version",
        )
    g.session = services.open_session(token, PREFIX)
    return None


def _page_of_record() -> Response:
    segments = request.view_args or {}
    connection_id = request.args.get("connection_id")
    id = str(RecordRef(segments["stream"], segments["record_id"], connection_id))
    headers = {"Location": url_for("reading.record", id=id), "Vary": "Accept, Authorization"}
    return Response("", 303, {**headers, "Cache-Control": "no-store"})


def _view(operation: Served) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        if isinstance(operation, Listing) and not operation.is_served(g.session):
            abort(404)
        parsed, extra = arguments.read(operation, web.query(), shared=arguments.SHARED)
        if "record_id" in path:
            parsed["id"] = str(RecordRef(path["stream"], path["record_id"]))
        elif "stream" in path:
            parsed["stream"] = path["stream"]
        return _answer(operation, parsed, extra)

    return view


def _posted_view(operation: Served) -> Callable[..., Response]:
    def view() -> Response:
        if web.query():
            raise InvalidRequest(
                "A POST takes its arguments from the body. Remove the query string."
            )
        parsed, extra = arguments.read_posted(operation, web.json_body(), shared=arguments.SHARED)
        return _answer(operation, parsed, extra)

    return view


def _answer(operation: Served, parsed: dict[str, Any], extra: dict[str, str]) -> Response:
    """The answer to parsed arguments of a GET or a POST."""
    arguments.take_alias(parsed, extra)
    address = Address(request.environ["PATH_INFO"], web.query(), posted=request.method == "POST")
    return web.page(bodies.body(operation, g.session, parsed, address, extra))


def _blob(blob_id: str) -> Response:
    parsed, extra = arguments.read(BLOB, web.query(), shared=arguments.SHARED)
    arguments.take_alias(parsed, extra)
    loaded = BLOB.load_rest(bodies.narrowed(g.session, parsed, extra))
    warnings = bodies.alias_warnings(extra)
    warning = {"PDPP-Warning": f"{notice['code']}: {notice['param']}" for notice in warnings}
    blob = g.session.rs.blob(blob_id, connection_id=BLOB.over_rest(loaded).connection_id)
    return respond(blob, {**web.headers(), **warning})


def mount_papers(app: Flask, services: Services, guard: Guard) -> None:
    """Adds the routes under /papers/v1 to an application that is `web.prepare`d."""

    def open_session() -> None:
        g.session = services.open_papers(web.begin(guard), PAPERS_PREFIX)

    routes = Blueprint("papers", __name__)
    routes.before_request(open_session)
    for operation in PAPER_OPERATIONS:
        paths = {operation.route.path: {}, **operation.route.variants}
        for number, (path, fixed) in enumerate(paths.items()):
            view = _papers_view(operation, fixed)
            routes.add_url_rule(_rule(path), f"{operation.name}_{number}", view)
    app.register_blueprint(routes)


def _papers_view(
    operation: PaperOperation[Any, Any], fixed: dict[str, Any]
) -> Callable[..., Response]:
    def view(**path: str) -> Response:
        parsed, _ = arguments.read(operation, web.query(), fixed=fixed)
        options = operation.load_rest({**parsed, **path, **fixed})
        body = papers_wire.body(run_bounded(operation, g.session, options), paper_links.as_links)
        address = Address(request.environ["PATH_INFO"], web.query())
        return web.page(paper_links.body(body, str(address)))

    return view
