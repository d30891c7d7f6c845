"""Full-text indexes that have lost words: a search over them must not claim to be complete."""

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evidence.limits import BUDGETS
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.two_owners import letters
from tests.helpers.server import ROOT, serving
from tests.helpers.shell import Shell
from tests.helpers.worlds import House

RECORDS = 1_000
SLACK_SECONDS = 20
COMMAND = "rung check --repair"
#: Damage to the full-text table: an empty structure, pages of zeros, no path to a word.
SILENT = {
    "structure": "UPDATE fts_data SET block = zeroblob(length(block)) WHERE id = 10",
    "leaves": "UPDATE fts_data SET block = zeroblob(length(block)) WHERE id > 10",
    "words": "DELETE FROM fts_idx",
}
#: Damage that SQLite itself reports.
LOUD = {
    "everything": "DELETE FROM fts_data",
    "pages": "DELETE FROM fts_data WHERE id > 10",
    "cut": "UPDATE fts_data SET block = substr(block, 1, 100) WHERE id > 10",
    "options": "DELETE FROM fts_config",
    "table": "DROP TABLE fts_data",
}
DAMAGES = SILENT | LOUD


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(letters("home", RECORDS), tmp_path_factory.mktemp("whole"))


@pytest.fixture
def house(whole: House, tmp_path: Path) -> House:
    """A store of its own for each test."""
    shutil.copyfile(whole.path, tmp_path / "rung.db")
    return House(tmp_path / "rung.db")


def damage(house: House, sql: str) -> None:
    with closing(sqlite3.connect(house.path)) as db, db:
        db.execute(sql)


def reindex(house: House) -> None:
    words = ("check", "--repair", "--yes", "--store", str(house.path))
    subprocess.run([sys.executable, "-m", "service", *words], cwd=ROOT, check=True)


def await_status(api: Api, status: int) -> None:
    """Returns once readiness has this status, which may take an interval between samples."""
    end = time.monotonic() + BUDGETS.index_check_seconds + SLACK_SECONDS
    while api.get("/readyz").status != status:
        assert time.monotonic() < end, api.get("/readyz")
        time.sleep(0.05)


def refusals(api: Api) -> Iterator[str]:
    """The errors of searches for a word that exists and one that does not, on each surface."""
    for query in (f"lantern {RECORDS - 1}", "zebra"):
        answer = api.rest("/v1/search", q=query)
        assert answer.status == 503 and answer.error["code"] == "store_unavailable"
        yield answer.error["message"]
        result = api.mcp("search", query=query)
        assert result["isError"] is True
        yield result["structuredContent"]["error"]["message"]


def counts(api: Api) -> object:
    """The counts of records with both words and with at least one; every letter has the first."""
    return api.rest("/v1/search", q=f"lantern {RECORDS - 1}").body["meta"]["counts"]


@pytest.mark.parametrize("sql", DAMAGES.values(), ids=DAMAGES)
def test_a_search_over_a_damaged_index_is_an_error_with_the_fix(house: House, sql: str) -> None:
    _, token = house.grant()
    damage(house, sql)
    api = Api(house.application(), token)
    ready = api.get("/readyz")
    assert ready.status == 503 and COMMAND in ready.body["reason"]
    assert all(COMMAND in message for message in refusals(api))
    listed = api.rest("/v1/streams/letters/records", limit=3)
    assert listed.status == 200 and len(listed.body["data"]) == 3
    Shell(house.environment).ok("check", "--repair", "--yes")
    api = Api(house.application(), token)
    assert api.get("/readyz").status == 200
    assert counts(api) == {"all": 1, "some": RECORDS, "accuracy": "exact"}


def test_damage_and_repair_are_noticed_while_serving(house: House) -> None:
    _, token = house.grant()
    with serving("wsgi:app", house.environment) as url:
        api = Api(url, token)
        assert api.get("/readyz").status == 200
        damage(house, SILENT["words"])
        await_status(api, 503)
        assert all(COMMAND in message for message in refusals(api))
        reindex(house)
        await_status(api, 200)
        assert counts(api) == {"all": 1, "some": RECORDS, "accuracy": "exact"}
