"""The engine of a store in an SQLite file."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evidence.work import Deadline
from service.access.port import AccessTables
from service.records.engine.engine import Engine, Reader
from service.records.engine.health import Depth, Health

if TYPE_CHECKING:
    from service.records.sqlite.writer import Writer


@dataclass(frozen=True, slots=True)
class SqliteEngine:
    """See `engine.Engine`. Imports what a method needs when it is called."""

    path: Path

    checks_contents = works_in_a_copy = infers_replacements = True
    has_secret_location = False

    def open_reader(self, *, fixed: bool = False) -> Reader:
        from service.records.sqlite.reader import Reader as FileReader

        return FileReader(self.path, fixed=fixed)

    def open_writer(self, *, lock_seconds: int | None = None) -> "Writer":
        from service.records.sqlite.writer import open_writer

        return open_writer(self.path, lock_seconds=lock_seconds)

    def new_store(self) -> AbstractContextManager["Writer"]:
        from service.records.sqlite.backup import new_file

        return new_file(self.path)

    def replacement(self) -> AbstractContextManager["Writer"]:
        from service.records.sqlite.backup import replacement

        return replacement(self.path, self.path)

    def access_tables(self, *, fixed: bool = False) -> AccessTables:
        from service.records.sqlite.access import AccessFile

        return AccessFile(self.path, fixed=fixed)

    def check(self, depth: Depth, deadline: Deadline | None = None) -> Health:
        from service.records.sqlite.check import check

        return check(self.path, depth, deadline)

    def repair(self) -> None:
        from service.records.sqlite.backup import repair

        repair(self.path)

    def back_up(self, file: Path) -> None:
        from service.records.sqlite.backup import back_up

        back_up(self.path, file)

    def restore(self, file: Path) -> None:
        from service.records.sqlite.backup import restore

        restore(file, self.path)


ENGINE: Final[Callable[[Path], Engine]] = SqliteEngine
