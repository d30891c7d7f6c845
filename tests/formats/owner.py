"""Somebody who imports what another program exported, and looks for it."""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.helpers.shell import Shell

COUNTS = re.compile(r": (\d+) new, (\d+) changed, (\d+) unchanged, (\d+) deleted, (\d+) refused")
NAMES = ("new", "changed", "unchanged", "deleted", "refused")


@dataclass
class Owner:
    """A folder with exports and a store."""

    home: Path
    shell: Shell = field(init=False)

    def __post_init__(self) -> None:
        self.shell = Shell({"RUNG_STORE": str(self.home / "store/rung.db")})

    def write(self, **files: bytes | str) -> Path:
        return write(self.home / "export", {name: content for name, content in files.items()})

    def bring(self, *words: str | Path, code: int = 0) -> str:
        """Imports and returns the report."""
        result = self.shell.run("import", *map(str, words), "--connection", "c")
        assert result.exit_code == code, (result.output, result.exception)
        return result.stderr

    def again(self, *words: str | Path, code: int = 0) -> None:
        """Imports what is there already: nothing may change."""
        counted = counts(self.bring(*words, code=code))
        assert not counted["new"] and not counted["changed"] and counted["unchanged"], counted

    def reader(self) -> Shell:
        """A client with a token for everything."""
        token = self.shell.ok("grant", "create", "--connection", "c").stdout.strip()
        return Shell({**self.shell.environ, "RUNG_TOKEN": token})

    def rows(self, stream: str) -> list[dict[str, Any]]:
        shown = self.reader().ok("query", stream, "--limit", "100", "--jsonl").stdout
        return [orjson.loads(line) for line in shown.splitlines()]

    def finds(self, query: str, record: str) -> str:
        """The page of a search whose first hit is this record, as `stream:id`."""
        shown = self.reader().ok("search", query).stdout
        assert f"first_id=c/{record}" in shown, shown
        return shown


def counts(report: str) -> dict[str, int]:
    found = COUNTS.search(report)
    assert found, report
    return dict(zip(NAMES, map(int, found.groups())))


def write(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    """Files in a folder, by their paths in it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def zipped(path: Path, files: Mapping[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path
