"""An older backup is restored: bookmarks of changes that it lacks are gone, all others go on."""

from pathlib import Path

import pytest

from service.records.sqlite import backup
from tests.helpers import worlds
from tests.helpers.places import ENGINE
from tests.helpers.reading import printed_calls
from tests.helpers.two_owners import letters
from tests.helpers.worlds import Api, House

RECORDS = "/v1/streams/letters/records"

pytestmark = pytest.mark.skipif(ENGINE != "sqlite", reason="see tests/postgres/test_failover.py")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return worlds.build(letters("home", 5), tmp_path)


def add(house: House, *keys: str) -> None:
    house.add("home", *(worlds.row("letters", key, body="one more lantern") for key in keys))


def follow(api: Api, bookmark: str) -> tuple[list[str], str]:
    body = api.rest(RECORDS, changes_since=bookmark, limit=100).body
    return worlds.keys_of(body["data"]), body["next_changes_since"]


def test_a_bookmark_of_a_lost_commit_is_gone_however_many_commits_follow(
    house: House, tmp_path: Path
) -> None:
    api = house.api()
    _, before = follow(api, "beginning")
    backup.back_up(house.path, tmp_path / "backup.db")
    add(house, "lost", "lost too")
    keys, lost = follow(api, before)
    assert keys == ["lost", "lost too"]
    first = api.rest(RECORDS, changes_since=before, limit=1).body
    backup.restore(tmp_path / "backup.db", house.path)
    for number in range(4):
        for asked in (
            {"changes_since": lost},
            {"changes_since": first["next_changes_since"]},
            {"cursor": first["next_cursor"]},
        ):
            gone = api.rest(RECORDS, **asked)
            assert (gone.status, gone.error["code"]) == (410, "cursor_expired"), asked
            assert "changes_since=beginning" in gone.error["hint"]
        add(house, f"new {number}")
    assert follow(api, before)[0] == [f"new {number}" for number in range(4)]


def test_a_refusal_prints_the_call_that_starts_over(house: House, tmp_path: Path) -> None:
    api = house.api()
    backup.back_up(house.path, tmp_path / "backup.db")
    add(house, "lost")
    _, lost = follow(api, "beginning")
    backup.restore(tmp_path / "backup.db", house.path)
    add(house, "new")
    refused = api.mcp("query_records", stream="letters", changes_since=lost)
    assert refused["isError"] and "cursor_expired" in refused["content"][0]["text"]
    (call,) = printed_calls(refused["content"][0]["text"])
    assert call.args == {"stream": "letters", "changes_since": "beginning"}
    again = api.mcp(call.tool, **call.args)["structuredContent"]["data"]
    assert worlds.keys_of(again["data"])[-1] == "new"


def test_a_bookmark_goes_on_through_a_backup_that_has_its_commit(
    house: House, tmp_path: Path
) -> None:
    api = house.api()
    add(house, "one", "two")
    body = api.rest(RECORDS, changes_since="beginning", limit=6).body
    backup.back_up(house.path, tmp_path / "backup.db")
    backup.restore(tmp_path / "backup.db", house.path)
    assert follow(api, body["next_changes_since"])[0] == ["two"]
    backup.repair(house.path)
    assert follow(api, body["next_changes_since"])[0] == ["two"]


def test_the_bookmark_of_an_empty_feed_is_never_gone(house: House, tmp_path: Path) -> None:
    api = house.api({"connection_id": "home", "resources": ["new"]})
    backup.back_up(house.path, tmp_path / "backup.db")
    add(house, "hidden")
    keys, bookmark = follow(api, "beginning")
    assert keys == []
    backup.restore(tmp_path / "backup.db", house.path)
    add(house, "new")
    assert follow(api, bookmark)[0] == ["new"]
