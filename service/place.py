"""Where a store is: a file, or a PostgreSQL database."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL database. As text it has its user, but no password or parameters."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        user, _, host = parts.netloc.rpartition("@")
        name = user.partition(":")[0]
        return f"{parts.scheme}://{name}{'@' if name else ''}{host}{parts.path}"

    def exists(self) -> bool:
        """True: what does not answer now may be there the next moment."""
        return True

    def absolute(self) -> "Database":
        """Itself, as there is no folder it is seen from."""
        return self

    @property
    def parent(self) -> Path:
        """The folder for what commands keep beside a store."""
        return Path("var")


Place = Path | Database


def read(text: str) -> Place:
    """The place that a text names; raises `ValueError` for a URL of something else."""
    if text.startswith(SCHEMES):
        return Database(text)
    if "://" in text:
        raise ValueError("must be a path or a postgresql:// URL")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError("must not begin with ~, because the home directory is unknown") from None


def spelled(place: Place) -> str:
    """The text that names a place, password included."""
    return place.url if isinstance(place, Database) else str(place)
