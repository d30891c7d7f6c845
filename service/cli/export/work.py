"""Runs an export: copies a source into a sink, and resumes it."""

import hashlib
from collections.abc import Callable
from contextlib import suppress

import orjson

from evidence.errors import TimedOut, Unavailable
from evidence.handles import RecordRef
from service.cli.export import texts, whole
from service.cli.export.asking import Asker
from service.cli.export.sinks import Sink
from service.cli.export.texts import Changed, Text
from service.cli.progress import Meter
from service.cli.output import say
from service.pdpp.encode import body_of
from service.ports import Blob, RecordRead, ResourceServer

KEPT_BYTES = 1 << 20

Find = Callable[[ResourceServer], Blob]


def text(source: Text, sink: Sink, meter: Meter) -> None:
    """A whole text, exact, as UTF-8."""

    def work() -> None:
        meter.to(sink.state.get("chars", 0), sink.state.get("total"))
        for piece in texts.pieces(source, sink.state):
            sink.write(piece.window.text.encode())
            sink.keep(piece.state)
            meter.to(piece.window.end, piece.window.total)

    texts.steady(lambda: _anew(sink), work)


def record(asker: Asker, ref: RecordRef, sink: Sink, meter: Meter) -> None:
    """A record with all its granted fields, whole, as one line of JSON."""

    def work() -> None:
        answer = asker.ask(lambda rs: rs.record(RecordRead(ref, whole=True)))
        body = body_of(answer)
        segments = whole.segments(asker, body, ref)
        is_of = hashlib.sha256(orjson.dumps(body)).hexdigest()
        if sink.state and sink.state["record"] != is_of:
            raise Changed
        begin, within = sink.state.get("segment", 0), sink.state.get("within", {})
        total = sum(len(one) if isinstance(one, bytes) else one.size for one in segments)
        for number, segment in enumerate(segments[begin:], begin):
            for data, state in whole.as_json(segment, within):
                sink.write(data)
                sink.keep({"record": is_of, "segment": number, "within": state})
                meter.to(sink.size, max(total, sink.size))
            within = {}
            sink.keep({"record": is_of, "segment": number + 1, "within": within})

    texts.steady(lambda: _anew(sink), work)


def blob(asker: Asker, find: Find, sink: Sink, meter: Meter) -> None:
    """Exports the bytes of a blob and verifies its size and, if reported, its SHA-256."""

    def work() -> None:
        before = -1
        while not sink.state.get("whole"):
            if sink.size == before:
                raise Unavailable(
                    f"The source returned no bytes after byte {before}. Try again later."
                )
            before = sink.size
            asker.ask(lambda rs: _some(find(rs), sink, meter))

    texts.steady(lambda: _anew(sink), work)


def _some(blob: Blob, sink: Sink, meter: Meter) -> None:
    """The remaining bytes of a blob; raises if the source returns no more."""
    is_of = {"size": blob.size_bytes, "sha256": blob.sha256}
    if sink.state and sink.state["blob"] != is_of:
        raise Changed
    begun = kept = sink.size
    try:
        for piece in blob.chunks(sink.size, blob.size_bytes):
            sink.write(piece)
            meter.to(sink.size, blob.size_bytes)
            if sink.size - kept >= KEPT_BYTES:
                sink.keep({"blob": is_of})
                kept = sink.size
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
        say("The source has changed since the interruption. Starting over.")
    sink.restart()
