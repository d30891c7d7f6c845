"""A store that cannot be read: the advice works."""

import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evidence.errors import Unavailable
from service.records.engine.health import Depth
from service.records.opening import engine_of
from service.records.store import Store
from tests.helpers import worlds
from tests.helpers.shell import Shell
from tests.helpers.two_owners import letters

STRANGER = 65_534


def test_a_store_of_a_newer_version_asks_for_that_version(tmp_path: Path) -> None:
    house = worlds.build(letters("home", 2), tmp_path)
    assert isinstance(house.path, Path)
    token = house.grant()[1]
    with sqlite3.connect(house.path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(Unavailable) as refused:
        Store(house.path).open(token)
    said = [refused.value.message, engine_of(house.path).check(Depth.HEADER).state.message]
    said.append(Shell({"RUNG_STORE": str(house.path)}).run("doctor").stdout)
    assert all("Install " in text and "or a later one" in text for text in said), said
    assert not any("rung stats" in text for text in said)


def as_stranger(ask: Callable[[], str]) -> str:
    """What `ask` returns in a process that may not write where root may."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(STRANGER)
            os.write(writing, ask().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_a_store_in_a_folder_that_cannot_be_written_is_not_called_absent() -> None:
    with TemporaryDirectory() as folder:
        house = worlds.build(letters("home", 2), Path(folder))
        assert isinstance(house.path, Path)
        token = house.grant()[1]
        house.path.chmod(0o444)
        Path(folder).chmod(0o555)

        def ask() -> str:
            try:
                Store(Path(str(house.path))).open(token)
            except Unavailable as error:
                return error.message
            return "opened"

        try:
            said = as_stranger(ask)
        finally:
            Path(folder).chmod(0o755)
    assert "folder writable" in said and "rung import" not in said, said
