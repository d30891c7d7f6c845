"""A server as in production, with its log and the process to stop."""

import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import orjson

from tests.helpers.server import serving


@dataclass(frozen=True, slots=True)
class Operated:
    """A running server."""

    url: str
    log: IO[bytes]

    def said(self) -> str:
        """Everything logged so far."""
        return os.pread(self.log.fileno(), os.fstat(self.log.fileno()).st_size, 0).decode()

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log, as JSON."""
        return [orjson.loads(line) for line in self.said().splitlines()]

    def requests(self, request_id: str) -> list[dict[str, Any]]:
        """The lines about requests with this id."""
        return [line for line in self.lines() if line.get("request_id") == request_id]

    @property
    def worker(self) -> int:
        """The process id of the last worker to start."""
        return self.workers[-1]

    @property
    def workers(self) -> list[int]:
        """The process ids of all workers, in the order they started."""
        return [int(pid) for pid in re.findall(r"Booting worker with pid: (\d+)", self.said())]

    def stop(self, *, workers: bool = False) -> None:
        """Signals it to stop, as platforms do: several times, and some signal the workers too."""
        found = re.search(r"Listening at: [^ ]+ \((\d+)\)", self.said())
        assert found is not None, self.said()
        for _ in range(3):
            for pid in (int(found[1]), *(self.workers if workers else ())):
                os.kill(pid, signal.SIGTERM)


@contextmanager
def operated(
    env: Mapping[str, str],
    *,
    workers: int = 2,
    threads: int = 4,
    cwd: Path | None = None,
    config: str = "python:service.serving",
) -> Iterator[Operated]:
    """Serves with the production configuration, or with another."""
    with TemporaryFile() as log:
        with serving(
            "wsgi:app", env, workers=workers, threads=threads, config=config, cwd=cwd, log=log
        ) as url:
            yield Operated(url, log)
