"""MCP over a pipe: one message per line, answered in order, until the input ends.

    with take_stdout() as out:
        serve(surface, open_session, sys.stdin.buffer, out)

Each message that reads something opens a new session, so a revoked grant reads nothing more. Errors
when opening are reported like those of the read itself: as a tool result with `isError`, or as the
error of a resource.
"""

import os
import sys
from collections.abc import Callable, Iterator
from io import FileIO
from typing import Any, BinaryIO

from evidence import request_log, work
from evidence.cached import cached_property
from evidence.errors import TooLarge
from evidence.limits import BUDGETS
from evidence.request_log import RequestLog, new_id
from service.mcp.faults import INVALID_REQUEST, of_error
from service.mcp.protocol import Dialogue, handle_line, refused
from service.mcp.server import Server
from service.mcp.surface import Surface

STDOUT, STDERR = 1, 2


def take_stdout() -> FileIO:
    """Returns the real stdout. From then on, all other output goes to stderr."""
    if sys.stderr is None:  # it is closed, and its descriptor is reused next
        sys.stderr = open(os.devnull, "w")
    out = open(os.dup(STDOUT), "wb", buffering=0)
    os.dup2(STDERR, STDOUT)
    sys.stdout.flush()
    sys.stdout = sys.stderr
    return out


def serve(surface: Surface, begin: Callable[[], Any], source: BinaryIO, out: BinaryIO) -> None:
    """Answers the lines of `source` until it ends or nobody reads the answers."""
    server, dialogue = Server(surface), Dialogue()
    for line in lines(source, BUDGETS.body_bytes):
        id = new_id()
        request_log.begin(RequestLog(id))
        work.begin(BUDGETS.store_seconds)
        try:
            if line is None:
                limit = BUDGETS.body_bytes
                message = f"The message is longer than {limit} bytes."
                error = TooLarge(message, hint="Send a smaller message.", limit=limit)
                answer = refused(of_error(error, INVALID_REQUEST, request_id=id)).body
            else:
                session = OnDemand(begin)
                answer = handle_line(server, line, session, dialogue, request_id=id)
        finally:
            work.end()
            request_log.end()
        if answer is not None:
            try:
                _write(out, answer + b"\n")
            except BrokenPipeError:
                return


def lines(source: BinaryIO, most: int) -> Iterator[bytes | None]:
    """Each non-blank line; None for a line of more than `most` bytes, which is dropped."""
    while line := source.readline(most + 1):
        if len(line) > most and not line.endswith(b"\n"):
            while (chunk := source.readline(BUDGETS.piece_bytes)) and not chunk.endswith(b"\n"):
                pass
            yield None
        elif line.strip():
            yield line


class OnDemand:
    """A session that is opened on first use."""

    def __init__(self, open_session: Callable[[], Any]) -> None:
        self._open = open_session

    @cached_property
    def _session(self) -> Any:
        return self._open()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _write(out: BinaryIO, data: bytes) -> None:
    """Writes all of it: a pipe may accept only a part at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[out.write(remaining) :]
