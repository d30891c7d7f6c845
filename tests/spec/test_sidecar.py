"""The sidecar: tables that change often, next to a store that is being written to."""

import multiprocessing
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from evidence.errors import Unavailable
from service.records.sidecar import open_sidecar
from service.access.sidecar import Sidecar
from service.place import Place
from service.records.opening import open_writer
from tests.helpers.places import new_place

ADD = (
    "INSERT INTO access_use (day, grant_id, operation, stream, count) VALUES (?, ?, ?, ?, 1)"
    " ON CONFLICT (day, grant_id, operation, stream) DO UPDATE SET count = access_use.count + 1"
)
ROW = ("2026-05-02", "grt_1", "search", "mail/messages")
PROCESSES, EACH = 4, 25


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = new_place(tmp_path)
    open_writer(found).close()
    return found


def count(sidecar: Sidecar) -> int:
    with sidecar.transaction() as rows:
        found = rows("SELECT count FROM access_use")
    return int(found[0][0]) if found else 0


def _add(place: Place) -> None:
    sidecar = open_sidecar(place)
    for _ in range(EACH):
        with sidecar.transaction() as rows:
            rows(ADD, *ROW)
    sidecar.close()


def test_processes_that_write_at_once_lose_nothing(place: Place) -> None:
    spawn = multiprocessing.get_context("spawn")
    started = [spawn.Process(target=_add, args=(place,)) for _ in range(PROCESSES)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert count(open_sidecar(place)) == PROCESSES * EACH


def test_a_transaction_that_fails_writes_nothing(place: Place) -> None:
    sidecar = open_sidecar(place)
    with pytest.raises(ZeroDivisionError), sidecar.transaction() as rows:
        rows(ADD, *ROW)
        raise ZeroDivisionError
    assert count(sidecar) == 0


def test_it_is_written_while_an_import_has_the_store(place: Place) -> None:
    sidecar = open_sidecar(place)
    with open_writer(place) as writer, writer.transaction():
        writer.save_connection("mail", None, None)
        with sidecar.transaction() as rows:
            rows(ADD, *ROW)
        assert count(open_sidecar(place)) == 1


def test_a_file_that_was_removed_is_made_again(tmp_path: Path) -> None:
    place = tmp_path / "rung.db"
    open_writer(place).close()
    sidecar = open_sidecar(place)
    with sidecar.transaction() as rows:
        rows(ADD, *ROW)
    for name in ("", "-wal", "-shm"):
        Path(f"{place}.access{name}").unlink(missing_ok=True)
    assert count(sidecar) == 0
    mode = stat.S_IMODE(os.stat(f"{place}.access").st_mode)
    assert mode == stat.S_IMODE(place.stat().st_mode) == 0o600


@pytest.mark.parametrize("why", ["folder", "foreign", "newer", "fixed"])
def test_it_is_off_and_gives_the_reason(tmp_path: Path, why: str) -> None:
    place = tmp_path / "rung.db"
    open_writer(place).close()
    path = Path(f"{place}.access")
    if why == "folder":
        path.mkdir()
    elif why == "foreign":
        path.write_bytes(b"not a database at all" * 100)
    elif why == "newer":
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA user_version = 99")
    with pytest.raises(Unavailable, match="cannot be written") as refused:
        count(open_sidecar(place, fixed=why == "fixed"))
    assert refused.value.code == "access_off"
