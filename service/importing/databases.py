"""Opens SQLite databases of other programs, read-only."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.importing.source import Repair, Source
from service.importing.tree import File


def tables_of(file: File) -> set[str]:
    """The names of the tables of a database; empty if it cannot be read."""
    with suppress(InvalidRequest), file.open() as opened:
        source = Source(file.name, "", opened, Repair(), tree=file.tree)
        with open_database(source) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {name for (name,) in rows}
    return set()


@contextmanager
def open_database(source: Source) -> Iterator[sqlite3.Connection]:
    """A connection to the database in a file; raises `InvalidRequest` if it cannot be read."""
    file = source.tree.files[source.name]
    if file.in_place:
        log = Path(f"{file.path}-wal")
        mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
        connection = sqlite3.connect(f"file:{quote(os.fsencode(file.path))}?{mode}", uri=True)
    else:
        source.file.seek(0)
        content = source.file.read(BUDGETS.import_attachment_bytes + 1)
        if len(content) > BUDGETS.import_attachment_bytes:
            large = f"{source.name} is too large to read inside an archive."
            raise InvalidRequest(f"{large} Unpack the archive first.")
        connection = sqlite3.connect(":memory:")
        # A database in memory has no write-ahead log: its header must not ask for one.
        connection.deserialize(content[:18] + b"\x01\x01" + content[20:])
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, BUDGETS.import_row_bytes)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    with closing(connection):
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            raise InvalidRequest(f"{source.name} cannot be read: {error}.") from error
