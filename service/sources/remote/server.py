"""A resource server on the other side of a socket: `/v1` of any PDPP server, behind the port."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from evidence import pointer, routes
from evidence.envelope import Envelope
from evidence.errors import EvidenceError, InvalidRequest, NotText, TooLarge
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.sources.remote import bodies, notices, refusals, remote_errors, whole_values
from service.pdpp.brackets import Pair, expand_pairs, filter_pairs, parameters
from service.sources.remote.breaker import Seat
from service.sources.remote.origin import Origin
from service.sources.remote.outbound import READ_BYTES, Answer
from service.ports import (
    AggregateQuery,
    Blob,
    RecordQuery,
    RecordRead,
    SchemaQuery,
    SearchQuery,
    WindowRequest,
)

#: How a server says that it does not know `view=compact`.
NO_COMPACT = ("bad_request", "invalid_request", "unsupported_query")
#: An answer that was not read to its end, or not parsed, because of its size.
UNREAD = "upstream_too_large"
#: How a server says that it takes a pointer for the name of a field.
NO_POINTERS = ("field_not_granted", "invalid_field_path", "unknown_field")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_SHA256 = re.compile(r'"([0-9a-f]{64})"')

Body = dict[str, Any]
Explain = Callable[[EvidenceError], EvidenceError]


class HttpResourceServer:
    """One token at one origin, for one request. See `ports.ResourceServer`.

    `seat` is shared by all parts of a request that wait on upstreams. `own` is whether the token
    is the caller's: where it is not, a dead one is `Forbidden`.
    """

    def __init__(
        self,
        origin: Origin,
        token: str,
        deadline: Deadline,
        seat: Seat | None = None,
        *,
        own: bool = True,
    ) -> None:
        self._line = origin.line(token, deadline, seat or Seat(), own=own)

    def schema(self, query: SchemaQuery) -> Envelope:
        where = parameters(stream=query.stream, connection_id=query.connection_id)
        if query.detail == "compact":
            body, answer = self._compact(where)
        else:
            full = [("detail", "full")] if query.detail == "full" else []
            body, answer = self._line.read("/v1/schema", [*full, *where])
        streams = bodies.streams(body)
        bodies.require(streams is not None, "schema")
        if where and not streams:
            raise refusals.nothing_there(query)
        return _envelope(bodies.schema(body, query), answer)

    def _compact(self, where: list[Pair]) -> tuple[Body, Answer]:
        """The compact document, or the whole one where the server has no other."""
        try:
            body, answer = self._line.read("/v1/schema", [("view", "compact"), *where])
            if bodies.streams(body) is not None:
                return body, answer
        except InvalidRequest as error:
            if error.code not in NO_COMPACT:
                raise
        return self._line.read("/v1/schema", where)

    def streams(self, *, connection_id: str | None = None) -> Envelope:
        return self._list("/v1/streams", parameters(connection_id=connection_id))

    def stream(self, name: str, *, connection_id: str | None = None) -> Envelope:
        return self._get(_stream(name), parameters(connection_id=connection_id))

    def connectors(self) -> Envelope:
        return self._list("/v1/connectors", [])

    def records(self, query: RecordQuery) -> Envelope:
        """A page. It is shorter than requested if a longer one is too large to be read."""
        while True:
            try:
                return self._page(query)
            except TooLarge as error:
                if error.code != UNREAD or query.limit <= 1:
                    raise
                query = replace(query, limit=max(1, query.limit // 4))

    def _page(self, query: RecordQuery) -> Envelope:
        params = [
            *parameters(
                connection_id=query.connection_id,
                fields=query.fields,
                sort=query.sort,
                order=query.order,
                limit=query.limit,
                cursor=query.cursor,
                count=query.count if query.count != "none" else None,
                window=query.window if query.window != "none" else None,
                changes_since=query.changes_since if query.cursor is None else None,
                view=query.view,
            ),
            *filter_pairs(query.filter),
            *expand_pairs(query.expand, query.expand_limit),
        ]

        def check(body: Body) -> Body:
            page = bodies.page(body, query)
            return page if query.whole else whole_values.previewed_rows(page, query.stream)

        return self._get(
            f"{_stream(query.stream)}/records",
            params,
            check=check,
            explain=lambda error: refusals.of_list(error, query),
        )

    def record(self, read: RecordRead) -> Envelope:
        params = [
            *parameters(connection_id=read.ref.connection_id, fields=read.fields),
            *expand_pairs(read.expand, read.expand_limit),
        ]

        named = read.whole and read.fields

        def check(body: Body) -> Body:
            bodies.require(isinstance(body.get("data"), dict), "record")
            if read.whole:
                return body
            return {**body, "data": whole_values.previewed(body["data"], read.ref)}

        return self._get(
            _record(read.ref),
            params,
            check=check,
            explain=lambda error: refusals.of_record(error, read.ref, read.expand),
            most_bytes=BUDGETS.upstream_record_bytes if named else BUDGETS.upstream_bytes,
        )

    def aggregate(self, query: AggregateQuery) -> Envelope:
        params = [
            *parameters(
                metric=query.metric,
                connection_id=query.connection_id,
                field=query.field,
                group_by=query.group_by,
                group_by_time=query.group_by_time,
                granularity=query.granularity,
                time_zone=query.time_zone,
                limit=query.limit,
                cursor=query.cursor,
            ),
            *filter_pairs(query.filter),
        ]

        return self._get(
            f"{_stream(query.stream)}/aggregate",
            params,
            check=lambda body: bodies.figure(body, query),
            explain=lambda error: refusals.of_filter(error, query.filter),
        )

    def search(self, query: SearchQuery) -> Envelope:
        params = [
            *parameters(
                q=query.query,
                streams=query.streams,
                connection_id=query.connection_id,
                limit=query.limit,
                cursor=query.cursor,
            ),
            *filter_pairs(query.filter),
        ]
        return self._get(
            "/v1/search",
            params,
            check=lambda body: bodies.hits(body, query),
            explain=lambda error: refusals.of_filter(error, query.filter),
        )

    def field_window(self, ref: RecordRef, field_path: str, window: WindowRequest) -> Envelope:
        params = parameters(
            field=field_path,
            connection_id=ref.connection_id,
            offset_chars=window.offset_chars,
            limit_chars=window.limit_chars,
            q=window.query,
            match=window.match if window.query and window.match > 1 else None,
            before_chars=window.before_chars,
            after_chars=window.after_chars,
        )

        def check(body: Body) -> Body:
            right = bodies.window(body, window)
            found = right.get("window") or {}
            if window.match > 1 and found.get("match") != window.match and "binary" not in right:
                raise refusals.first_match_only(ref, field_path, found)
            return right

        try:
            return self._get(f"{_record(ref)}/field-window", params, check=check)
        except EvidenceError as error:
            if not _may_be_inside(error, field_path):
                raise
            return self._window_of_record(ref, field_path, window, error)

    def _window_of_record(
        self, ref: RecordRef, field_path: str, window: WindowRequest, error: EvidenceError
    ) -> Envelope:
        """A window of a value this server does not window; its own error where there is none."""
        read = RecordRead(ref, (pointer.top_level(field_path),), whole=True)
        try:
            envelope = self.record(read)
        except EvidenceError:
            raise error from None
        body = whole_values.window(envelope.body, field_path, window)
        return Envelope(body, envelope.request_id)

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> Blob:
        path, params = f"/v1/blobs/{_segment(blob_id)}", parameters(connection_id=connection_id)
        answer = self._line.ask("HEAD", path, params, {}, 0)
        if answer.status != 200:  # the body of a HEAD cannot say why
            answer = self._line.ask("GET", path, params, {}, READ_BYTES)
            raise self._line.refusal(answer)
        length = answer.headers.get("Content-Length", "")
        bodies.require(length.isascii() and length.isdigit(), "length of a blob")
        size = int(length)
        found = _SHA256.fullmatch(answer.headers.get("ETag", ""))
        return Blob(
            blob_id,
            answer.headers.get("Content-Type", "application/octet-stream"),
            size,
            found[1] if found else "",
            lambda start, stop: self._bytes(path, params, size, start, stop),
        )

    def _bytes(
        self, path: str, params: list[Pair], size: int, start: int, stop: int
    ) -> Iterator[bytes]:
        """Bytes `start`..`stop` (exclusive), whether the server knows ranges or not."""
        if start >= stop:
            return
        asked = {"Range": f"bytes={start}-{stop - 1}"}
        with self._line.opened(path, params, asked) as found:
            if found.status not in (200, 206):
                raise remote_errors.invalid("no longer gives a blob it had")
            place = start if found.status == 206 else 0
            for piece in found.pieces(size):
                wanted = piece[max(0, start - place) : max(0, stop - place)]
                place += len(piece)
                if wanted:
                    yield wanted
                if place >= stop:
                    return

    def _list(self, path: str, params: list[Pair]) -> Envelope:
        def check(body: Body) -> Body:
            bodies.rows(body, ("data",))
            return body

        return self._get(path, params, check=check)

    def _get(
        self,
        path: str,
        params: list[Pair],
        *,
        check: Callable[[Body], Body] = lambda body: body,
        explain: Explain = lambda error: error,
        most_bytes: int = BUDGETS.upstream_bytes,
    ) -> Envelope:
        """The body at a path as it passes its check; errors come explained."""
        try:
            body, answer = self._line.read(path, params, most_bytes=most_bytes)
        except TooLarge as error:
            error.hint = error.hint or "Name fewer fields, or read one by read_record_field."
            raise
        except EvidenceError as error:
            raise explain(error)
        return _envelope(check(body), answer)


def _envelope(body: Body, answer: Answer) -> Envelope:
    told = answer.headers.get("Request-Id") or answer.headers.get("X-Request-Id") or ""
    known = told if _REQUEST_ID.fullmatch(told) else None
    return Envelope(notices.bounded(body), known)


def _segment(text: str) -> str:
    """One path segment, percent-encoded once. Dots alone would climb to another path."""
    if text in ("", ".", ".."):
        raise InvalidRequest("A name or id is empty or only dots. Use one as it was printed.")
    return quote(text, safe="")


def _stream(name: str) -> str:
    return f"/v1/streams/{_segment(name)}"


def _record(ref: RecordRef) -> str:
    """The path of a record; an id of dots alone is escaped, so that it stays a segment."""
    key = routes.segment(ref.record_id) if ref.record_id else _segment("")
    return f"{_stream(ref.stream)}/records/{key}"


def _may_be_inside(error: EvidenceError, field_path: str) -> bool:
    """Whether the value may be there: one that is no text, or one a pointer leads to."""
    if isinstance(error, NotText):
        return True
    return field_path.startswith("/") and error.code in NO_POINTERS
