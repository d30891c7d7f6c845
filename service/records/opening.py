"""Opens a store by its place: the only module of the store that names its engines.

The dependencies of an engine are imported when its store is opened.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from evidence.errors import InvalidRequest
from service.place import Place
from service.records.engine import Snapshot

if TYPE_CHECKING:
    from service.records.writing.ingest import Counts
    from service.records.engine.content import Content
    from service.records.writing import Writing


class Staged(Protocol):
    """Pending changes."""

    def keep_manifests(self, targets: Iterable[tuple[str, str]] | None = None) -> None:
        """Keeps the manifests of streams, of all if none are named."""

    def publish(self, arrived: "Counts | None" = None) -> "Counts":
        """Commits; returns the resulting counts of changes. `arrived` counts the rows."""


class Engine(Protocol):
    """A store, read through snapshots. Safe to share between threads."""

    def snapshot(self, seconds: float = ...) -> AbstractContextManager[Snapshot]:
        """One consistent view; its methods raise `TimedOut` past `seconds`."""

    def exists(self) -> bool:
        """Whether a store exists at its place, or may exist."""

    def number(self) -> int:
        """A number that changes when another store replaces this one."""

    def require_index(self, snapshot: Any) -> None:
        """Raises `Unavailable` if a sample has shown the full-text index to be damaged."""

    def close(self) -> None:
        """Closes what this thread keeps open."""


_NOT_INSTALLED = (
    "A store in PostgreSQL needs psycopg. Install it with: pip install 'rung[postgres]'"
)


def open_writer(location: Place, *, lock_seconds: int | None = None) -> "Writing":
    """Opens the store for writing; creates it if it is new, and upgrades an older layout.

    Its transactions raise `Unavailable` if they wait for other writers for `lock_seconds`.
    """
    if isinstance(location, Path):
        from service.records.sqlite.writer import open_writer as open_file

        return open_file(location, lock_seconds=lock_seconds)
    try:
        from service.records.postgres.writer import open_writer as open_database
    except ImportError as error:
        raise InvalidRequest(_NOT_INSTALLED) from error
    return open_database(location.url, lock_seconds=lock_seconds)


def open_reader(location: Place, *, fixed: bool = False) -> Engine:
    """The store for readers; opens nothing yet. Nobody writes to a `fixed` one."""
    if isinstance(location, Path):
        from service.records.sqlite.reader import Reader as FileReader

        return FileReader(location, fixed=fixed)
    try:
        from service.records.postgres.reader import Reader
    except ImportError as error:
        raise InvalidRequest(_NOT_INSTALLED) from error
    return Reader(location.url, location.replicas)


@contextmanager
def new_store(location: Place) -> Iterator["Writing"]:
    """A writer for a new store; a file appears at its place only once the store is filled."""
    if isinstance(location, Path):
        from service.records.sqlite.backup import new_file

        with new_file(location) as writer:
            yield writer
    else:
        with open_writer(location) as database:
            yield database


def content_of(store: "Snapshot | Writing") -> "Content":
    """The rows of a store's tables; with a writer, rows can be added."""
    if store.engine == "sqlite":
        from service.records.sqlite.copying import SqliteContent

        return SqliteContent(cast(Any, store))
    from service.records.postgres.copying import PostgresContent

    return PostgresContent(cast(Any, store))


def concern(location: Place) -> str | None:
    """The reason why the store at a place cannot be served; None if there is no known reason."""
    if not isinstance(location, Path):
        return None  # it may start at any moment
    from service.records.sqlite import checkup

    try:
        checkup.recognise(location)
    except checkup.Unreadable as error:
        return str(error)
    return None


def staging(
    writer: "Writing", targets: Sequence[tuple[str, str]]
) -> AbstractContextManager[Staged]:
    """Accepts rows for streams, invisible until published; see `staging` of each engine."""
    if writer.engine == "postgres":
        from service.records.postgres.staging import staging as staging_in_database

        return staging_in_database(cast(Any, writer), targets)
    from service.records.sqlite.staging import staging as staging_file
    from service.records.sqlite.writer import Writer

    return staging_file(cast(Writer, writer), targets)
