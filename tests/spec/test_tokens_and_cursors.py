"""Refused tokens, and cursors that work only with the call they came from."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import worlds
from tests.helpers.api import Answer, Api, path, record_path
from tests.helpers.server import serving

MAIL = {"connection_id": "mail-work"}
RECORDS = path("messages", "records")
RECORD = record_path("messages", "m1")
ROUTES = (
    "/v1/schema",
    "/v1/connectors",
    "/v1/streams",
    "/v1/streams/messages",
    RECORDS,
    f"{path('messages', 'aggregate')}?metric=count",
    "/v1/search?q=lantern",
    RECORD,
    f"{RECORD}/field-window?field=body",
    "/v1/blobs/text-work",
)
SOON = timedelta(milliseconds=300)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("tokens"))


@pytest.fixture
def api(house: worlds.House) -> Api:
    return house.api()


def answers(api: Api) -> Iterator[Answer]:
    """The answer of every route, `/mcp` last."""
    yield from (api.get(route) for route in ROUTES)
    yield api.post(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')


def refused_everywhere(api: Api, status: int, code: str) -> None:
    for answer in answers(api):
        assert answer.status == status, answer
        found = answer.body["error"].get("data", answer.body["error"])
        assert found["code"] == code
        assert len(found["message"]) > 20
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)
        if api.token:
            assert api.token not in str(answer)


def test_without_a_token_everything_is_401(house: worlds.House) -> None:
    refused_everywhere(Api(house.app, None), 401, "authentication_error")


@pytest.mark.parametrize(
    "token", ["x", "rung_", "rung_" + "x" * 43, "rung_ownerx", "eyJhbGciOiJub25lIn0.e30."]
)
def test_an_unknown_token_is_401(house: worlds.House, token: str) -> None:
    refused_everywhere(Api(house.app, token), 401, "invalid_token")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer a b", "rung_x", "Bearer \x7f", "é"]
)
def test_a_header_that_is_no_bearer_token_is_401(house: worlds.House, header: str) -> None:
    api = Api(house.app, None)
    assert api.get("/v1/schema", Authorization=header).status == 401
    assert api.post(b"{}", Authorization=header).status == 401


def test_the_token_counts_only_in_the_header(house: worlds.House) -> None:
    token = house.grant()[1]
    for name in ("access_token", "token", "Authorization"):
        assert Api(house.app, None).rest("/v1/schema", **{name: token}).status == 401


@pytest.mark.parametrize("token", ["rung_owner_x", "rung_owner_" + "x" * 43])
def test_owner_tokens_are_refused(house: worlds.House, token: str) -> None:
    refused_everywhere(Api(house.app, token), 403, "permission_error")


def test_the_token_of_another_store_is_unknown(house: worlds.House, tmp_path: Path) -> None:
    other = worlds.build(worlds.two_mailboxes(), tmp_path)
    assert next(answers(other.api())).status == 200
    refused_everywhere(Api(house.app, other.grant()[1]), 401, "invalid_token")


def test_a_revoked_grant_stops_with_the_next_request(house: worlds.House) -> None:
    grant_id, token = house.grant()
    api = Api(house.app, token)
    assert {answer.status for answer in answers(api)} <= {200, 409}
    house.revoke(grant_id)
    refused_everywhere(api, 401, "grant_revoked")


def test_a_revoked_grant_stops_in_every_worker_and_thread(house: worlds.House) -> None:
    grant_id, token = house.grant()
    with serving("service.app:create_app()", house.environment, workers=2, threads=2) as base:
        api = Api(base, token)
        assert {api.get("/v1/streams").status for _ in range(16)} == {200}
        house.revoke(grant_id)
        assert {api.get("/v1/streams").status for _ in range(16)} == {401}


def test_an_expired_grant_is_refused(house: worlds.House) -> None:
    _, token = house.grant(expires_at="2020-01-01T00:00:00Z")
    refused_everywhere(Api(house.app, token), 401, "grant_expired")


def test_a_grant_expires_by_the_clock_without_any_change_of_the_store(house: worlds.House) -> None:
    end = datetime.now(UTC) + SOON
    api = Api(house.app, house.grant(expires_at=end.isoformat())[1])
    asked = datetime.now(UTC)
    while (answer := api.get("/v1/streams")).status == 200:
        assert asked < end, "a grant was honoured after its end"
        asked = datetime.now(UTC)
    assert datetime.now(UTC) >= end
    assert answer.error["code"] == "grant_expired"


def test_a_grant_that_is_changed_in_the_store_counts_at_once(house: worlds.House) -> None:
    grant_id, token = house.grant()
    api = Api(house.app, token)
    assert api.get("/v1/streams").body["data"]
    house.change('UPDATE "grant" SET document = ? WHERE grant_id = ?', '{"streams":[]}', grant_id)
    assert api.get("/v1/streams").body["data"] == []
    assert api.rest("/v1/search", q="lantern").body["data"] == []


# -- cursors --------------------------------------------------------------------------------------


def page(api: Api, **args: Any) -> dict[str, Any]:
    """A page of messages."""
    body = api.rest(RECORDS, **{**MAIL, "limit": 2, **args})
    assert body.status == 200, body
    return dict(body.body)


def refuses(api: Api, route: str, **args: Any) -> None:
    """Fails unless both surfaces refuse the cursor."""
    answer = api.rest(route, **args)
    assert (answer.status, answer.error["code"]) == (400, "invalid_cursor"), answer


def altered(cursor: str) -> str:
    """The cursor with one character in its middle changed."""
    place = len(cursor) // 2
    other = "A" if cursor[place] != "A" else "B"
    return cursor[:place] + other + cursor[place + 1 :]


def test_a_cursor_goes_on_over_both_surfaces(api: Api) -> None:
    cursor = page(api)["next_cursor"]
    rest = page(api, cursor=cursor)
    mcp = api.mcp("query_records", stream="messages", **MAIL, limit=2, cursor=cursor)
    found = mcp["structuredContent"]["data"]
    assert worlds.keys_of(found["data"]) == worlds.keys_of(rest["data"])
    assert found["next_cursor"] == rest["next_cursor"] != cursor


@pytest.mark.parametrize(
    "change",
    [{"filter": {"folder": "inbox"}}, {"sort": "received_at"}, {"order": "asc"}, {"view": "basic"}]
    + [{"connection_id": "mail-home"}, {"connection_id": None}],
)
def test_a_cursor_of_another_query_is_refused(api: Api, change: dict[str, Any]) -> None:
    cursor = page(api)["next_cursor"]
    refuses(api, RECORDS, **{**MAIL, "limit": 2, "cursor": cursor, **change})


def test_a_cursor_of_another_stream_is_refused(api: Api) -> None:
    cursor = page(api)["next_cursor"]
    refuses(api, path("threads", "records"), **MAIL, limit=2, cursor=cursor)


def test_a_cursor_of_another_grant_is_refused(house: worlds.House) -> None:
    cursor = page(house.api())["next_cursor"]
    refuses(house.api(), RECORDS, **MAIL, limit=2, cursor=cursor)


def test_a_cursor_of_another_operation_is_refused(api: Api) -> None:
    listed = page(api)["next_cursor"]
    found = api.rest("/v1/search", q="lantern", limit=2).body["next_cursor"]
    changed = page(api, changes_since="beginning")
    refuses(api, "/v1/search", q="lantern", limit=2, cursor=listed)
    refuses(api, RECORDS, **MAIL, limit=2, cursor=found)
    refuses(api, RECORDS, **MAIL, limit=2, changes_since=listed)
    refuses(api, RECORDS, **MAIL, limit=2, cursor=f"c.{listed}")
    refuses(api, RECORDS, **MAIL, limit=2, cursor=changed["next_changes_since"])
    refuses(api, "/v1/search", q="lantern", limit=2, cursor=changed["next_cursor"])


def test_a_cursor_of_another_search_is_refused(api: Api) -> None:
    cursor = api.rest("/v1/search", q="lantern", limit=2).body["next_cursor"]
    refuses(api, "/v1/search", q="Lantern", limit=2, cursor=cursor)
    refuses(api, "/v1/search", q="lantern", limit=2, cursor=cursor, **MAIL)
    refuses(api, "/v1/search", q="lantern", limit=2, cursor=cursor, streams="messages")


@pytest.mark.parametrize("bend", [altered, lambda c: c[:-4], lambda c: c + "AAAA", lambda c: c[4:]])
def test_an_altered_cursor_is_refused(api: Api, bend: Any) -> None:
    cursor = page(api)["next_cursor"]
    refuses(api, RECORDS, **MAIL, limit=2, cursor=bend(cursor))
    bookmark = page(api, changes_since="beginning")["next_changes_since"]
    refuses(api, RECORDS, **MAIL, limit=2, changes_since=bend(bookmark))


def test_a_cursor_sealed_by_another_secret_is_refused(house: worlds.House, tmp_path: Path) -> None:
    grant_id, token = house.grant()
    cursor = page(Api(house.app, token))["next_cursor"]
    other = worlds.House(house.path, {"RUNG_SECRET_KEY": "another secret"})
    refuses(Api(other.app, token), RECORDS, **MAIL, limit=2, cursor=cursor)


def test_a_cursor_is_as_good_over_mcp_as_it_is_bad(api: Api) -> None:
    cursor = altered(page(api)["next_cursor"])
    result = api.mcp("query_records", stream="messages", **MAIL, limit=2, cursor=cursor)
    assert result["structuredContent"]["error"]["code"] == "invalid_cursor"
    assert "start over" in result["content"][0]["text"]


def test_the_length_of_a_bookmark_tells_nothing(house: worlds.House, tmp_path: Path) -> None:
    small = worlds.build(worlds.World(worlds.two_mailboxes().connections[:1]), tmp_path)
    entry = {"connection_id": "mail-home", "stream": "threads"}
    lengths = {
        len(one.api(entry).rest(path("threads", "records"), changes_since="beginning").body[key])
        for one in (house, small)
        for key in ("next_changes_since",)
    }
    assert len(lengths) == 1
