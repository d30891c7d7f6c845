"""The registry of a store, whatever engine keeps it."""

from typing import TYPE_CHECKING, Any, cast

from service.access.registry import Registry, RegistryReader
from service.records.engine import Snapshot

if TYPE_CHECKING:
    from service.records.writing import Writing


def registry_in(snapshot: Snapshot) -> RegistryReader:
    """Grants and packages as a snapshot shows them."""
    if snapshot.engine == "postgres":
        from service.access.postgres import PostgresRegistryReader

        return PostgresRegistryReader(cast(Any, snapshot))
    from service.access.sqlite import SqliteRegistryReader

    return SqliteRegistryReader(cast(Any, snapshot))


def registry_of(writer: "Writing") -> Registry:
    """The registry of a store that is open for writing."""
    if writer.engine == "postgres":
        from service.access.postgres import PostgresRegistry

        return PostgresRegistry(cast(Any, writer))
    from service.access.sqlite import SqliteRegistry

    return SqliteRegistry(cast(Any, writer))
