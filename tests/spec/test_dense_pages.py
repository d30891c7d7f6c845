"""A page with more values than may be parsed is read as shorter pages, and nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.helpers import stores
from tests.helpers.api import Api, path
from tests.helpers.operated import operated
from tests.helpers.shell import Shell
from tests.helpers.stores import Connection, Stream
from tests.helpers.worlds import SECRET

pytestmark = pytest.mark.slow

NUMBERS = list(range(40_000))
RECORDS = tuple({"id": f"r{number:02}", "numbers": NUMBERS} for number in range(30))
IDS = [str(record["id"]) for record in RECORDS]
DENSE = Stream("dense", {"id": {"type": "string"}, "numbers": {"type": "array"}}, RECORDS)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> stores.House:
    return stores.build([Connection("home", [DENSE], "archive")], tmp_path_factory.mktemp("dense"))


@pytest.fixture(scope="module")
def source(house: stores.House) -> Iterator[Api]:
    with operated(house.environment, workers=1, threads=2) as server:
        yield Api(server.url, house.grant()[1])


@pytest.fixture(scope="module")
def front(source: Api) -> Iterator[Api]:
    env = {"RUNG_UPSTREAM_URL": str(source.app), "RUNG_SECRET_KEY": SECRET}
    with operated(env, workers=1, threads=8) as server:
        yield Api(server.url, source.token)


@pytest.mark.parametrize("first", [{}, {"changes_since": "beginning"}], ids=["list", "changes"])
def test_every_record_comes_once_with_all_its_values(front: Api, first: dict[str, str]) -> None:
    ids = []
    answer = front.rest(path("dense", "records"), **first)
    while True:
        assert answer.status == 200, answer
        assert all(row["data"]["numbers"] == NUMBERS for row in answer.body["data"])
        ids += [row["id"] for row in answer.body["data"]]
        if not answer.body["has_more"]:
            break
        answer = front.rest(path("dense", "records"), cursor=answer.body["next_cursor"])
    assert sorted(ids) == IDS


def test_a_model_pages_through_them(front: Api) -> None:
    ids, more = [], dict[str, object]()
    while True:
        result = front.mcp("query_records", stream="dense", **more)
        page = result["structuredContent"]["data"]
        ids += [row["id"].rpartition(":")[2] for row in page["data"]]
        if not page["has_more"]:
            break
        more = {"cursor": page["next_cursor"]}
    assert sorted(ids) == IDS


def test_a_command_exports_them(source: Api, tmp_path: Path) -> None:
    shell = Shell({"RUNG_URL": str(source.app), "RUNG_TOKEN": str(source.token)})
    out = tmp_path / "dense.ndjson"
    shell.ok("export", "stream", "dense", "-o", str(out))
    found = [orjson.loads(line)["data"] for line in out.read_bytes().splitlines()]
    assert sorted(found, key=lambda record: str(record["id"])) == list(RECORDS)
