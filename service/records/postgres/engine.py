"""The engine of a store in a PostgreSQL database."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evidence.errors import EvidenceError, InvalidRequest
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.access.port import AccessTables
from service.extras import install_command
from service.place import Database
from service.records.engine.engine import Engine, Reader
from service.records.engine.health import EMPTY, Depth, Health, Verdict

if TYPE_CHECKING:
    from service.records.postgres.writer import Writer

_UNDEFINED_TABLE: Final = "42P01"
_NOT_INSTALLED: Final = (
    f"A store in PostgreSQL needs psycopg. Install it with: {install_command('postgres')}"
)
_BACK_UP: Final = "Use pg_dump, or copy the store into a file: rung store copy URL FILE."
_RESTORE: Final = "Use pg_restore, or copy a file into an empty database: rung store copy FILE URL."
_CHECK: Final = (
    "Check its tables and indexes with pg_amcheck, or rebuild derived data with --repair."
)


@dataclass(frozen=True, slots=True)
class PostgresEngine:
    """See `engine.Engine`. Imports what a method needs when it is called."""

    location: Database

    checks_contents = works_in_a_copy = infers_replacements = False
    has_secret_location = True

    def open_reader(self, *, fixed: bool = False) -> Reader:
        with _installed():
            from service.records.postgres.reader import Reader as DatabaseReader
        return DatabaseReader(self.location.url, self.location.replicas)

    def open_writer(self, *, lock_seconds: int | None = None) -> "Writer":
        with _installed():
            from service.records.postgres.writer import open_writer
        return open_writer(self.location.url, lock_seconds=lock_seconds)

    def new_store(self) -> AbstractContextManager["Writer"]:
        return self.open_writer()

    def replacement(self) -> AbstractContextManager["Writer"]:
        raise NotImplementedError

    def access_tables(self, *, fixed: bool = False) -> AccessTables:
        with _installed():
            from service.records.postgres.access import AccessPool
        return AccessPool(self.location.url)

    def check(self, depth: Depth, deadline: Deadline | None = None) -> Health:
        if depth is Depth.HEADER:
            return Health(Verdict(""))  # it may start at any moment
        if depth is Depth.CONTENTS:
            raise self._refusal(_CHECK)
        try:
            with closing(self.open_reader()) as reader:
                with reader.snapshot(BUDGETS.doctor_seconds) as snapshot:
                    snapshot.generation()  # a snapshot alone asks nothing
            privacy = self._privacy()
        except EvidenceError as error:
            is_empty = getattr(error.__cause__, "sqlstate", "") == _UNDEFINED_TABLE
            return Health(Verdict(error.message, EMPTY if is_empty else "database-unreadable"))
        return Health(Verdict(f"{self.location} is reachable and contains a store"), privacy)

    def _privacy(self) -> Verdict:
        from service.records.postgres.privacy import SECOND_ROLE, walls

        bound, walled = walls(self.location.url)
        if bound and walled:
            return Verdict("the role can read only the connections that a request names")
        problem = "role-owns-tables" if bound else "role-sees-everything"
        return Verdict("", problem, {"second_role": SECOND_ROLE})

    def repair(self) -> None:
        with self.open_writer() as writer:
            writer.rebuild()
            writer.finish()

    def back_up(self, file: Path) -> None:
        raise self._refusal(_BACK_UP)

    def restore(self, file: Path) -> None:
        raise self._refusal(_RESTORE)

    def _refusal(self, instead: str) -> InvalidRequest:
        return InvalidRequest(f"{self.location} is a database. {instead}")


@contextmanager
def _installed() -> Iterator[None]:
    """Explains how to install what an import lacks."""
    try:
        yield
    except ImportError as error:
        raise InvalidRequest(_NOT_INSTALLED) from error


ENGINE: Final[Callable[[Database], Engine]] = PostgresEngine
