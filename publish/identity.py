"""The name under which Rung is published, from `identity.toml`, and the version."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from evidence.version import VERSION

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("identity.toml")
_IDENTITY = re.compile(r"[A-Za-z0-9.-]+/[A-Za-z0-9._-]+")
_PLACEHOLDER = re.compile(r"\bexample\b")


@dataclass(frozen=True)
class Identity:
    """`identity` is `namespace/name`, `repository` the address of the source."""

    identity: str
    repository: str
    version: str = VERSION

    @classmethod
    def read(cls, file: Path = FILE) -> Self:
        """The identity in a file. Raises `ValueError` for one that no registry accepts."""
        found = cls(**tomllib.loads(file.read_text(encoding="utf-8")))
        if not _IDENTITY.fullmatch(found.identity):
            raise ValueError(
                f"The identity {found.identity!r} in {file.name} is not valid. Write a reverse "
                'domain name, a slash and a name, such as "io.github.someone/rung".'
            )
        return found

    @property
    def name(self) -> str:
        """The name on the package index."""
        return self.identity.partition("/")[2]

    @property
    def placeholder(self) -> bool:
        """Whether the identity or the repository is still the one of an example."""
        return bool(_PLACEHOLDER.search(self.identity) or _PLACEHOLDER.search(self.repository))

    def page(self, path: str) -> str:
        """The address of a file of this version in the repository."""
        return f"{self.repository}/blob/v{self.version}/{path}"

    def raw(self, path: str) -> str:
        """The address of the bytes of such a file, for pictures."""
        return f"{self.repository}/raw/v{self.version}/{path}"
