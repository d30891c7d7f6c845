"""A store that is replaced while it is served: by rename, or by a copy over the file."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from service.records.store import Store
from service.records.sqlite.writer import open_writer
from tests.helpers import worlds
from tests.helpers.api import Answer, Api
from tests.helpers.two_owners import letters
from tests.helpers.server import serving
from tests.helpers.worlds import House

THREADS = 4
#: Enough simultaneous requests for every thread of every worker to answer some.
ASKED = 48
NOTICED_SECONDS = 1.0
#: For a busy machine.
SLACK_SECONDS = 2.0


@contextmanager
def served(folder: Path, letters_there: int = 7) -> Iterator[tuple[House, Api]]:
    """A world whose store every thread of two workers has read, and a client for all of it."""
    folder.mkdir()
    house = worlds.build(letters("home", letters_there), folder)
    _, token = house.grant(label="reader")
    with serving("wsgi:app", house.environment, workers=2, threads=THREADS) as url:
        api = Api(url, token)
        assert {answer.status for answer in searches(api)} == {200}
        yield house, api


def searches(api: Api) -> list[Answer]:
    """The same search, sent many times at once."""
    with ThreadPoolExecutor(ASKED) as pool:
        return list(pool.map(lambda _: api.rest("/v1/search", q="lantern"), range(ASKED)))


def copied(source: Path, target: Path, statement: str | None = None) -> Path:
    """A copy of a store in one file, made by SQLite's backup or by a statement."""
    with closing(sqlite3.connect(source)) as db:
        if statement:
            db.execute(statement, (str(target),))
        else:
            with closing(sqlite3.connect(target)) as copy:
                db.backup(copy)
    return target


def in_time(found: Callable[[], bool]) -> None:
    """Fails unless it is found within the promised second."""
    end = time.monotonic() + NOTICED_SECONDS + SLACK_SECONDS
    while not found():
        assert time.monotonic() < end, "the new file was not noticed"


def test_revocations_of_a_file_renamed_over_the_store_reach_every_thread(tmp_path: Path) -> None:
    with served(tmp_path / "served") as (house, api):
        new = House(copied(house.path, tmp_path / "new.db"))
        with closing(sqlite3.connect(new.path)) as db:
            (grant_id,) = db.execute('SELECT grant_id FROM "grant"').fetchone()
        new.revoke(grant_id)
        called = api.mcp("search", query="lantern")
        assert not called.get("isError")
        os.replace(new.path, house.path)
        in_time(lambda: api.rest("/v1/search", q="lantern").status != 200)
        assert {answer.error["code"] for answer in searches(api)} == {"grant_revoked"}


def test_a_store_renamed_over_another_is_served_whole(tmp_path: Path) -> None:
    """The new store inherits the log of the old one, which records the old size."""
    with served(tmp_path / "served") as (house, old):
        house.grant(label="written while it is served")
        (tmp_path / "new").mkdir()
        new = worlds.build(letters("home", 300), tmp_path / "new")
        _, token = new.grant()
        os.replace(new.path, house.path)
        api = Api(old.app, token)
        in_time(lambda: api.rest("/v1/search", q="lantern").status == 200)
        assert {found.body["meta"]["count"] for found in searches(api)} == {300}
        assert api.get("/readyz").status == 200


@pytest.mark.parametrize("statement", [None, "VACUUM INTO ?"], ids=["backup", "vacuum"])
@pytest.mark.parametrize("count", [300, 3], ids=["larger", "smaller"])
def test_a_store_copied_over_another_answers_without_a_writer(
    tmp_path: Path, statement: str | None, count: int
) -> None:
    (tmp_path / "new").mkdir()
    made = worlds.build(letters("home", count), tmp_path / "new")
    _, token = made.grant()
    new = copied(made.path, tmp_path / "new.db", statement)
    with served(tmp_path / "served", 80) as (house, old):
        house.grant(label="written while it is served")
        shutil.copyfile(new, house.path)
        api = Api(old.app, token)
        in_time(lambda: api.rest("/v1/search", q="lantern").status == 200)
        in_time(lambda: {answer.status for answer in searches(old)} == {401})
        assert {found.body["meta"]["count"] for found in searches(api)} == {count}
        assert api.get("/readyz").status == 200


def test_a_store_copied_over_another_takes_revocations(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    new = worlds.build(letters("home", 300), tmp_path / "new")
    grant_id, token = new.grant()
    with served(tmp_path / "served") as (house, old):
        house.grant(label="written while it is served")
        shutil.copyfile(new.path, house.path)
        command = [sys.executable, "-m", "service", "grant", "revoke", grant_id]
        subprocess.run([*command, "--store", str(house.path)], check=True)
        api = Api(old.app, token)
        in_time(lambda: {answer.status for answer in searches(api)}.isdisjoint({200, 503}))
        assert {answer.error["code"] for answer in searches(api)} == {"grant_revoked"}
    with closing(sqlite3.connect(house.path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_secret_of_a_replaced_store_is_forgotten(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.db", "two.db")]
    for path in paths:
        open_writer(path).close()
    store, other = map(Store, paths)
    old, new = store.secret(), other.secret()
    other.reader.close()
    os.replace(paths[1], paths[0])
    assert old != new and store.secret() == new
    store.reader.close()
