"""Where tests keep their stores: in files, or in databases with TEST_ENGINE=postgres.

The server is that of TEST_DATABASE_URL, or the one on this machine. Each store is its own database,
copied from one that already has the tables. All are dropped at the end.
"""

import atexit
import os
import secrets
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from service.place import Database, Place
from service.records.engine.health import Depth
from service.records.opening import engine_of

ENGINE = os.environ.get("TEST_ENGINE", "sqlite")
SERVER = os.environ.get("TEST_DATABASE_URL") or "postgresql://127.0.0.1/postgres"
#: Begins the names of databases and roles, which several runs of tests make on one server.
RUN = f"rung_test_{os.getpid()}_{secrets.token_hex(3)}"
_made: list[str] = []


def new_place(folder: Path) -> Place:
    """The place for a new store of the engine that is tested."""
    return PLACES[ENGINE](folder)


def new_database() -> Database:
    """A new database with the tables of a store."""
    return _database(_template())


def empty_database() -> Database:
    """A new database without tables."""
    return _database("template0")


def _database(template: str) -> Database:
    name = f"{RUN}_{len(_made)}"
    _run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    _made.append(name)
    return Database(urlunsplit(urlsplit(SERVER)._replace(path=f"/{name}")))


@lru_cache(maxsize=1)
def _template() -> str:
    from service.records.postgres.writer import open_writer

    atexit.register(_drop)
    found = empty_database()
    open_writer(found.url).close()
    return urlsplit(found.url).path.strip("/")


def _run(statement: str) -> None:
    import psycopg

    with psycopg.connect(SERVER, autocommit=True) as db:
        db.execute(statement.encode())


def _drop() -> None:
    for name in reversed(_made):
        _run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def faults(location: Place) -> list[str]:
    """What a check of the whole store finds; empty if it is sound."""
    return engine_of(location).check(Depth.CONTENTS).faults


#: Where each engine that can be tested keeps a new store, by its name in TEST_ENGINE.
PLACES: dict[str, Callable[[Path], Place]] = {
    "sqlite": lambda folder: folder / "rung.db",
    "postgres": lambda folder: new_database(),
}
