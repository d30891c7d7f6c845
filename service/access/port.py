"""What access requires of the engine of a store, which runs the statements on its tables."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from evidence.manifest import StreamManifest

Rows = list[tuple[Any, ...]]


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
