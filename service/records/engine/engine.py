"""What an engine must provide: everything that Rung does with one store, wherever the store is.

`place.ENGINES` maps a location to its engine, and docs/how-to/add-an-engine.md explains how to add
one. The flags name what not every engine can do; callers ask them, never for a name or a type.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from evidence.work import Deadline
from service.access.port import AccessTables
from service.records.engine import Snapshot
from service.records.engine.health import Depth, Health
from service.records.writing import Writing


class Reader(Protocol):
    """A store, read through snapshots. Safe to share between threads."""

    #: Whether its snapshots rank by themselves, if the engine can. Off unless it is switched on.
    ranks: bool

    def snapshot(self, seconds: float = ...) -> AbstractContextManager[Snapshot]:
        """One consistent view; its methods raise `TimedOut` past `seconds`."""

    def number(self) -> int:
        """A number that changes when another store replaces this one."""

    def require_index(self, snapshot: Any) -> None:
        """Raises `Unavailable` if a sample has shown the full-text index to be damaged."""

    def close(self) -> None:
        """Closes what this thread keeps open."""


class Engine(Protocol):
    """The engine of the store at one location. Opens nothing by itself."""

    #: Whether `check` compares the contents of a store, and `repair` rebuilds in a copy.
    checks_contents: bool
    #: Whether long changes go into a copy that then replaces the store; see `replacement`. Others
    #: go into one transaction.
    works_in_a_copy: bool
    #: Whether a stream can be replaced by one whose manifest is not known before.
    infers_replacements: bool
    #: Whether the location may contain a password, so that it is not printed.
    has_secret_location: bool

    def open_reader(self, *, fixed: bool = False) -> Reader:
        """The store for readers. Nobody writes to a `fixed` one."""

    def open_writer(self, *, lock_seconds: int | None = None) -> Writing:
        """Opens the store for writing; creates it if it is new, and upgrades an older layout.

        Its transactions raise `Unavailable` if they wait for other writers for `lock_seconds`.
        """

    def new_store(self) -> AbstractContextManager[Writing]:
        """A writer for a new store; a file appears only once the store is filled."""

    def replacement(self) -> AbstractContextManager[Writing]:
        """A writer for a copy, which replaces the store at the end; for `works_in_a_copy`."""

    def access_tables(self, *, fixed: bool = False) -> AccessTables:
        """The tables that change often, for the sidecar; off for a store that is `fixed`."""

    def check(self, depth: Depth, deadline: Deadline | None = None) -> Health:
        """The health of the store. Refuses `Depth.CONTENTS` without `checks_contents`."""

    def repair(self) -> None:
        """Rebuilds everything that is derived from records."""

    def back_up(self, file: Path) -> None:
        """Writes a copy of the store to a file, or refuses with what to do instead."""

    def restore(self, file: Path) -> None:
        """Replaces the store with a backup, or refuses with what to do instead."""
