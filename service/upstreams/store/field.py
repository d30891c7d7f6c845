"""Bounded reads of one field: a window costs the one or two rows it lies in, never the field."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from evidence import pointer
from evidence import query as queries
from evidence.errors import InvalidRequest, NotFound
from evidence.find import literals, spans
from evidence.fold import fold
from evidence.handles import RecordRef
from evidence.limits import CONTRACT
from evidence.query import Query, Term
from evidence.text import looks_binary
from service.upstreams import routes
from service.upstreams.ports import WindowRequest
from service.upstreams.store import blobs, documents, records
from service.upstreams.store.documents import Big
from service.upstreams.store.matching import expression
from service.upstreams.store.proof import CHUNK_OVERLAP_CHARS, chunk_text, chunks_matching
from service.upstreams.store.visible import StreamView, View

CHUNK = CONTRACT.chunk_chars
# Spans of separate words considered in one large value before the tightest is chosen.
SPANS_CONSIDERED = 64


class Text:
    """A text that is read by ranges. `total` is its length in code points."""

    total: int

    def read(self, start: int, end: int) -> str:
        raise NotImplementedError

    def pieces(self, query: Query, phrase: Term | None) -> Iterator[tuple[int, str, int]]:
        """(offset, text, own length) of every piece that can hold a match, in order.

        A piece may run over its own length into the next, so that no match is cut.
        """
        raise NotImplementedError


@dataclass(slots=True)
class InlineText(Text):
    """A text that is in memory."""

    text: str

    @property
    def total(self) -> int:  # type: ignore[override]
        return len(self.text)

    def read(self, start: int, end: int) -> str:
        return self.text[start:end]

    def pieces(self, query: Query, phrase: Term | None) -> Iterator[tuple[int, str, int]]:
        yield 0, self.text, len(self.text)


@dataclass(slots=True)
class ChunkedText(Text):
    """A text in chunk rows; the chunk index says which rows can hold a match."""

    db: sqlite3.Connection
    big: Big

    @property
    def total(self) -> int:  # type: ignore[override]
        return self.big.chars

    def read(self, start: int, end: int) -> str:
        if start >= end:
            return ""
        first = start // CHUNK
        text = documents.read_chunks(self.db, self.big, first, (end - 1) // CHUNK)
        return text[start - first * CHUNK : end - first * CHUNK]

    def pieces(self, query: Query, phrase: Term | None) -> Iterator[tuple[int, str, int]]:
        terms = (phrase,) if phrase else query.wanted
        if terms:
            numbers = chunks_matching(self.db, self.big, expression(terms))
        else:
            numbers = iter(range(self.big.chunks))
        overlap = max(CHUNK_OVERLAP_CHARS, 2 * len(query.text))
        for number in list(numbers):
            yield number * CHUNK, chunk_text(self.db, self.big, number, overlap), CHUNK


def read_window(
    db: sqlite3.Connection, view: View, ref: RecordRef, path: str, window: WindowRequest
) -> dict[str, Any]:
    """A window of a field as the PDPP `field_window` body; binary values come as metadata."""
    name = pointer.top_level(path)
    for stream in view.stream(ref.stream, ref.connection_id):
        stream.require(name)
    stream, seq = records.find(db, view, ref)
    stored = documents.load(db, [seq])[seq]
    body: dict[str, Any] = {
        "object": "field_window",
        "stream": stream.name,
        "record_id": stored.record_key,
        **records.source(stream),
        "url": routes.field_window(stream.name, stored.record_key),
    }
    kind, value = _value(db, stored, path, name)
    body["field"] = {"path": path, "type": kind}
    binary = blobs.metadata(db, stream, stored, name, value)
    if binary is not None:
        text = blobs.text_of(db, stored, name, binary)
        if text is None:
            body["field"]["type"] = "binary"
            body["binary"] = binary
            return body
        body["field"]["media_type"] = binary.get("mime_type")
        value = InlineText(text)
    body["window"] = _window(value, window)
    return body


def _value(
    db: sqlite3.Connection, stored: documents.Stored, path: str, name: str
) -> tuple[str, Any]:
    """(JSON type, `Text` or blob reference or base64 text) of what a path names."""
    if name in stored.big and path in (name, pointer.escaped(name)):
        big = stored.big[name]
        head = documents.read_chunks(db, big, 0, 0)
        if big.type == "string" and looks_binary(head):
            return "string", documents.read_chunks(db, big)
        return big.type, ChunkedText(db, big)
    if name in stored.big:
        big = stored.big[name]
        if big.bytes > CONTRACT.export_bytes:
            raise InvalidRequest(
                "This value is too large to be read by pointer. Read the whole field by windows.",
                code="invalid_field_path",
                param="field_path",
            )
        top = orjson.loads(documents.read_chunks(db, big))
    elif name in stored.data:
        top = stored.data[name]
    else:
        raise NotFound(
            f"This record has no value in {name!r}. Call fetch to see which fields it has.",
            code="field_not_found",
            param="field_path",
        )
    value = pointer.inside(top, path)
    kind = pointer.json_type(value)
    if blobs.is_reference(value) or (isinstance(value, str) and looks_binary(value)):
        return kind, value
    if isinstance(value, str):
        return kind, InlineText(value)
    return kind, InlineText(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def _window(text: Text, window: WindowRequest) -> dict[str, Any]:
    if window.query is None:
        start = min(window.offset_chars or 0, text.total)
        size = window.limit_chars or CONTRACT.window_chars
        return _describe(text, start, min(start + size, text.total), size)
    number = min(window.match, text.total + 1)  # no text has more matches than characters
    found = list(islice(_matches(text, window.query), number - 1, number + 1))
    if not found:
        raise _not_found(window)
    begin, stop = found[0]
    start = max(0, begin - (window.before_chars or 0))
    size = window.limit_chars or _context(window, stop - start)
    shown = _describe(text, start, min(start + size, text.total), size)
    shown["match_start_chars"], shown["match_end_chars"] = begin, stop
    shown["match"] = window.match
    shown["next_match"] = window.match + 1 if len(found) > 1 else None
    return shown


def _context(window: WindowRequest, until_match_end: int) -> int:
    if window.before_chars is None and window.after_chars is None:
        return CONTRACT.window_chars
    size = until_match_end + (window.after_chars or 0)
    return min(size, CONTRACT.window_chars_max)


def _not_found(window: WindowRequest) -> NotFound:
    if window.match > 1:
        return NotFound(
            f"There is no match number {window.match}. Retry with a smaller match.",
            code="query_not_found",
            param="match",
        )
    return NotFound(
        "The query does not occur in this field. Try fewer or other words, or read by offset_chars.",
        code="query_not_found",
        param="query",
    )


def _describe(text: Text, start: int, end: int, size: int) -> dict[str, Any]:
    return {
        "text": text.read(start, end),
        "total_chars": text.total,
        "start_chars": start,
        "end_chars": end,
        "limit_chars": size,
        "complete": start == 0 and end >= text.total,
        "has_more": end < text.total,
        "match_start_chars": None,
        "match_end_chars": None,
        "next_offset_chars": end if end < text.total else None,
        "previous_offset_chars": max(0, start - size) if start else None,
    }


def _matches(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    """Ranges that match, in walking order: the literal text, else the tightest spans of its words,
    else the text anywhere inside words."""
    query = queries.parse(needle)
    for finder in (_literal_matches, _word_matches, _inner_matches):
        first = True
        for found in finder(text, query):
            first = False
            yield found
        if not first:
            return


def _literal_matches(text: Text, query: Query) -> Iterator[tuple[int, int]]:
    words = tuple(fold(query.text).split())
    if not words:
        return
    phrase = Term(words, prefix=True)
    for base, piece, own in text.pieces(query, phrase):
        for start, end in literals(piece, query.text):
            if start < own and _starts_word(piece, start):
                yield base + start, base + end


def _word_matches(text: Text, query: Query) -> Iterator[tuple[int, int]]:
    found = []
    if query.wanted:
        for base, piece, own in text.pieces(query, None):
            for span in spans(piece, query, limit=SPANS_CONSIDERED):
                if span.start < own:
                    found.append((base + span.start, base + span.end))
            if len(found) >= SPANS_CONSIDERED:
                break
    found.sort(key=lambda span: (span[1] - span[0], span[0]))
    yield from found


def _inner_matches(text: Text, query: Query) -> Iterator[tuple[int, int]]:
    every = Query(query.text, ())
    for base, piece, own in text.pieces(every, None):
        for start, end in literals(piece, query.text):
            if start < own:
                yield base + start, base + end


def _starts_word(text: str, start: int) -> bool:
    """Whether a word begins at `start`, as the index sees words."""
    if start == 0:
        return True
    before, here = fold(text[start - 1]), fold(text[start])
    return before.endswith(" ") or here.startswith(" ") or not before
