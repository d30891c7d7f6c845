"""A large stream is replaced while grants are made and revoked, and the store is read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evidence.work import Deadline
from service.records.sqlite.check import check
from service.records.sqlite.writer import open_writer
from tests.helpers.server import ROOT
from tests.helpers.stdio import environment
from tests.helpers.worlds import House

pytestmark = pytest.mark.slow

ROWS = 30_000
#: Contract: a consent waits at most so long.
WAIT = 5


def rung(*words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "service", *words]
    return subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)


def write(path: Path, word: str, every: int) -> str:
    with path.open("w") as file:
        for n in range(0, ROWS, every):
            row = {"id": f"r{n}", "title": f"{word} {n}", "body": f"lantern {n} " * 20}
            file.write(json.dumps(row) + "\n")
    return str(path)


@pytest.mark.timeout(300)
def test_grants_are_made_and_revoked_while_a_large_stream_is_replaced(tmp_path: Path) -> None:
    house = House(tmp_path / "rung.db")
    store = ("--store", str(house.path))
    old, new = write(tmp_path / "old.ndjson", "Elm", 1), write(tmp_path / "new.ndjson", "Oak", 2)
    assert rung("import", old, "--connection", "c", "--stream", "rows", *store).wait() == 0
    api = house.api()
    seen, left = set(), []
    with rung("replace", "c/rows", new, "--yes", *store) as process:
        while process.poll() is None:
            deadline = Deadline.after(WAIT)
            grant_id, _ = house.grant(label="phone")
            house.revoke(grant_id)
            left.append(deadline.left())
            answer = api.mcp("aggregate", stream="rows", metric="count")["structuredContent"]
            seen.add(answer["data"]["value"])
        assert process.returncode == 0
    assert len(left) > 5 and min(left) > 0, left
    assert ROWS in seen and seen <= {ROWS, ROWS // 2}
    assert api.mcp("search", query="elm")["structuredContent"]["results"] == []
    assert check(house.path) == []
    with open_writer(house.path) as writer:
        rows = writer.db.execute("SELECT count(*), sum(deleted) FROM record").fetchone()
    assert rows == (ROWS, ROWS // 2)
