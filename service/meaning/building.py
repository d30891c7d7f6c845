"""Builds a store's missing vectors: first windows before later ones, newest records first.

A killed builder leaves whole commits; the next one goes on with what is missing. A text that the
set has already needs no new vector.
"""

import hashlib
import os
import socket
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple

import orjson

from evidence.errors import EvidenceError, Unavailable
from evidence.pointer import top_level
from evidence.work import Deadline
from evidence.windows import CHARS, windows
from service.meaning.encoder import PROBES, Encoder
from service.place import Place
from service.records.engine.scopes import Scopes
from service.records.engine.vectors import (
    LOTS,
    Document,
    TextStream,
    WindowedRecord,
    centre_of,
)
from service.records.opening import open_reader, open_writer
from service.records.writing import Writing
from service.records.writing.derived import texts_of

#: A commit has at most about so many vectors, or those of so many seconds.
COMMIT_VECTORS, COMMIT_SECONDS = 2_000, 2.0
#: Texts that are embedded between two looks at the clock.
TEXTS_TOGETHER: Final = 16
#: Records whose texts are in memory together, unless they have more characters.
RECORDS_TOGETHER, CHARS_TOGETHER = 32, 1_000_000
#: The title before a window has at most so many characters.
TITLE_CHARS: Final = 160
NO_TITLE: Final = -1
#: A first window lies in so many characters.
FIRST_CHARS: Final = 2 * CHARS
#: After so many seconds a round ends if records were changed, so that new ones do not wait.
ROUND_SECONDS: Final = 30.0
#: Seconds between two looks for changed records, and after an error.
IDLE_SECONDS, ERROR_SECONDS = 2.0, 15.0
#: Another builder may begin so many seconds after the last commit of this one.
LEASE_SECONDS: Final = 60


class Progress(NamedTuple):
    """Records that have all their vectors, all records, and vectors that were embedded."""

    records: int
    total: int
    vectors: int


class Builder:
    """Builds the set of one encoder in an open store.

    Raises `Unavailable` if another builder works on the store.
    """

    def __init__(
        self, writer: Writing, encoder: Encoder, on_commit: Callable[[Progress], None]
    ) -> None:
        self._read_large, self._tables, self._encoder = (
            writer.read_large,
            writer.vectors(),
            encoder,
        )
        self._on_commit = on_commit
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        self._renew()
        self._set = self._open_set()
        self._pending, self._vectors = list[WindowedRecord](), dict[int, bytes]()
        self._embedded = self._loose = 0
        self._due = Deadline.after(COMMIT_SECONDS)

    def _open_set(self) -> int:
        """The id of the encoder's set: one that it may go on with, or a new one."""
        for set_id, model in self._tables.sets():
            if self._encoder.matches(model):
                return set_id
        centre = centre_of(self._encoder.passages(PROBES))
        return self._tables.open_set(self._encoder.id, self._encoder.dimensions, centre)

    def round(self, state: Callable[[], Hashable], stop: Event) -> bool:
        """Builds what is missing; False if records changed meanwhile, or on `stop`.

        `state` returns the generation of the store.
        """
        before, long = state(), Deadline.after(ROUND_SECONDS)
        streams = {stream.id: stream for stream in self._tables.streams()}
        for stream in streams.values():
            title = stream.fields.get(stream.title or "", NO_TITLE)
            self._tables.prepare(self._set, stream.id, [title, *sorted(stream.fields.values())])
        for begun in (False, True):
            for group in self._groups(streams, begun):
                self._build(group, whole=begun)
                if stop.is_set() or (long.expired() and state() != before):
                    self._commit()
                    return False
            self._commit()
        self._tables.pack(self._set)
        if state() != before:
            return False
        self._tables.complete(self._set)
        return True

    def close(self) -> None:
        """Lets another builder begin."""
        self._tables.lease(self._owner, 0, is_gone)

    def _renew(self) -> None:
        if holder := self._tables.lease(self._owner, LEASE_SECONDS, is_gone):
            raise Unavailable(f"Another process is building vectors in this store: {holder}.")

    def _groups(
        self, streams: Mapping[int, TextStream], begun: bool
    ) -> Iterator[dict[int, TextStream]]:
        """The next records, newest first, each with its stream."""

        def records_of(id: int) -> Iterator[tuple[int, int, int]]:
            for at, seq in self._tables.missing(self._set, id, begun=begun):
                yield at, seq, id

        ordered = merge(*map(records_of, streams), reverse=True)
        while group := list(islice(ordered, RECORDS_TOGETHER)):
            yield {seq: streams[id] for _, seq, id in group}

    def _build(self, streams: Mapping[int, TextStream], *, whole: bool) -> None:
        """Embeds the first windows of some records, or all with `whole`."""
        stored = self._tables.windows(self._set, list(streams))
        records, texts, chars = list[WindowedRecord](), dict[int, str](), 0
        documents = {document.seq: document for document in self._tables.documents([*streams])}
        for document in (documents[seq] for seq in streams if seq in documents):
            record, texts_by_hash = self._windows(document, streams[document.seq], whole)
            records.append(record)
            present = stored.get(document.seq, {})
            for window, (stop, number) in record.windows.items():
                if present.get(window) != (stop, number) and number not in self._vectors:
                    texts[number] = texts_by_hash[number]
                    chars += stop - window[1]
            if chars > CHARS_TOGETHER:
                self._embed(records, texts)
                records, texts, chars = [], {}, 0
        self._embed(records, texts)

    def _windows(
        self, document: Document, stream: TextStream, whole: bool
    ) -> tuple[WindowedRecord, dict[int, str]]:
        """A record with its windows, and their texts by hash."""
        places = orjson.loads(document.big) if document.big else {}
        data = orjson.loads(document.data)
        for name in {*map(top_level, stream.fields)} & places.keys():
            if places[name][4] == "string":
                data[name] = self._read_large(places[name])
        spans, texts, complete = dict[tuple[int, int], tuple[int, int]](), dict[int, str](), True
        title = data.get(stream.title or "")
        heading = f"{title[:TITLE_CHARS]}\n" if title and isinstance(title, str) else ""
        for ordinal, text, _ in texts_of(Scopes(dict(stream.fields), {}), data, places):
            before = "" if ordinal == stream.fields.get(stream.title or "") else heading
            tokens = partial(_tokens, self._encoder, before)
            cut = windows(text if whole else text[:FIRST_CHARS], tokens)
            for start, stop in cut if whole else cut[:1]:
                embedded = before + text[start:stop]
                number = hash_of(embedded)
                spans[ordinal, start], texts[number] = (stop, number), embedded
            complete &= whole or cut[0][1] == len(text)
        lots = {
            ordinal: hash_of(stream.connection_id, stream.name, document.record_key, name) % LOTS
            for name, ordinal in stream.fields.items()
        }
        key = document.seq, stream.id, document.fingerprint
        return WindowedRecord(*key, lots, spans, whole=complete, done=True), texts

    def _embed(self, records: Sequence[WindowedRecord], texts: Mapping[int, str]) -> None:
        """Embeds the texts of some records by hash, and commits if it is time."""
        same = self._tables.same_texts(self._set, list(texts))
        self._vectors |= same
        new = [number for number in texts if number not in same]
        for first in range(0, len(new), TEXTS_TOGETHER):
            numbers = new[first : first + TEXTS_TOGETHER]
            vectors = self._encoder.passages([texts[number] for number in numbers])
            self._vectors |= zip(numbers, vectors)
            self._embedded += len(numbers)
            if self._is_due():
                self._commit([replace(record, done=False) for record in records])
        self._pending += records
        if self._is_due():
            self._commit()

    def _is_due(self) -> bool:
        most = max(len(self._vectors), len(self._pending))
        return most >= COMMIT_VECTORS or self._due.expired()

    def _commit(self, unfinished: Sequence[WindowedRecord] = ()) -> None:
        self._renew()
        if records := [*self._pending, *unfinished]:
            self._tables.save(self._set, records, self._vectors)
        self._loose += len(self._vectors)
        if self._loose >= COMMIT_VECTORS:
            self._tables.pack(self._set)
            self._loose = 0
        self._pending, self._vectors = [], {}
        self._due = Deadline.after(COMMIT_SECONDS)
        self._on_commit(Progress(*self._tables.progress(self._set), self._embedded))


