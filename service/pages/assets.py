"""The static files of pages, held in memory, at addresses that change with the files."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import files

PREFIX = "/static/pages"
DIGEST_CHARS = 12
#: The files served, and nothing else of the folder.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """One file as served."""

    content: bytes
    media_type: str


class Assets:
    """Every file of `static/`. All share one digest, so that modules import each other by name."""

    @cached_property
    def files(self) -> Mapping[str, Asset]:
        """Name to file."""
        paths = sorted(
            files("service.pages").joinpath("static").iterdir(), key=lambda one: one.name
        )
        return {
            one.name: Asset(one.read_bytes(), TYPES[ending])
            for one in paths
            if (ending := "." + one.name.rpartition(".")[2]) in TYPES
        }

    @cached_property
    def digest(self) -> str:
        """Of all names and contents."""
        whole = sha256()
        for name, asset in self.files.items():
            whole.update(name.encode() + b"\0" + sha256(asset.content).digest())
        return whole.hexdigest()[:DIGEST_CHARS]

    def address(self, name: str) -> str:
        """The address of a file; raises `KeyError` for an unknown one."""
        self.files[name]
        return f"{PREFIX}/{self.digest}/{name}"
