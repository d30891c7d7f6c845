"""Power fails right after a command has returned."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evidence.errors import Forbidden, Unauthenticated
from service.records.store import Store
from service.records.sqlite.reader import Reader
from tests.helpers import worlds
from tests.helpers.two_owners import letters
from tests.helpers.power_cut import Disk
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
    with reader.connection() as db:
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
