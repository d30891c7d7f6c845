"""Starts, limits and replaces the process that parses the files of an import.

The process is spawned, not forked, with an empty environment and no open files but its pipes. If it
exceeds a limit or crashes, the record that it was parsing is refused, and another process goes on
after that.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from shutil import copyfileobj
from typing import IO, Any, Final, Self, cast

import orjson

from evidence.errors import InvalidRequest, Unavailable
from evidence.limits import BUDGETS
from service.importing.finding import FileEntry, Listing
from service.importing.process.frames import LENGTH, State, decode
from service.importing.process.guard import FileHeader, Received, Sent
from service.importing.process.sandbox import MEBIBYTE, OUT_OF_MEMORY, resident_bytes
from service.importing.source import Reading
from service.importing.stored_rows import StoredRows
from service.importing.tree import LeftOut
from service.importing.unchanged import Unchanged

_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from service.importing.process.child import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
START_SECONDS: Final = 60
#: The size of a pipe on Linux, so that parsing goes on while rows are written.
_PIPE_BYTES: Final = 1 << 20
#: The wall time of a step for each second of its CPU time.
WALL: Final = 2
_LOOK_MILLISECONDS: Final = 1_000


class _Killed(Exception):
    """The process has ended before its answer did; the message says why."""


@dataclass(slots=True)
class FileReport:
    """How a file was read.

    `notes` are reports of its reader, `used` the names of files that became attachments; `nuls` and
    `undecodable` count replaced characters. `refusals` are the first refused lines with reasons,
    `refused` counts all. A
    `textless` file has no text to import.
    """

    name: str
    notes: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    nuls: int = 0
    undecodable: int = 0
    rows: int = 0
    refused: int = 0
    textless: bool = False
    refusals: list[tuple[int, str]] = field(default_factory=list)


def by_kind(skipped: Sequence[LeftOut]) -> list[str]:
    """Counts files that are left out, by kind: a line each, with the reason for the first."""
    kinds = dict[str, list[LeftOut]]()
    for entry in skipped:
        kinds.setdefault(entry[1], []).append(entry)
    return [
        entries[0][2] if len(entries) == 1 else f"{len(entries)} {kind}. The first: {entries[0][2]}"
        for kind, entries in kinds.items()
    ]


class _Outdated(Exception):
    """Rows of a record have changed since the process got the digests of the store."""

    def __init__(self, record: int) -> None:
        self.record = record


class _Process:
    """A process that parses, and the time and memory that it takes."""

    def __init__(self, shared: IO[bytes], state: State, standard_input: IO[bytes] | int) -> None:
        state.seconds, state.memory = START_SECONDS, BUDGETS.import_record_bytes
        requests, self._requests = os.pipe()
        options = ["-I", "-X", "utf8", "-W", "ignore", "-c", _START, json.dumps(sys.path)]
        self._child = subprocess.Popen(
            [sys.executable, *options, str(requests), str(shared.fileno())],
            bufsize=0,
            stdin=standard_input,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"TMPDIR": tempfile.gettempdir()},
            pass_fds=(requests, shared.fileno()),
        )
        os.close(requests)
        self._out = cast(IO[bytes], self._child.stdout)
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._state, self._idle_bytes, self._waits = state, 0, 0
        self._progress: tuple[int, ...] = ()
        self.frame()
        self._idle_bytes = resident_bytes(self._child.pid)

    def ask(self, request: dict[str, Any]) -> None:
        """Sends a request."""
        self._state.record = self._state.parsing = 0
        with suppress(BrokenPipeError):  # then the answer ends as well
            os.write(self._requests, orjson.dumps(request) + b"\n")

    def frame(self) -> dict[str, Any]:
        """The next frame, with decoded rows. Raises `_Killed`."""
        (size,) = LENGTH.unpack(self._bytes(LENGTH.size))
        try:
            frame: dict[str, Any] = orjson.loads(self._bytes(size))
            blobs = [bytes(self._bytes(size)) for size in frame.get("blobs", ())]
            frame["rows"] = [
                (int(record), int(line), decode(content, blobs))
                for record, line, content in frame.get("rows", ())
            ]
            return frame
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._kill("makes the import process send invalid data") from error

    def _bytes(self, size: int) -> bytearray:
        """So many bytes of the answer, at most one record."""
        if size > BUDGETS.import_row_bytes + MEBIBYTE:
            raise self._kill("is too large")
        content = bytearray(size)
        view = memoryview(content)
        while view:
            if not self._poll.poll(_LOOK_MILLISECONDS):
                self._look()
                continue
            count = self._out.readinto(view)  # type: ignore[attr-defined]
            if not count:
                raise self._ended()
            view, self._waits = view[count:], 0
        return content

    def _look(self) -> None:
        """Ends the process if its step takes too long, or too much memory."""
        state = self._state
        progress = state.record, state.parsing, state.position // MEBIBYTE
        if state.waiting or progress != self._progress:
            self._progress, self._waits = progress, 0
        self._waits += 1
        if self._waits > WALL * state.seconds * 1_000 // _LOOK_MILLISECONDS:
            raise self._kill(f"takes more than {WALL * state.seconds} s")
        if self._idle_bytes and resident_bytes(self._child.pid) > self._idle_bytes + state.memory:
            raise self._kill(self._too_large)

    @property
    def _too_large(self) -> str:
        return f"needs more than {self._state.memory // MEBIBYTE} MiB of memory"

    def _kill(self, reason: str) -> _Killed:
        self.close()
        return _Killed(reason)

    def _ended(self) -> _Killed:
        """Why the process has ended by itself."""
        code = self._child.wait()
        if code == -signal.SIGPROF:
            return self._kill(f"takes more than {self._state.seconds} s of CPU time")
        if code == OUT_OF_MEMORY:
            return self._kill(self._too_large)
        what = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._kill(f"crashes the import process ({what})")

    def close(self) -> None:
        """Ends the process."""
        if not self._out.closed:
            self._child.kill()
            self._child.wait()
            self._out.close()
            os.close(self._requests)


class Parser:
    """Finds and parses the files at some paths, in another process. Use as a context manager."""

    def __init__(
        self,
        paths: Sequence[str],
        form: str | None = None,
        reading: Reading = Reading(),
        *,
        replace: bool = False,
    ) -> None:
        self._find = {"paths": [os.fsencode(path).hex() for path in paths], "format": form}
        self._read = {"reading": asdict(reading), "replace": replace}
        self._opened = ExitStack()
        self._input = _standard_input(self._opened) if "-" in paths else subprocess.DEVNULL
        self._shared = self._opened.enter_context(tempfile.TemporaryFile())
        self._shared.truncate(ctypes.sizeof(State))
        self._state = State.mapped(self._shared.fileno())
        self._process: _Process | None = None
        self._busy = False
        self._stored: StoredRows | None = None
        self._digests = {"context": "", "stored": 0}
        self.listing = Listing([], [])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process is not None:
            self._process.close()
        self._opened.close()

    @property
    def position(self) -> int:
        """How much of the current file is read, in bytes."""
        return self._state.position

    def find(self) -> Listing:
        """The files; raises InvalidRequest if there are none."""
        try:
            self._start()
        except _Killed as killed:
            raise InvalidRequest(
                f"Rung stopped looking for files to import, because this step {killed}."
            ) from killed
        if not self.listing.files:
            reasons = by_kind(self.listing.left_out)
            raise InvalidRequest(" ".join(["None of the files can be imported.", *reasons]))
        return self.listing

    def _start(self) -> "_Process":
        """Starts a process, which finds the files."""
        try:
            process = self._process = _Process(self._shared, self._state, self._input)
        except _Killed as killed:
            raise Unavailable(f"The import process cannot start: this step {killed}.") from None
        process.ask(self._find)
        frame = process.frame()
        if "error" in frame:
            raise InvalidRequest(str(frame["error"]))
        listing = frame["listing"]
        self.listing = Listing(
            [FileEntry(**file) for file in listing["files"]],
            [tuple(entry) for entry in listing["left_out"]],
        )
        return process

    def leave_out(self, stored: StoredRows) -> None:
        """Leaves out the parsing of records that are stored; see `unchanged`."""
        self._stored, content = stored, stored.digests()
        self._digests = {"context": stored.context, "stored": len(content)}
        os.pwrite(self._shared.fileno(), content, ctypes.sizeof(State))

    def read(self, number: int, report: FileReport) -> tuple[FileHeader, Iterator[Received]]:
        """The header and the rows of a file of the listing; raises InvalidRequest."""
        frames = self._frames(number)
        header = FileHeader(**next(frames)["header"])

        def rows() -> Iterator[Received]:
            frame = next(frames, None)
            while frame is not None:
                header.comma = frame.get("comma")
                header.decisive |= frame.get("decisive", {})
                report.nuls += frame.get("nuls", 0)
                report.undecodable += frame.get("undecodable", 0)
                report.used.update(frame.get("used", ()))
                report.notes = frame.get("end", report.notes)
                outdated = yield from self._rows(frame["rows"])
                frame = frames.throw(outdated) if outdated else next(frames, None)

        return header, rows()

    def _rows(self, sent: list[Sent]) -> Generator[Received, None, _Outdated | None]:
        """The rows of a frame, with those of unchanged records; returns why it ends early."""
        for record, line, content in sent:
            if not isinstance(content, Unchanged):
                yield record, line, content
                continue
            rows = self._stored.rows(content.digests) if self._stored else None
            if rows is None:
                return _Outdated(record)
            yield from ((record, line, row) for row in rows)
        return None

    def _frames(self, number: int) -> Generator[dict[str, Any], None, None]:
        """The frames of a file: each row once, however many processes are needed."""
        file, resumed = self.listing.files[number], _Resumed()
        if self._busy and self._process is not None:  # the last file was not read to its end
            self._process.close()
            self._process = None
        self._busy = True
        while True:
            try:
                process = self._process or self._start()
                if self.listing.files[number] != file:
                    raise InvalidRequest(f"{file.name} has changed. Import it again.")
                digests = {"context": "", "stored": 0} if file.name == "-" else self._digests
                process.ask({"number": number, **self._read, **resumed.request(), **digests})
                frame: dict[str, Any] = {}
                while "end" not in frame:
                    frame = process.frame()
                    if "error" in frame:
                        raise InvalidRequest(str(frame["error"]))
                    if "header" not in frame or not resumed.record:
                        yield resumed.received(frame)
                self._busy = False
                return
            except _Outdated as outdated:
                process.close()
                self._process, self._digests["stored"] = None, 0
                resumed.go_back(outdated.record)
            except _Killed as killed:
                self._process = None
                if not self._state.record:
                    raise InvalidRequest(
                        f"Rung stopped reading {file.name}, because reading it {killed}."
                    ) from killed
                if refusal := resumed.refusal(self._state, str(killed), file.name):
                    yield {"rows": [(self._state.record, self._state.line, refusal)]}
                if file.name == "-":
                    return


class _Resumed:
    """How much of a file is received, and which records are not parsed again."""

    def __init__(self) -> None:
        self.record = 0
        self._rows = self._repeated = 0
        self._skipped: list[int] = []
        self._last, self._reason = sys.maxsize, ""
        self._seconds = self._spent = 0.0

    def request(self) -> dict[str, Any]:
        """Asks for what is missing. Of the last record, rows may be."""
        self._repeated, self._spent = self._rows, self._spent + self._seconds
        until = {"last": self._last, "reason": self._reason}
        done = {"done": self.record - 1, "skipped": self._skipped}
        return {**done, **until, "seconds": self._spent}

    def go_back(self, record: int) -> None:
        """Forgets what is received of a record, and all after it."""
        self.record, self._rows = record, 0

    def received(self, frame: dict[str, Any]) -> dict[str, Any]:
        """A frame without rows that were received before."""
        self._seconds = frame.get("seconds", self._seconds)
        rows = frame["rows"]
        while self._repeated and rows and rows[0][0] == self.record:
            rows, self._repeated = rows[1:], self._repeated - 1
        if rows:
            last = rows[-1][0]
            before = self._rows if last == self.record else 0
            self.record, self._rows = last, before + sum(row[0] == last for row in rows)
        return frame | {"rows": rows}

    def refusal(self, state: State, reason: str, name: str) -> str:
        """Why the record is refused at which a process was killed.

        Empty if the next process says so when it comes to it, because the rest is refused as well.
        """
        self._skipped.append(state.record)
        if name == "-":
            return (
                f"This record {reason}. To import the other records, save the input in a file, and "
                "import that file."
            )
        if not state.parsing:
            self._last = state.record - 1
            self._reason = f"The rest of the file {reason}, so it is left out."
            return ""
        if len(self._skipped) >= BUDGETS.import_kills:
            self._last = state.record
            count = len(self._skipped)
            rest = f"Rung stops after {count} such records, so the rest is left out."
            return f"This record {reason}. {rest}"
        return f"This record {reason}."


def _standard_input(opened: ExitStack) -> IO[bytes] | int:
    """A file that a process can inherit."""
    with suppress(OSError, ValueError):
        return sys.stdin.fileno()
    copy = opened.enter_context(tempfile.TemporaryFile())
    copyfileobj(sys.stdin.buffer, copy)
    copy.seek(0)
    return copy
