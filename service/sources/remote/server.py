"""Implements the resource server port over HTTP, by calling `/v1` of any PDPP server."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import quote

from evidence import pointer
from evidence.errors import EvidenceError, InvalidRequest, NotText, TooLarge
from evidence.find import literals, spans
from evidence.handles import RecordRef, segment
from evidence.hits import SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Buckets
from evidence.question import parse_query
from evidence.records import FieldRead, Record, RecordPage
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList
from evidence.values import Base64, BlobRef, previewed, text_of
from evidence.work import Deadline
from service.sources.remote import bodies, refusals, remote_errors, search
from service.pdpp.decode import schema
from service.pdpp.brackets import Pair, arguments_of, parameters
from service.pdpp.decode.records import decode_buckets, decode_field, decode_page, decode_record
from service.pdpp.decode.records import decode_value
from service.sources.remote.origin import OriginClient, Origin, Permit
from service import port_rules, ports
from service.ports import Answer

#: The codes of servers that do not support `view=compact`.
NO_COMPACT = ("bad_request", "invalid_request", "unsupported_query")
#: The codes of answers not read to the end, or not parsed, because of their size.
UNREAD = "upstream_too_large"
#: The codes of servers that treat a pointer as the name of a field.
NO_POINTERS = ("field_not_granted", "invalid_field_path", "unknown_field")

_SHA256 = re.compile(r'"([0-9a-f]{64})"')

Body = dict[str, Any]
Explain = Callable[[EvidenceError], EvidenceError]


class HttpResourceServer:
    """One token at one origin, for one request. See `ports.ResourceServer`.

    `permit` is shared by all parts of a request that wait on upstreams. `own` is True if the token
    is the caller's; otherwise an invalid token is `Forbidden`.
    """

    def __init__(
        self,
        origin: Origin,
        token: str,
        deadline: Deadline,
        permit: Permit | None = None,
        *,
        own: bool = True,
    ) -> None:
        self._client = OriginClient(origin, token, deadline, permit or Permit(), own)

    def schema(self, query: ports.SchemaQuery) -> Answer[Schema]:
        where = parameters(stream=query.stream, connection_id=query.connection_id)
        if query.detail == "compact":
            body = self._compact(where)
        else:
            full = [("detail", "full")] if query.detail == "full" else []
            body = self._client.read("/v1/schema", [*full, *where])
        streams = bodies.streams(body)
        bodies.require(streams is not None, "schema")
        if where and not streams:
            raise refusals.nothing_there(query)
        body = bodies.bounded(bodies.schema(body, query))
        return Answer(schema.read(body), body)

    def _compact(self, where: list[Pair]) -> Body:
        """The compact document, or the whole one if the server has no other."""
        try:
            body = self._client.read("/v1/schema", [("view", "compact"), *where])
            if bodies.streams(body) is not None:
                return body
        except InvalidRequest as error:
            if error.code not in NO_COMPACT:
                raise
        return self._client.read("/v1/schema", where)

    def streams(self, *, connection_id: str | None = None) -> Answer[StreamList]:
        body = self._list("/v1/streams", parameters(connection_id=connection_id))
        return Answer(schema.streams(body), body)

    def stream(self, name: str, *, connection_id: str | None = None) -> Answer[StreamDetails]:
        body = self._body(_stream(name), parameters(connection_id=connection_id))
        return Answer(schema.stream(body), body)

    def connectors(self) -> Answer[ConnectorList]:
        body = self._list("/v1/connectors", [])
        return Answer(schema.connectors(body), body)

    def records(self, query: ports.RecordQuery) -> Answer[RecordPage]:
        """A page, shorter than requested if a longer one is too large to read."""
        while True:
            try:
                return self._page(query)
            except TooLarge as error:
                if error.code != UNREAD or query.limit <= 1:
                    raise
                query = replace(query, limit=max(1, query.limit // 4))

    def _page(self, query: ports.RecordQuery) -> Answer[RecordPage]:
        # The cursor of a feed continues it alone.
        omitted = ("stream", "changes_since") if query.cursor else ("stream",)
        body = self._body(
            f"{_stream(query.stream)}/records",
            arguments_of(query, *omitted),
            check=lambda body: bodies.page(body, query),
            explain=lambda error: refusals.of_list(error, query),
        )
        page = decode_page(body, query.stream, whole=query.whole)
        if not query.whole:
            page = replace(page, records=list(map(_previewed, page.records)))
        return Answer(page, body)

    def record(self, ref: RecordRef, read: ports.RecordRead = ports.RecordRead()) -> Answer[Record]:
        params = parameters(connection_id=ref.connection_id)
        params += arguments_of(read, "id", "connection_id")
        selected = read.whole and read.fields

        body = self._body(
            _record(ref),
            params,
            check=bodies.record,
            explain=lambda error: refusals.of_record(error, ref, read.expand),
            most_bytes=BUDGETS.upstream_record_bytes if selected else BUDGETS.upstream_bytes,
        )
        record = decode_record(body, ref, whole=read.whole)
        return Answer(record if read.whole else _previewed(record), body)

    def aggregate(self, query: ports.AggregateQuery) -> Answer[Buckets]:
        body = self._body(
            f"{_stream(query.stream)}/aggregate",
            arguments_of(query, "stream"),
            check=lambda body: bodies.figure(body, query),
            explain=lambda error: refusals.of_aggregate(error, query),
        )
        return Answer(decode_buckets(body, stream=query.stream, metric=query.metric), body)

    def search(self, query: ports.SearchQuery) -> Answer[SearchPage]:
        return search.search(self._client, query)

    def field_window(
        self, ref: RecordRef, field_path: str, window: ports.WindowRequest
    ) -> Answer[FieldRead]:
        params = parameters(field=field_path, connection_id=ref.connection_id)
        params += arguments_of(window)

        def check(body: Body) -> Body:
            right = bodies.window(body, window)
            received = right.get("window") or {}
            if window.match > 1 and received.get("match") != window.match and "binary" not in right:
                raise refusals.first_match_only(ref, field_path, received)
            return right

        try:
            body = self._body(f"{_record(ref)}/field-window", params, check=check)
        except EvidenceError as error:
            if not _may_be_inside(error, field_path):
                raise
            return Answer(self._window_of_record(ref, field_path, window, error))
        return Answer(decode_field(body, ref, field_path), body)

    def _window_of_record(
        self, ref: RecordRef, field_path: str, window: ports.WindowRequest, error: EvidenceError
    ) -> FieldRead:
        """A window of a value that this server returns only whole; raises `error` without one."""
        read = ports.RecordRead(fields=(pointer.top_level(field_path),), whole=True)
        try:
            answer = self.record(ref, read)
        except EvidenceError:
            raise error from None
        data = (answer.body or {})["data"]
        return _window(answer.value, data, field_path, window)

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> ports.Blob:
        path, params = f"/v1/blobs/{_segment(blob_id)}", parameters(connection_id=connection_id)
        answer = self._client.ask("HEAD", path, params, {}, 0)
        if answer.status != 200:  # a HEAD has no body with the reason
            answer = self._client.ask("GET", path, params, {}, BUDGETS.piece_bytes)
            raise self._client.refusal(answer)
        length = answer.headers.get("Content-Length", "")
        bodies.require(length.isascii() and length.isdigit(), "length of a blob")
        size = int(length)
        match = _SHA256.fullmatch(answer.headers.get("ETag", ""))
        return ports.Blob(
            blob_id,
            answer.headers.get("Content-Type", "application/octet-stream"),
            size,
            match[1] if match else "",
            lambda start, stop: self._bytes(path, params, size, start, stop),
        )

    def _bytes(
        self, path: str, params: list[Pair], size: int, start: int, stop: int
    ) -> Iterator[bytes]:
        """Bytes `start`..`stop` (exclusive), even if the server ignores ranges."""
        if start >= stop:
            return
        headers = {"Range": f"bytes={start}-{stop - 1}"}
        with self._client.opened(path, params, headers) as answer:
            if answer.status not in (200, 206):
                raise remote_errors.invalid("no longer returns a blob that it listed")
            position = start if answer.status == 206 else 0
            for chunk in answer.pieces(size):
                part = chunk[max(0, start - position) : max(0, stop - position)]
                position += len(chunk)
                if part:
                    yield part
                if position >= stop:
                    return

    def _list(self, path: str, params: list[Pair]) -> Body:
        body = self._body(path, params)
        bodies.rows(body, ("data",))
        return body

    def _body(
        self,
        path: str,
        params: list[Pair],
        *,
        check: Callable[[Body], Body] = lambda body: body,
        explain: Explain = lambda error: error,
        most_bytes: int = BUDGETS.upstream_bytes,
    ) -> Body:
        """The checked body at a path; raises errors with an explanation."""
        try:
            body = self._client.read(path, params, most_bytes=most_bytes)
        except TooLarge as error:
            error.hint = error.hint or "Request fewer fields, or read one with read_record_field."
            raise
        except EvidenceError as error:
            raise explain(error)
        return bodies.bounded(check(body))


def _segment(text: str) -> str:
    """One path segment, percent-encoded once. Bare dots would lead to another path."""
    if text in ("", ".", ".."):
        raise InvalidRequest(
            "A name or id is empty, '.' or '..'. Pass it exactly as it was returned."
        )
    return quote(text, safe="")


def _stream(name: str) -> str:
    return f"/v1/streams/{_segment(name)}"


def _record(ref: RecordRef) -> str:
    """The path of a record; an id of only dots is escaped, so that it stays a segment."""
    key = segment(ref.record_id) if ref.record_id else _segment("")
    return f"{_stream(ref.stream)}/records/{key}"


def _may_be_inside(error: EvidenceError, field_path: str) -> bool:
    """True if the value may exist: a non-text one, or the target of a pointer."""
    if isinstance(error, NotText):
        return True
    return field_path.startswith("/") and error.code in NO_POINTERS


def _previewed(record: Record) -> Record:
    """The record with values over 64 KiB as previews."""
    data = {
        name: previewed(value, most_bytes=CONTRACT.inline_bytes)
        for name, value in record.data.items()
    }
    return replace(record, data=data)


def _window(record: Record, data: Body, path: str, request: ports.WindowRequest) -> FieldRead:
    """The window of a field of a record that was read whole, with `data` as it was received.

    Nested values are read as canonical JSON, as everywhere.
    """
    name = pointer.top_level(path)
    if name not in data:
        raise port_rules.no_value(name)
    value = pointer.inside(data[name], path)
    read = FieldRead(record.ref, record.source, path, pointer.json_type(value))
    decoded = decode_value(value)
    if isinstance(decoded, Base64 | BlobRef):
        return replace(read, type="binary", binary=decoded)
    text = text_of(value)
    return port_rules.window(
        read,
        request,
        len(text),
        lambda start, stop: text[start:stop],
        lambda needle: _matches(text, needle),
    )


def _matches(text: str, needle: str) -> Any:
    """Ranges that match the query exactly, or without any, those that hold all its words."""
    ranges = list(islice(literals(text, needle), CONTRACT.page_items))
    if not ranges:
        ranges = [(span.start, span.end) for span in spans(text, parse_query(needle))]
    return iter(ranges)
