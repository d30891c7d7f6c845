"""The process that parses files, with no access to a store, settings, secrets or the network.

It answers lines of JSON with frames on its standard output: `find` lists the files at some paths,
`read` sends the rows of one. When it is killed, the import starts another and tells it which
records to skip.
"""

import gc
import io
import os
from ctypes import sizeof
from dataclasses import asdict
from typing import Any, BinaryIO, Final, cast

import orjson

from evidence.errors import EvidenceError
from evidence.work import Deadline
from service.importing.finding import FileEntry, find
from service.importing.process.frames import BATCH_BYTES, State, encode, send
from service.importing.process.guard import Sent, Watch, header, records
from service.importing.process.sandbox import OUT_OF_MEMORY, Allowance, confine
from service.importing.process.sandbox import cpu_seconds, file_seconds, step_seconds
from service.importing.source import Raw, Reading, Repair, Source
from service.importing.tree import BUFFER_BYTES, File, printable
from service.importing.unchanged import Digests, Unchanged, record_digest
from evidence.names import Refused

#: Rows wait for others this long.
BATCH_SECONDS: Final = 0.25
COLLECT_AFTER: Final = 100_000


def main(requests: int, shared: int) -> None:
    """Answers requests until there are no more."""
    state = State.mapped(shared)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever a library prints is no frame
    confine()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    try:
        child = _Child(state, shared, out)
        send(out, b"{}")
        with os.fdopen(requests, "rb") as lines:
            for line in lines:
                child.answer(orjson.loads(line))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:
        os._exit(0)  # the import has ended


class _Child(Watch):
    """Finds and reads the files of one import."""

    def __init__(self, state: State, shared: int, out: BinaryIO) -> None:
        self._state, self._shared, self._out = state, shared, out
        self._files: list[tuple[File, FileEntry]] = []
        self._context, self._digests = "", Digests(b"")

    def answer(self, request: dict[str, Any]) -> None:
        """Answers a request."""
        self._allowance = Allowance(self._state)
        try:
            if "paths" in request:
                self._find(**request)
            else:
                self._read(**request)
        except EvidenceError as error:
            self._send({"error": error.message})
        except OSError as error:
            name = printable(error.filename or "A file")
            self._send({"error": f"{name}: {error.strerror}."})

    def begin(self, record: int) -> str | None:
        self._state.record, self._state.parsing = record, 0
        self._allowance.renew()
        return self._reason if record > self._last else None

    def parse(self, record: int, line: int) -> bool:
        self._state.line, self._state.parsing = line, 1
        return record > self._done and record not in self._skipped

    def digest(self, source: Source, raw: Raw) -> bytes:
        return record_digest(self._context, source, raw) if self._context else b""

    def unchanged(self, record: bytes) -> list[int]:
        return self._digests.of_rows(record)

    def _send(self, answer: dict[str, Any]) -> None:
        send(self._out, orjson.dumps(Repair(replace=True).value(answer)))

    def _find(self, paths: list[str], format: str | None) -> None:
        names = [os.fsdecode(bytes.fromhex(path)) for path in paths]
        files, listing = find(names, format, self._allowance.renew)
        self._files = list(zip(files, listing.files))
        self._send({"listing": asdict(listing)})

    def _read(
        self,
        number: int,
        reading: dict[str, Any],
        replace: bool,
        done: int,
        skipped: list[int],
        last: int,
        reason: str,
        seconds: float,
        context: str,
        stored: int,
    ) -> None:
        """Sends the rows of a file, for which `seconds` are spent.

        With a `context`, they have digests. After the state, the shared memory has those of the
        store, in so many bytes.

        Records up to `done`, and those `skipped`, are not parsed. After the record `last`, the rest
        is refused for a reason.
        """
        self._done, self._skipped = done, frozenset(skipped)
        self._last, self._reason = last, reason
        self._context = context
        if stored != self._digests.size:
            self._digests = Digests(os.pread(self._shared, stored, sizeof(State)))
        file, entry = self._files[number]
        empty = io.BytesIO()
        choices = Reading(**reading)
        source = Source(file.name, entry.format, empty, Repair(replace), choices, file.tree)
        source.group = entry.group
        live = file.path == "-"  # what is read of it cannot be read again
        rows = _Rows(source, self._out, 0 if live else BATCH_BYTES)
        with file.open() as opened:
            raw = _Metered(opened, self._allowance, live)
            source.file = cast(BinaryIO, io.BufferedReader(raw, BUFFER_BYTES))
            size = file.size or 0
            self._allowance.renew(step_seconds(size))
            self._send({"header": asdict(header(source))})
            for received in records(source, self):
                if rows.add(received) and seconds + rows.seconds > file_seconds(size or raw.total):
                    self._last = 0
                    self._reason = "Reading the file takes too long, so the rest of it is left out."
        self._send({"end": source.notes, **rows.flush()})


class _Rows:
    """Sends the rows of a file, many at a time, in the order in which they are added."""

    def __init__(self, source: Source, out: BinaryIO, most: int) -> None:
        self._source, self._out, self._most = source, out, most
        self._start, self._used = cpu_seconds(), len(source.tree.used)
        self._empty()

    @property
    def seconds(self) -> float:
        """The CPU time since the file was opened."""
        return cpu_seconds() - self._start

    def _empty(self) -> None:
        self._rows: list[bytes] = []
        self._blobs: list[bytes] = []
        self._bytes = 0
        self._due = Deadline.after(BATCH_SECONDS)

    def add(self, received: Sent) -> bool:
        """Adds a row; returns True if those so far are sent."""
        record, line, content = received
        try:
            before = len(self._blobs)
            text = encode(content, self._blobs)
        except Refused as refused:
            text = encode(str(refused), self._blobs)
        self._rows.append(b"[%d,%d,%b]" % (record, line, text))
        self._bytes += len(text) + sum(map(len, self._blobs[before:]))
        if isinstance(content, Unchanged):
            self._bytes += content.size
        if full := self._bytes >= self._most or self._due.expired():
            self.flush()
        return full

    def flush(self) -> dict[str, Any]:
        """Sends the rows so far; returns what has changed since, if there are none."""
        source, repair, used = self._source, self._source.repair, self._source.tree.used
        about = {
            "comma": source.comma,
            "decisive": source.decisive,
            "nuls": repair.nuls,
            "undecodable": repair.undecodable,
            "used": sorted(used) if len(used) > self._used else [],
            "seconds": self.seconds,
        }
        if not self._rows:
            return about
        lengths = [len(blob) for blob in self._blobs]
        members = orjson.dumps({"blobs": lengths, **about})[1:]
        send(self._out, b'{"rows":[%b],%b' % (b",".join(self._rows), members), self._blobs)
        repair.nuls = repair.undecodable = 0
        source.decisive = {}
        self._used = len(used)
        self._empty()
        return {}


class _Metered(io.RawIOBase):
    """A file that counts what is read of it. Reading a `live` one may wait for a program."""

    def __init__(self, file: BinaryIO, allowance: Allowance, live: bool) -> None:
        self._file, self._allowance, self._live = file, allowance, live
        self.total = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        with self._allowance.waiting(self._live):
            size = cast(io.BufferedReader, self._file).readinto1(buffer)
        self.total += size
        self._allowance.advance(size, self.total if self._live else self._file.tell())
        return size
