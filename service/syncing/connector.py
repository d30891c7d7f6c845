"""What a kind of source provides: its parts with their versions, and each part's files.

A package that adds a kind imports from here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, NamedTuple

from evidence.errors import InvalidRequest
from service.records.intake import Row

REMOVE, KEEP = "remove", "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A source as the owner's file describes it. `every` is in seconds.

    `secret` returns the password or token, or None; it may run a command.
    """

    name: str
    kind: str
    address: str
    connection: str
    label: str | None = None
    every: int = 600
    folders: tuple[str, ...] = ()
    deletions: str = REMOVE
    paused: bool = False
    secret: Callable[[], str | None] = field(default=lambda: None, repr=False)

    def check_folders(self, what: str, names: Collection[str]) -> None:
        """Raises `InvalidRequest` if one of `folders` is not among the names of the source."""
        if missing := [name for name in self.folders if name not in names]:
            available = ", ".join(sorted(names)[:20])
            raise InvalidRequest(f"There is no {what} {missing[0]!r}. Available: {available}.")


class Stored(NamedTuple):
    """What the store has of a source: the position, and a call for the versions of all parts."""

    position: dict[str, Any]
    versions: Callable[[], dict[str, str]]


class Listing(NamedTuple):
    """All parts of a source with their versions, and the position after this round."""

    versions: dict[str, str]
    position: dict[str, Any]


class Fetched(NamedTuple):
    """A file or folder to import, and the part of each file in it, by its path."""

    path: Path
    parts: Mapping[str, str]

    @classmethod
    def written(cls, files: Iterable[tuple[str, str, bytes]]) -> Iterator["Fetched"]:
        """A temporary folder of files, if there are any: the part, name and content of each."""
        with TemporaryDirectory() as folder:
            parts = dict[str, str]()
            for part, name, content in files:
                path = Path(folder, name)
                path.write_bytes(content)
                parts[str(path)] = part
            if parts:
                yield cls(Path(folder), parts)


class Connector:
    """A connection to one source for one round. Raises `EvidenceError`s without secrets.

    If `strict`, the round fails when a file cannot be read. `format` is that of all files, if it is
    not detected. If it `joins`, records have `members` that depend on all their parts.
    """

    strict = True
    joins = False
    format: str | None = None

    def check(self) -> None:
        """Reaches the source, unless opening it has done so. For `rung doctor`."""

    def list_parts(self, stored: Stored) -> Listing | None:
        """What the source has; None if nothing changed since the position."""
        raise NotImplementedError

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        """Files for these parts, a few at a time; each is removed when the next is requested."""
        raise NotImplementedError

    def adapt(self, part: str, row: Row) -> Row:
        """A row of a part as it is to be imported."""
        return row

    def members(self, parts: Collection[str]) -> dict[str, dict[str, Any]]:
        """The members of a record in these parts, by stream; see `joins`."""
        return {}

    def watch(self, stop: Event, changed: Callable[[], None]) -> None:
        """Calls `changed` when it has begun and soon after each change, until `stop`."""

    def close(self) -> None:
        """Ends the connection."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source: its name, and how it is opened.

    `check` returns the address as it is kept, or raises `InvalidRequest`. A kind that `watches`
    notices changes between rounds.
    """

    name: str
    open: Callable[[SourceSettings], Connector]
    check: Callable[[str], str]
    needs_secret: Callable[[str], bool] = lambda address: False
    watches: bool = False
