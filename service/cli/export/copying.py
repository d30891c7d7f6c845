"""Copies streams, records, texts and blobs into a sink, and resumes an interrupted copy."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from evidence.errors import InvalidRequest, TimedOut, Unavailable
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.pointer import is_nested, top_level
from renderers.rendering import warning
from service.cli.export import reading
from service.cli.export.reading import RetryingReader, Changed, FieldText, is_cut
from service.cli.export.sinks import Sink
from service.cli.output import Meter, say
from service.cli.rows import RECORD_COLUMNS, column
from service.pdpp.decode import reference, rows, source_of, text_of, warnings_of
from service.pdpp.encode import body_of
from service.ports import Blob, RecordQuery, RecordRead, ResourceServer, SchemaQuery

SAVE_BYTES = 1 << 20

Find = Callable[[ResourceServer], Blob]


def text(source: FieldText, sink: Sink, meter: Meter) -> None:
    """A whole text, exact, as UTF-8."""

    def work() -> None:
        meter.to(sink.state.get("chars", 0), sink.state.get("total"))
        for window, state in reading.pieces(source, sink.state):
            sink.write(window.text.encode())
            sink.keep(state)
            meter.to(window.end, window.total)

    reading.steady(lambda: _anew(sink), work)


def record(reader: RetryingReader, ref: RecordRef, sink: Sink, meter: Meter) -> None:
    """A record with all its granted fields, whole, as one line of JSON."""

    def work() -> None:
        answer = reader.ask(lambda rs: rs.record(ref, RecordRead(whole=True)))
        body = body_of(answer)
        segments = reading.segments(reader, body, ref)
        is_of = hashlib.sha256(orjson.dumps(body)).hexdigest()
        if sink.state and sink.state["record"] != is_of:
            raise Changed
        begin, within = sink.state.get("segment", 0), sink.state.get("within", {})
        total = sum(len(part) if isinstance(part, bytes) else part.size for part in segments)
        for number, segment in enumerate(segments[begin:], begin):
            for data, state in reading.as_json(segment, within):
                sink.write(data)
                sink.keep({"record": is_of, "segment": number, "within": state})
                meter.to(sink.size, max(total, sink.size))
            within = {}
            sink.keep({"record": is_of, "segment": number + 1, "within": within})

    reading.steady(lambda: _anew(sink), work)


def blob(reader: RetryingReader, find: Find, sink: Sink, meter: Meter) -> None:
    """Exports the bytes of a blob and verifies its size and, if reported, its SHA-256."""

    def work() -> None:
        before = -1
        while not sink.state.get("whole"):
            if sink.size == before:
                none = f"The source returned no bytes after byte {before}."
                raise Unavailable(f"{none} Try again later.")
            before = sink.size
            reader.ask(lambda rs: _some(find(rs), sink, meter))

    reading.steady(lambda: _anew(sink), work)


def _some(blob: Blob, sink: Sink, meter: Meter) -> None:
    """The remaining bytes of a blob; raises if the source returns no more."""
    is_of = {"size": blob.size_bytes, "sha256": blob.sha256}
    if sink.state and sink.state["blob"] != is_of:
        raise Changed
    begun = saved = sink.size
    try:
        for chunk in blob.chunks(sink.size, blob.size_bytes):
            sink.write(chunk)
            meter.to(sink.size, blob.size_bytes)
            if sink.size - saved >= SAVE_BYTES:
                sink.keep({"blob": is_of})
                saved = sink.size
    except (TimedOut, Unavailable):
        if sink.size == begun:
            raise
    if sink.size:
        sink.keep({"blob": is_of})
    if sink.size == blob.size_bytes:
        if blob.sha256 and blob.sha256 != sink.digest():
            with suppress(Unavailable):  # a pipe
                sink.restart()
            raise Unavailable(
                "The bytes do not match the announced SHA-256. Try again.",
                code="upstream_invalid_response",
            )
        sink.keep({"blob": is_of, "whole": True})


def _anew(sink: Sink) -> None:
    if sink.size:
        say("The source has changed. Starting over.")
    sink.restart()


Body = dict[str, Any]

PAGE = CONTRACT.page_items


#: The line of a record in a file, piece by piece.
Line = Callable[[RetryingReader, Body, RecordRef], Iterator[bytes]]


def line(reader: RetryingReader, row: Body, ref: RecordRef) -> Iterator[bytes]:
    """A REST record as a line of JSON, reading its large values."""
    for segment in reading.segments(reader, row, ref):
        for data, _ in reading.as_json(segment, {}):
            yield data


@dataclass(frozen=True, slots=True)
class Table:
    """CSV (RFC 4180): a line of names, then a line for each record."""

    fields: tuple[str, ...]
    raw: bool

    def head(self) -> bytes:
        return self._line((*RECORD_COLUMNS, *map(column, self.fields))) + b"\r\n"

    def row(self, reader: RetryingReader, row: Body, ref: RecordRef) -> Iterator[bytes]:
        data = row.get("data")
        data = data if isinstance(data, dict) else {}
        own = (str(ref), ref.connection_id, text_of(row, "emitted_at"))
        yield self._line(own)
        for name in self.fields:
            yield b","
            value: Any = data.get(name)
            value = reading.Large(reader, ref, name, value) if is_cut(value) else value
            yield from reading.as_cell(value, raw=self.raw)
        yield b"\r\n"

    def _line(self, cells: Iterable[Any]) -> bytes:
        return b",".join(b"".join(reading.as_cell(cell, raw=self.raw)) for cell in cells)


@dataclass(slots=True)
class Progress:
    """Detects endless paging: repeated cursors, repeated records and empty pages."""

    printed: set[str] = field(default_factory=set)
    page_hashes: set[int] = field(default_factory=set)  # hashes: a stream may have many pages
    empty: int = 0

    def say(self, message: str) -> None:
        """Prints a message once."""
        if message not in self.printed:
            say(message)
        self.printed.add(message)

    def check(self, cursor: str, refs: list[RecordRef]) -> None:
        """Raises `Unavailable` if pages repeat or too many in a row are empty."""
        self.empty = 0 if refs else self.empty + 1
        places = {hash(cursor), *([hash(tuple(refs))] if refs else [])}
        if places & self.page_hashes or self.empty > BUDGETS.export_empty_pages:
            raise Unavailable(
                "The source keeps returning repeated or empty pages. Report this to its operator.",
                code="upstream_invalid_response",
            )
        self.page_hashes |= places


def copy(
    reader: RetryingReader, query: RecordQuery, head: bytes, line: Line, sink: Sink, meter: Meter
) -> None:
    """All records of a stream after the `head` of the file, page by page.

    Raises `InvalidRequest` if the source has more pages but no cursor to them.
    """
    progress = Progress()

    def work() -> None:
        while not sink.state.get("ended"):
            if not sink.state:
                sink.write(head)
            _page(reader, query, sink, line, progress)
            meter.to(sink.state["records"], sink.state["total"])

    meter.to(sink.state.get("records", 0), sink.state.get("total"))
    reading.steady(sink.rewind, work)


def _page(
    reader: RetryingReader, query: RecordQuery, sink: Sink, line: Line, progress: Progress
) -> None:
    """Writes the next page, completely or not at all."""
    state = sink.state
    cursor, total = state.get("cursor"), state.get("total")
    body, total = _read_page(reader, replace(query, cursor=cursor), total, counted=not state)
    for notice in warnings_of(body):
        progress.say(warning(notice))
    page_rows = rows(body, "data", "records")
    refs = list[RecordRef]()
    for row in page_rows:
        ref = reference(row, query.stream, source_of(row))
        if ref is None:
            progress.say("Warning: rows without a record id are skipped.")
            continue
        refs.append(ref)
        for data in line(reader, row, ref):
            sink.write(data)
    following = text_of(body, "next_cursor") or text_of(body.get("meta"), "next_cursor")
    continues = bool(body.get("has_more"))
    if continues and (following is None or following == cursor):
        raise InvalidRequest(
            "The source returned no cursor for the remaining records. Export one connection at a "
            "time with --connection-id; `rung schema` lists the connections.",
            param="connection_id",
        )
    if continues and following is not None:
        progress.check(following, refs)
    records = state.get("records", 0) + len(page_rows)
    sink.keep({"cursor": following, "records": records, "total": total, "ended": not continues})


def _read_page(
    reader: RetryingReader, query: RecordQuery, total: int | None, *, counted: bool
) -> tuple[Body, int | None]:
    """(page, total number of records, if the source counts them)."""
    if not counted:
        return _body(reader, query), total
    try:
        body = _body(reader, replace(query, count="exact"))
    except InvalidRequest:
        return _body(reader, query), None
    count = (body.get("meta") or {}).get("count")
    value = count.get("value") if isinstance(count, dict) else count
    return body, value if isinstance(value, int) and value >= 0 else None


def _body(reader: RetryingReader, query: RecordQuery) -> Body:
    return body_of(reader.ask(lambda rs: rs.records(query)))


def fields_of(reader: RetryingReader, query: RecordQuery) -> tuple[str, ...]:
    """The columns of a stream: the requested fields, or all granted fields."""
    if query.fields:
        return query.fields
    schema_query = SchemaQuery(stream=query.stream, connection_id=query.connection_id)
    rows_of = reader.ask(lambda rs: rs.schema(schema_query)).value.rows
    streams = [row.stream for row in rows_of if row.stream.name == query.stream]
    # A field inside another has no column of its own.
    names = [
        name
        for stream in streams
        for name in stream.fields
        if not (is_nested(name) and top_level(name) in stream.fields)
    ]
    if query.view:
        views = [view for stream in streams for view in stream.views if view.id == query.view]
        names = [name for view in views for name in view.fields]
        if not views:
            return ()  # the source validates them and knows its views
    if not names:
        raise InvalidRequest(
            "The source does not list the fields of this stream. Name them with --fields, or "
            "export with --format ndjson.",
            param="fields",
        )
    return tuple(dict.fromkeys(names))
