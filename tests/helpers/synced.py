"""A store, its sources, and what `rung sync` brings into it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import Result

from service import ports
from service.place import Place, spelled
from service.records.opening import open_writer
from service.records.store import Store
from tests.helpers.places import new_place
from tests.helpers.shell import Shell
from tests.helpers.stdio import ROOT, environment


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

    def run(self, *words: str) -> Result:
        return Shell(self.environ, self.folder).run(*words)

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
