"""Power fails right after a command has returned, or at any write to the disk."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evidence.errors import Forbidden, Unauthenticated
from evidence.fold import FOLD_VERSION
from service.records.store import Store
from service.records.sqlite.reader import Reader
from service.records.sqlite.writer import open_writer
from tests.helpers import worlds
from tests.helpers.places import faults
from tests.helpers.two_owners import letters
from tests.helpers.power_cut import Disk
from tests.helpers.scale import times
from tests.helpers.worlds import House

ROWS = b"".join(
    json.dumps({"id": f"n{number}", "title": f"Owl {number}"}).encode() + b"\n"
    for number in range(50)
)
IMPORT = ("import", "-", "--format", "ndjson", "--connection", "late", "--stream", "notes")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A house that is being read, so that nobody can move its log into the file."""
    (tmp_path / "house").mkdir()
    made = worlds.build(letters("home", 3), tmp_path / "house")
    made.grant(label="laptop")
    reader = Reader(made.path)
    with reader.connection(seconds=600) as db:  # the deadline also holds in the test
        db.execute("SELECT count(*) FROM record").fetchone()
        yield made
    reader.close()


def test_a_revocation_survives(house: House, tmp_path: Path) -> None:
    _, token = house.grant(label="phone")
    disk = Disk(tmp_path / "disk", house.path)
    Store(disk.after()).open(token)
    disk.run("grant", "revoke", "phone")
    with pytest.raises((Forbidden, Unauthenticated), match="revoked"):
        Store(disk.after()).open(token)


def test_an_import_survives(house: House, tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk", house.path)
    disk.run(*IMPORT, stdin=ROWS)
    with Reader(disk.after()).connection() as db:
        assert db.execute("SELECT count(*) FROM record").fetchone() == (53,)


def test_a_new_store_survives_with_its_folders(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk", tmp_path / "new" / "deep" / "rung.db")
    disk.run(*IMPORT, stdin=ROWS)
    with Reader(disk.after()).connection() as db:
        assert db.execute("SELECT count(*) FROM record").fetchone() == (50,)
    made = tmp_path / "new" / "deep"
    assert {str(made), str(made.parent), str(tmp_path)} <= set(disk.folders())


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, fold",
    [(IMPORT, FOLD_VERSION), (("grant", "revoke", "phone"), FOLD_VERSION), (("stats",), "0")],
    ids=["an import", "a revocation", "an upgrade"],
)
def test_a_store_survives_a_cut_at_every_write(
    tmp_path: Path,
    words: tuple[str, ...],
    fold: str,
    record_property: Callable[[str, object], None],
) -> None:
    (tmp_path / "house").mkdir()
    house = worlds.build(letters("home", 3), tmp_path / "house")
    assert isinstance(house.path, Path)
    token, _ = house.grant(label="laptop")[1], house.grant(label="phone")
    house.change("UPDATE meta SET value = ? WHERE key = 'fold_version'", fold)
    step, cuts, done = times(1, 3), 0, False
    while not done:
        cuts += step
        folder = tmp_path / f"cut{cuts}"
        shutil.copytree(house.path.parent, folder / "house")
        disk = Disk(folder / "disk", folder / "house" / house.path.name)
        done = disk.run(*words, stdin=ROWS, cut=cuts)
        path = disk.after()
        with open_writer(path) as writer:
            counts = {one.connection_id: one.records for one in writer.counts()}
        assert counts["home"] == 3 and counts.get("late", 0) in (0, 50), cuts
        assert faults(path) == [], cuts
        Store(path).open(token)
    record_property("power cuts", cuts // step - 1)
