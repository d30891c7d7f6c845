"""A store, its sources, and what `rung sync` brings into it."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import Result

from service import ports
from service.cli.sources import WAITING
from service.place import Place, file_of, spelled
from service.records.opening import open_writer
from service.records.store import Store
from tests.helpers.places import new_place
from tests.helpers.shell import Shell
from tests.helpers.stdio import ROOT, environment
from tests.helpers.waiting import WAIT_SECONDS

#: Kills the process at the end of one of its transactions.
KILL = """
import os, signal
from contextlib import contextmanager
from service.records.sqlite import transactions
left, commit = [{commits}], transactions.Transactions.transaction
@contextmanager
def counted(self):
    joined = self.db.in_transaction
    with commit(self):
        yield
    left[0] -= not joined
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
transactions.Transactions.transaction = counted
"""


@dataclass(frozen=True, slots=True)
class Synced:
    """A person with a folder, a store and an owner's file."""

    folder: Path
    store: Place

    @classmethod
    def make(cls, folder: Path) -> "Synced":
        (folder / "config.toml").touch()
        return cls(folder, new_place(folder))

    @property
    def environ(self) -> dict[str, str]:
        return {
            "RUNG_CONFIG": str(self.folder / "config.toml"),
            "RUNG_STORE": spelled(self.store),
            "RUNG_SEMANTIC": "off",
        }

    def run(self, *words: str, typed: str | None = None) -> Result:
        return Shell(self.environ, self.folder).run(*words, typed=typed)

    def ok(self, *words: str) -> Result:
        return Shell(self.environ, self.folder).ok(*words)

    def start(self, *words: str, script: str = "") -> "subprocess.Popen[bytes]":
        """Starts the command in a process of its own; `script` runs before it."""
        code = f"{script}\nimport sys\nfrom service.__main__ import rung\n"
        code += "rung(sys.argv[1:], prog_name='rung')"
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environment(**self.environ),
        )

    def killed(self, commits: int) -> bool:
        """Kills `rung sync` after so many commits; False if it ended before."""
        process = self.start("sync", script=KILL.format(commits=commits))
        _, errors = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode in (-signal.SIGKILL, 0, WAITING), errors
        return process.returncode == -signal.SIGKILL

    def content(self) -> bytes:
        """The bytes of the store."""
        return (file_of(self.store) or Path()).read_bytes()

    def records(self, connection: str) -> dict[str, dict[str, dict[str, Any]]]:
        """The data of all records of a connection, by stream and id."""
        owner = Store(self.store).open_owner()
        with open_writer(self.store) as writer:
            streams = [manifest.name for manifest in writer.manifests(connection)]
        records: dict[str, dict[str, dict[str, Any]]] = {}
        for stream in streams:
            cursor, more = None, True
            while more:
                query = ports.RecordQuery(
                    stream=stream, connection_id=connection, limit=100, cursor=cursor
                )
                page = owner.records(query).value
                rows = {record.ref.record_id: record.data for record in page.records}
                records.setdefault(stream, {}).update(rows)
                cursor, more = page.next_cursor, page.has_more
        return {stream: rows for stream, rows in records.items() if rows}