def build(
    location: Place | None,
    encoder: Encoder,
    stop: Event,
    on_commit: Callable[[Progress], None],
    on_error: Callable[[EvidenceError], None] | None = None,
    papers: Callable[[], Path] | None = None,
) -> None:
    """Builds the vectors of a store; with `on_error` again after each change, until `stop`.

    An error that repeats is reported once. `papers` returns a second store, which may become
    another one.
    """
    done, states = dict[Place, Hashable](), dict[Place, Callable[[], Hashable]]()
    reported = ""
    with ExitStack() as stack:

        def build_changed(place: Place) -> None:
            if place not in states:
                states[place] = _state(stack, place)
            if states[place]() != done.get(place):
                done[place] = _build_all(place, encoder, states[place], stop, on_commit)

        while not stop.is_set():
            pause = IDLE_SECONDS
            try:
                if location is not None:
                    build_changed(location)
                if papers is not None and not stop.is_set():
                    build_changed(papers())
                reported = ""
            except EvidenceError as error:
                if on_error is None:
                    raise
                if error.message != reported:
                    on_error(error)
                reported = error.message
                pause = ERROR_SECONDS
            if on_error is None:
                return
            stop.wait(pause)


def _state(stack: ExitStack, place: Place) -> Callable[[], Hashable]:
    """A function that returns the generation of a store, until the stack is closed."""
    reader = stack.enter_context(closing(open_reader(place)))

    def state() -> Hashable:
        with reader.snapshot() as snapshot:
            return snapshot.generation()

    return state


def _build_all(
    location: Place,
    encoder: Encoder,
    state: Callable[[], Hashable],
    stop: Event,
    on_commit: Callable[[Progress], None],
) -> Hashable:
    """Builds rounds until nothing is missing; returns the generation before the last of them.

    A later one may have records that this round did not see.
    """
    with open_writer(location) as writer, closing(Builder(writer, encoder, on_commit)) as builder:
        before = state()
        while not builder.round(state, stop) and not stop.is_set():
            before = state()
        return before


def _tokens(encoder: Encoder, before: str, text: str) -> int:
    return encoder.tokens(before + text)


def hash_of(*texts: str) -> int:
    """A signed number of 64 bits, the same in every process."""
    encoded = "\0".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(encoded).digest()[:8], "big", signed=True)


def is_gone(holder: str) -> bool:
    """Whether a builder, named by host and process, has ended. Not known of other hosts."""
    host, _, process = holder.rpartition(":")
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
