"""What access control requires of a store's engine, which runs the statements on grants."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from evidence.errors import Unavailable
from evidence.manifest import StreamManifest

Rows = list[tuple[Any, ...]]
#: Runs a statement with its values and returns all rows.
Run = Callable[..., Rows]
#: How long a transaction of the sidecar waits for others.
BUSY_SECONDS: Final = 5


class Tables(Protocol):
    """The tables of grants and packages, in one snapshot or transaction."""

    def run(self, sql: str, *values: Any) -> Rows:
        """The rows of a statement in SQL that all engines share; `?` marks its values."""


class WritableTables(Tables, Protocol):
    """The tables of a store that is open for writing, and what can be granted."""

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing. Inside another transaction it joins it."""

    def connection_ids(self) -> Sequence[str]:
        """The ids of all connections that have a stream, sorted."""

    def manifests(self, connection_id: str) -> list[StreamManifest]:
        """The manifests of a connection's streams, by name; empty if it does not exist.

        Those of streams that are being replaced are the future manifests.
        """


class Begun(NamedTuple):
    """A transaction of an engine: how to run statements in it, its time, and the mark.

    `ahead` is how far that time is ahead of this machine's.
    """

    run: Run
    clock: datetime
    mark: str | None
    ahead: timedelta = timedelta()


class AccessTables(Protocol):
    """The tables of `tables.py` in one engine."""

    def begin(self, mark: str, *, writes: bool) -> AbstractContextManager[Begun]:
        """One transaction, in which the SQL expression `mark` is read first.

        It is committed at the end. Raises `Unavailable` if it is still busy after `BUSY_SECONDS`,
        and `off` if the tables cannot be opened.
        """

    def exists(self) -> bool:
        """Whether the tables were created, or may exist."""

    def store_exists(self) -> bool:
        """Whether their store exists, or may exist."""

    def close(self) -> None:
        """Closes what is kept open."""


def off(why: str) -> Unavailable:
    """The error of a sidecar that is off."""
    return Unavailable(f"Access data cannot be written: {why}.", code="access_off")
