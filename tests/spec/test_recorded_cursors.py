"""Cursors that an older version issued still open, and a new argument ends none."""

import json
from pathlib import Path
from typing import Any

import pytest

from evidence.errors import InvalidRequest
from service.keys import Identity, Sealer, identity
from service.operations import OPERATIONS
from service.ports import SearchQuery
from service.ports.request import optional
from service.sources.remote.search import ListPosition, opened
from tests.helpers import worlds
from tests.helpers.api import Api

#: Recorded before cursors were bound to the arguments that differ from their default.
RECORDED = json.loads((Path(__file__).parents[1] / "data" / "cursors.json").read_text("utf-8"))
GRANT_ID = "grt_recorded"
REQUESTS = {operation.name: operation.request for operation in OPERATIONS}
SEALER = Sealer(worlds.SECRET.encode())


class WiderSearch(SearchQuery, operation="search"):
    """A search with one more argument, as a later version may have it."""

    language: str = optional(None, "any")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    house = worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("recorded"))
    grant_id, token = house.grant()
    house.change('UPDATE "grant" SET grant_id = ? WHERE grant_id = ?', GRANT_ID, grant_id)
    return Api(house.app, token)


def keys_of(body: dict[str, Any]) -> list[Any]:
    rows = body.get("results") or body["data"].get("data") or body["data"]["groups"]
    return [row.get("id", row.get("key")) for row in rows]


@pytest.mark.parametrize("call", RECORDED["calls"], ids=lambda call: str(call["args"]))
def test_a_recorded_cursor_opens_the_same_page(api: Api, call: dict[str, Any]) -> None:
    answer = api.mcp(call["tool"], **call["args"], cursor=call["cursor"])
    assert keys_of(answer["structuredContent"]) == call["next"]
    other = {**call["args"], "connection_id": "mail-work"}
    refused = api.mcp(call["tool"], **other, cursor=call["cursor"])
    assert refused["structuredContent"]["error"]["code"] == "invalid_cursor"


def bound(entry: dict[str, Any]) -> Identity:
    request = REQUESTS[entry["operation"]].of(entry["args"])
    return identity(request, *entry["context"], further=entry["further"])


@pytest.mark.parametrize("entry", RECORDED["sealed"], ids=lambda entry: entry["context"][0])
def test_recorded_bookmarks_and_cursors_of_packages_open(entry: dict[str, Any]) -> None:
    assert SEALER.open(entry["cursor"], bound=bound(entry)) == entry["payload"]
    with pytest.raises(InvalidRequest):
        SEALER.open(entry["cursor"], bound=bound({**entry, "further": ["other"]}))


def test_a_bookmark_of_a_store_that_was_once_restored_opens(tmp_path: Path) -> None:
    (entry,) = RECORDED["restored"]
    house = worlds.build(worlds.two_mailboxes(), tmp_path)
    grant_id, token = house.grant()
    house.change('UPDATE "grant" SET grant_id = ? WHERE grant_id = ?', GRANT_ID, grant_id)
    house.change("INSERT INTO meta (key, value) VALUES ('history', ?)", entry["history"])
    answer = Api(house.app, token).mcp(
        "query_records", **entry["args"], changes_since=entry["bookmark"]
    )
    error = answer["structuredContent"].get("error", {})
    assert error.get("code") != "invalid_cursor", answer


def test_a_recorded_cursor_of_a_remote_list_opens() -> None:
    (entry,) = RECORDED["remote"]
    query = SearchQuery(**entry["args"], cursor=entry["cursor"])
    assert opened(query) == ListPosition(*entry["position"])


def test_a_new_argument_with_its_default_ends_no_cursor() -> None:
    cursor = SEALER.seal([1], bound=identity(SearchQuery("lantern", words="all"), "hits"))
    (entry,) = (entry for entry in RECORDED["sealed"] if entry["operation"] == "search")
    old = {**entry["args"], "streams": tuple(entry["args"]["streams"])}
    assert SEALER.open(cursor, bound=identity(WiderSearch("lantern", words="all"), "hits")) == [1]
    assert SEALER.open(entry["cursor"], bound=identity(WiderSearch(**old), *entry["context"]))
    for request, text, context in (
        (WiderSearch("lantern", words="all", language="de"), cursor, ["hits"]),
        (WiderSearch(**old, language="de"), entry["cursor"], entry["context"]),
    ):
        with pytest.raises(InvalidRequest):
            SEALER.open(text, bound=identity(request, *context))
