"""A person's home and project with files of MCP clients, and `rung connect` run there."""

import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung
from service.clients.table import client_of
from service.clients.servers import server

#: Where clients look for their files, and where we look for what to write.
VARIABLES = ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "RUNG_URL", "RUNG_STORE", "RUNG_TOKEN")
DATA = Path(__file__).parents[1] / "data" / "clients"
TOKEN = "rung_abcdefghijklmnopqrstuvwxyz0123456789"
URL = "https://rung.example.com"

#: The file of each client after some use.
USED = {
    "claude": "claude_desktop_config.json",
    "claude-code": "claude.json",
    "cursor": "cursor.json",
    "vscode": "vscode.json",
    "codex": "codex.toml",
    "gemini": "gemini.json",
}


@dataclass(frozen=True)
class ClientHome:
    """A person's home and project, and the command run there."""

    home: Path
    project: Path

    @classmethod
    def at(cls, folder: Path, patch: pytest.MonkeyPatch) -> "ClientHome":
        """A new home and project; commands run in the project."""
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        client_home = cls(folder / "home", folder / "project")
        client_home.home.mkdir()
        client_home.project.mkdir()
        patch.chdir(client_home.project)
        return client_home

    def run(self, *arguments: str, **environment: str) -> Result:
        kept = {"HOME": str(self.home), "RUNG_TOKEN": "", **environment}
        return CliRunner().invoke(rung, ["connect", *arguments], env=kept)

    def write(self, client: str, *arguments: str, **environment: str) -> Result:
        """Writes the configuration without checking the address, where no server listens."""
        return self.run(URL, "--client", client, "--no-check", *arguments, **environment)

    def file(self, client: str) -> Path:
        config = client_of(client).config
        assert config is not None
        return config.location.path(sys.platform, self.home, {})

    def place(self, client: str, content: bytes) -> Path:
        path = self.file(client)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def entry(client: str, path: Path, name: str = "rung") -> Any:
    config = client_of(client).config
    assert config is not None
    return server(config, path.read_bytes().decode("utf-8-sig"), name)


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.rung-backup-*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
