"""A large stream is changed as a whole while grants are made and revoked, and the store is read."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from evidence.errors import Unavailable
from evidence.work import Deadline
from service.records.sqlite.writer import open_writer
from tests.helpers.api import Api
from tests.helpers.places import faults
from tests.helpers.server import ROOT
from tests.helpers.stdio import environment
from tests.helpers.worlds import House

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

T = TypeVar("T")

ROWS = 30_000
#: Contract: a consent waits at most so long.
WAIT = 5


def rung(house: House, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "service", *words, "--store", str(house.path)]
    return subprocess.Popen(command, cwd=ROOT, env=environment())


def write(path: Path, word: str, numbers: range) -> str:
    with path.open("w") as file:
        for n in numbers:
            row = {"id": f"r{n}", "title": f"{word} {n}", "body": f"lantern {n} " * 20}
            file.write(json.dumps(row) + "\n")
    return str(path)


def retried(action: Callable[[], T]) -> T:
    """What a person does who is told that the store was replaced at this very moment."""
    try:
        return action()
    except Unavailable as error:
        assert "Run the command again" in error.message
        return action()


def hits(api: Api, word: str) -> list[str]:
    return [hit["id"] for hit in api.mcp("search", query=word)["structuredContent"]["results"]]


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path / "rung.db")
    old = write(tmp_path / "old.ndjson", "Elm", range(ROWS))
    assert rung(house, "import", old, "--connection", "c", "--stream", "rows").wait() == 0
    return house


def grants_beside(house: House, api: Api, *words: str) -> set[int]:
    """Makes and revokes grants while a command runs; the counts that readers are shown."""
    seen, left, made = set(), [], []
    with rung(house, *words) as process:
        while process.poll() is None:
            deadline = Deadline.after(WAIT)
            grant_id, token = retried(lambda: house.grant(label="phone"))
            retried(lambda: house.revoke(grant_id))
            left.append(deadline.left())
            made.append(token)
            answer = api.mcp("aggregate", stream="rows", metric="count")["structuredContent"]
            seen.add(answer["data"]["value"])
        assert process.returncode == 0
    assert len(left) > 5 and min(left) > 0, left
    for token in made:
        assert Api(house.app, token).rest("/v1/streams").body["error"]["code"] == "grant_revoked"
    assert faults(house.path) == []
    return seen


def test_grants_are_made_and_revoked_while_a_large_stream_is_replaced(house: House) -> None:
    api = house.api()
    new = write(house.path.with_name("new.ndjson"), "Oak", range(0, ROWS, 2))
    seen = grants_beside(house, api, "replace", "c/rows", new, "--yes")
    assert ROWS in seen and seen <= {ROWS, ROWS // 2}
    assert not hits(api, "elm")
    with open_writer(house.path) as writer:
        rows = writer.db.execute("SELECT count(*), sum(deleted) FROM record").fetchone()
    assert rows == (ROWS, ROWS // 2)


def test_grants_are_made_and_revoked_while_a_large_file_comes_in_whole_or_not_at_all(
    house: House,
) -> None:
    api = house.api()
    new = write(house.path.with_name("new.ndjson"), "Oak", range(ROWS, 2 * ROWS))
    into = ("--connection", "c", "--stream", "rows", "--strict")
    assert grants_beside(house, api, "import", new, *into) <= {ROWS, 2 * ROWS}
    assert hits(api, "oak") and hits(api, "elm")


def test_grants_are_made_and_revoked_while_a_large_file_is_tried(house: House) -> None:
    api = house.api()
    new = write(house.path.with_name("new.ndjson"), "Oak", range(ROWS, 2 * ROWS))
    into = ("--connection", "c", "--stream", "rows", "--dry-run")
    assert grants_beside(house, api, "import", new, *into) == {ROWS}
    assert hits(api, "elm") and not hits(api, "oak")


def test_grants_are_made_and_revoked_while_a_large_stream_is_indexed_anew(house: House) -> None:
    api = house.api()
    with open_writer(house.path) as writer:
        document = {"streams": [one.document for one in writer.manifests("c")]}
    document["streams"][0]["query"]["search"]["lexical_fields"] = ["body"]
    manifest = house.path.with_name("manifest.json")
    manifest.write_text(json.dumps(document))
    row = house.path.with_name("row.ndjson")
    row.write_text('{"id": "one more", "title": "Elm", "body": "beech"}\n')
    into = ("--connection", "c", "--stream", "rows", "--manifest", str(manifest))
    assert grants_beside(house, api, "import", str(row), *into) <= {ROWS, ROWS + 1}
    assert hits(api, "beech") and not hits(api, "elm")


def test_grants_are_made_and_revoked_while_the_indexes_are_made_anew(house: House) -> None:
    api = house.api()
    house.change("UPDATE stream SET records = records + 1")
    assert grants_beside(house, api, "check", "--repair", "--yes") <= {ROWS, ROWS + 1}


def test_rows_that_come_in_while_a_copy_is_changed_are_not_lost(house: House) -> None:
    api = house.api()
    house.change("UPDATE stream SET records = records + 1")
    row = house.path.with_name("row.ndjson")
    row.write_text('{"id": "one more", "title": "Oak", "body": "beech"}\n')
    with rung(house, "check", "--repair", "--yes") as process:
        while not house.path.with_name(f".{house.path.name}.copy").exists():
            assert process.poll() is None
        into = ("import", str(row), "--connection", "c", "--stream", "rows")
        assert rung(house, *into).wait() == 0
        assert process.wait() == 1
    assert hits(api, "beech")
    assert not house.path.with_name(f".{house.path.name}.copy").exists()
