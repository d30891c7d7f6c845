"""`rung stdio` as a real process, and a minimal client for it."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import orjson

from tests.helpers.caller import Caller, Post
from tests.helpers.posting import modern_body, modern_headers
from tests.helpers.waiting import WAIT_SECONDS

ROOT = Path(__file__).resolve().parents[2]
PIECE_BYTES = 65_536

#: Variables of the person who runs the tests, which would change what is served.
UNWANTED = ("RUNG_", "PDPP_", "PYTHON")


class Modern(Caller):
    """A caller that speaks the modern era, with any `post`."""

    def rpc(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        body = modern_body(method, params, id=next(self._ids))
        headers = {**self.headers, **modern_headers(body)}
        found: dict[str, Any] = orjson.loads(self._post(orjson.dumps(body), headers))
        return found


#: The caller for each era.
ERAS: dict[str, type[Caller]] = {"legacy": Caller, "modern": Modern}


class Pipe:
    """A running `rung stdio`: lines in, lines out."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self._in, self._out, self._log = process.stdin, process.stdout, log
        self._read = b""
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)

    def send(self, *lines: bytes) -> None:
        """Writes lines, each with its newline."""
        self._in.write(b"".join(line + b"\n" for line in lines))

    def receive(self) -> bytes:
        """The next line that comes out, without its newline."""
        while b"\n" not in self._read:
            ready = self._poll.poll(WAIT_SECONDS * 1_000)
            piece = os.read(self._out.fileno(), PIECE_BYTES) if ready else b""
            assert piece, f"no answer; its log:\n{self.log()}"
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line

    def ask(self, message: Any) -> Any:
        """Sends a message and returns its answer, both as JSON values."""
        self.send(orjson.dumps(message))
        return orjson.loads(self.receive())

    def caller(self, kind: type[Caller] = Caller) -> Caller:
        """A caller over this pipe."""

        def post(body: bytes, headers: Mapping[str, str]) -> bytes:
            self.send(body)
            return self.receive()

        answering: Post = post
        return kind(answering, "")

    def close(self) -> tuple[int, bytes]:
        """Ends the input; returns (exit code, output not yet received)."""
        self._in.close()
        rest = self._read + self._out.read()
        return self.process.wait(WAIT_SECONDS), rest

    def log(self) -> str:
        """Its stderr so far."""
        self._log.seek(0)
        return self._log.read().decode()


def environment(**changes: str) -> dict[str, str]:
    """The environment of a process that serves what its command line names, with changes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    path = os.pathsep.join(filter(None, (changes.pop("PYTHONPATH", ""), str(ROOT))))
    return {**kept, "PYTHONPATH": path, **changes}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "service", "stdio", *map(str, arguments)]


@contextmanager
def stdio(*arguments: str | Path, **environ: str) -> Iterator[Pipe]:
    """Starts `rung stdio` with these arguments and changes to the environment."""
    with TemporaryFile() as log:
        process = subprocess.Popen(
            command(*arguments),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env=environment(**environ),
        )
        with process:
            try:
                yield Pipe(process, log)
            finally:
                process.kill()


def started(*arguments: str | Path, **environ: str) -> subprocess.Popen[bytes]:
    """Starts `rung stdio` with an input that has ended; the caller waits for it."""
    return subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(**environ),
    )
