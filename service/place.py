"""The location of a store (a file or a database), and the table of engines."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

#: The module of the engine for each scheme, and for a path.
ENGINES: Final = dict.fromkeys(("postgresql://", "postgres://"), "service.records.postgres.engine")
FILES: Final = "service.records.sqlite.engine"
SCHEMES: Final = tuple(ENGINES)


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL database. Its text has the user, but no password or parameters."""

    url: str = field(repr=False)
    #: URLs of servers that follow this one; they may answer reads.
    replicas: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        user, _, host = parts.netloc.rpartition("@")
        name = user.partition(":")[0]
        return f"{parts.scheme}://{name}{'@' if name else ''}{host}{parts.path}"

    def exists(self) -> bool:
        """True: a database that does not answer now may answer soon."""
        return True

    def absolute(self) -> "Database":
        """Returns itself, because a URL does not depend on a folder."""
        return self

    @property
    def parent(self) -> Path:
        """The folder for files that commands keep next to a store."""
        return Path("var")


Place = Path | Database


def read(text: str) -> Place:
    """The place that a text names; raises `ValueError` for a URL of something else."""
    if text.startswith(SCHEMES):
        return Database(text)
    if "://" in text:
        raise ValueError("must be a path or a postgresql:// URL")
    return path(text)


def path(text: str) -> Path:
    """The path that a text names; raises `ValueError` if the home folder is unknown."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError("must not begin with ~, because the home directory is unknown") from None


def replicas(text: str) -> tuple[str, ...]:
    """The URLs of several databases; a comma inside a URL separates its hosts."""
    urls = tuple(re.split(r"\s*,\s*(?=postgres(?:ql)?://)", text.strip()))
    if not all(url.startswith(SCHEMES) for url in urls):
        raise ValueError("must be postgresql:// URLs, separated by commas")
    return urls


def with_replicas(location: Place, urls: tuple[str, ...]) -> Place:
    """The place with the URLs of servers that follow a database."""
    return replace(location, replicas=urls) if isinstance(location, Database) else location


def file_of(location: Place) -> Path | None:
    """The file of a store; None if the store is not a file."""
    return None if isinstance(location, Database) else location


def engine_module(location: Place) -> str:
    """The name of the module with the engine of a place."""
    text = spelled(location)
    return next((ENGINES[scheme] for scheme in SCHEMES if text.startswith(scheme)), FILES)


def spelled(location: Place) -> str:
    """The text that names a place, password included."""
    return location.url if isinstance(location, Database) else str(location)
