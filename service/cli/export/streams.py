"""Writes streams to a file, page by page, in one of several formats."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import orjson

from evidence.errors import InvalidRequest, Unavailable
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.pointer import is_nested, top_level
from evidence.schema import StreamSchema
from evidence.values import previewed
from service.pdpp.decode import reference, rows, source_of, text_of, warnings_of
from renderers.rendering import warning
from service.cli.export import texts, whole
from service.cli.export.asking import Asker
from service.cli.export.fields import is_cut
from service.cli.export.sinks import Sink
from service.cli.progress import Meter
from service.cli.rows import RECORD_COLUMNS, column
from service.cli.output import say
from service.pdpp.encode import body_of
from service.pdpp.encode.records import encode_data
from service.ports import RecordQuery, SchemaQuery

Body = dict[str, Any]

PAGE = CONTRACT.page_items


class Form(Protocol):
    """A file format for records."""

    def head(self) -> bytes: ...

    def row(self, row: Body, ref: RecordRef) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Lines:
    """Writes one REST record per line; `previews` keeps large values as previews."""

    asker: Asker
    previews: bool

    def head(self) -> bytes:
        return b""

    def row(self, row: Body, ref: RecordRef) -> Iterator[bytes]:
        if self.previews:
            yield orjson.dumps(row) + b"\n"
            return
        for segment in whole.segments(self.asker, row, ref):
            for data, _ in whole.as_json(segment, {}):
                yield data


@dataclass(frozen=True, slots=True)
class Table:
    """CSV (RFC 4180): a line of names, then a line for each record."""

    asker: Asker
    previews: bool
    fields: tuple[str, ...]
    raw: bool

    def head(self) -> bytes:
        return self._line((*RECORD_COLUMNS, *map(column, self.fields))) + b"\r\n"

    def row(self, row: Body, ref: RecordRef) -> Iterator[bytes]:
        data = row.get("data")
        data = data if isinstance(data, dict) else {}
        own = (str(ref), ref.connection_id, text_of(row, "emitted_at"))
        yield self._line(own)
        for name in self.fields:
            yield b","
            value: Any = data.get(name)
            cut = is_cut(value) and not self.previews
            value = whole.Large(self.asker, ref, name, value) if cut else value
            yield from whole.as_cell(value, raw=self.raw)
        yield b"\r\n"

    def _line(self, cells: Iterable[Any]) -> bytes:
        return b",".join(b"".join(whole.as_cell(one, raw=self.raw)) for one in cells)


@dataclass(slots=True)
class Progress:
    """Detects endless paging: repeated cursors, repeated records and empty pages."""

    printed: set[str] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)  # hashes: a stream may have many pages
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
        if places & self.seen or self.empty > BUDGETS.export_empty_pages:
            raise Unavailable(
                "The source returns pages without end. Report this to its operator.",
                code="upstream_invalid_response",
            )
        self.seen |= places


def copy(asker: Asker, query: RecordQuery, form: Form, sink: Sink, meter: Meter) -> None:
    """All records of a stream, page by page.

    Raises `InvalidRequest` if the source gives no way to its further pages.
    """
    progress = Progress()

    def work() -> None:
        while not sink.state.get("ended"):
            _page(asker, query, sink, form, progress)
            meter.to(sink.state["records"], sink.state["total"])

    meter.to(sink.state.get("records", 0), sink.state.get("total"))
    texts.steady(sink.rewind, work)


def _page(asker: Asker, query: RecordQuery, sink: Sink, form: Form, progress: Progress) -> None:
    """Writes the next page, completely or not at all."""
    state = sink.state
    if not state:
        sink.write(form.head())
    cursor, total = state.get("cursor"), state.get("total")
    body, total = _asked(asker, replace(query, cursor=cursor), total, counted=not state)
    for each in warnings_of(body):
        progress.say(warning(each))
    page_rows = rows(body, "data", "records")
    refs = list[RecordRef]()
    for row in page_rows:
        ref = reference(row, query.stream, source_of(row))
        if ref is None:
            progress.say("warning: a row without a record id was skipped")
            continue
        refs.append(ref)
        for data in form.row(row if query.whole else _previewed(row, ref), ref):
            sink.write(data)
    following = text_of(body, "next_cursor") or text_of(body.get("meta"), "next_cursor")
    more = bool(body.get("has_more"))
    if more and (following is None or following == cursor):
        raise InvalidRequest(
            "The source returned no cursor for the remaining records. Export one connection at "
            "a time with --connection-id; `rung schema` lists them.",
            param="connection_id",
        )
    if more and following is not None:
        progress.check(following, refs)
    records = state.get("records", 0) + len(page_rows)
    sink.keep({"cursor": following, "records": records, "total": total, "ended": not more})


def _asked(
    asker: Asker, query: RecordQuery, total: int | None, *, counted: bool
) -> tuple[Body, int | None]:
    """(page, total number of records if the source counts them)."""
    if not counted:
        return _body(asker, query), total
    try:
        body = _body(asker, replace(query, count="exact"))
    except InvalidRequest:
        return _body(asker, query), None
    count = (body.get("meta") or {}).get("count")
    value = count.get("value") if isinstance(count, dict) else count
    return body, value if isinstance(value, int) and value >= 0 else None


def _body(asker: Asker, query: RecordQuery) -> Body:
    return body_of(asker.ask(lambda rs: rs.records(query)))


def _previewed(row: Body, ref: RecordRef) -> Body:
    """The row with values over 64 KiB as previews, as not every source has them."""
    data = row.get("data")
    if not isinstance(data, dict):
        return row
    shown = {
        name: previewed(value, most_bytes=CONTRACT.inline_bytes) for name, value in data.items()
    }
    return {**row, "data": encode_data(shown, ref)}


def fields_of(asker: Asker, query: RecordQuery) -> tuple[str, ...]:
    """The columns of a stream: the requested fields, or all granted fields."""
    if query.fields:
        return query.fields
    asked = SchemaQuery(stream=query.stream, connection_id=query.connection_id)
    rows_of = asker.ask(lambda rs: rs.schema(asked)).value.rows
    streams = [row.stream for row in rows_of if row.stream.name == query.stream]
    names = [name for stream in streams for name in stream.fields if not _is_inside(name, stream)]
    if query.view:
        views = [view for stream in streams for view in stream.views if view.id == query.view]
        names = [name for view in views for name in view.fields]
        if not views:
            return ()  # the source validates them, and names its views
    if not names:
        raise InvalidRequest(
            "The source does not list the fields of this stream. Name them with --fields, or "
            "export with --format ndjson.",
            param="fields",
        )
    return tuple(dict.fromkeys(names))


def _is_inside(name: str, stream: StreamSchema) -> bool:
    """True if it is the path of something inside another field, which has a column of its own."""
    return is_nested(name) and top_level(name) in stream.fields
