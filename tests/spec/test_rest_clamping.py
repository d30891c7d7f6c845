"""REST lowers a limit above its maximum and says so, as PDPP does; everything else is refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from evidence.limits import CONTRACT
from tests.helpers import worlds
from tests.helpers.api import Answer, Api, path, record_path
from tests.helpers.server import serving
from tests.helpers.shell import Shell
from tests.helpers.snapshots import DATA

RECORDS = path("messages", "records")
MAIL = "connection_id=mail-work"
WINDOW = f"{record_path('messages', 'm1', 'field-window')}?{MAIL}&field=body"
#: A route that clamps, its parameter and its maximum.
CLAMPED = [
    (f"{RECORDS}?", "limit", CONTRACT.page_items),
    ("/v1/search?q=lantern&", "limit", CONTRACT.page_items),
    (f"{WINDOW}&", "limit_chars", 16_384),
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("clamping"))


@pytest.fixture(scope="module")
def url(house: worlds.House) -> Iterator[str]:
    with serving("service.app:create_app()", house.environment) as found:
        yield found


@pytest.fixture(scope="module")
def api(house: worlds.House, url: str) -> Api:
    return Api(url, house.grant()[1])


def clamps(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer
    found = [one for one in answer.body["meta"]["warnings"] if one["code"] == "limit_clamped"]
    return [{**one["detail"], "param": one["param"]} for one in found]


@pytest.mark.parametrize(("route", "name", "most"), CLAMPED)
@pytest.mark.parametrize("over", [1, 900, 10**17])
def test_a_limit_over_its_maximum_is_clamped_with_a_warning(
    api: Api, route: str, name: str, most: int, over: int
) -> None:
    answer = api.get(f"{route}{name}={most + over}")
    assert clamps(answer) == [{"requested_limit": most + over, "max_limit": most, "param": name}]
    same = api.get(f"{route}{name}={most}")
    assert clamps(same) == []
    assert [answer.body.get(key) for key in ("data", "window")] == [
        same.body.get(key) for key in ("data", "window")
    ]


@pytest.mark.parametrize(("route", "name", "most"), CLAMPED)
@pytest.mark.parametrize("digits", [20, 400])
def test_a_number_no_integer_holds_is_clamped_too(
    api: Api, route: str, name: str, most: int, digits: int
) -> None:
    [found] = clamps(api.get(f"{route}{name}={'9' * digits}"))
    assert found["max_limit"] == most and found["requested_limit"] > 10**18


@pytest.mark.parametrize(("route", "name", "most"), CLAMPED)
@pytest.mark.parametrize(
    "value", ["0", "-1", "-101", "abc", "", "5.5", "1e3", "0x10", "%2B5", "%D9%A3"]
)
def test_what_is_no_positive_number_is_refused(
    api: Api, route: str, name: str, most: int, value: str
) -> None:
    answer = api.get(f"{route}{name}={value}")
    assert (answer.status, answer.error["param"]) == (400, name)
    assert f"{most:,}" in answer.error["message"]


def test_a_posted_limit_is_clamped(api: Api) -> None:
    json = {"Content-Type": "application/json"}
    for sent, told in ((b"500", 500), (b"500.0", 500), (b"18446744073709551616", 2.0**64)):
        body = b'{"q": "lantern", "limit": ' + sent + b"}"
        [found] = clamps(api.send("POST", "/v1/search", body, json))
        assert found == {
            "requested_limit": told,
            "max_limit": CONTRACT.page_items,
            "param": "limit",
        }
    for sent in (b"0", b"-5", b'"500"', b"true", b"5.5"):
        body = b'{"q": "lantern", "limit": ' + sent + b"}"
        assert api.send("POST", "/v1/search", body, json).status == 400, sent


@pytest.mark.parametrize(
    "target",
    [
        f"{path('messages', 'aggregate')}?metric=count&group_by=folder"
        f"&limit={CONTRACT.page_items + 1}",
        f"{RECORDS}?{MAIL}&expand=attachments&expand_limit[attachments]=51",
        f"/papers/v1/search?q=tides&limit={CONTRACT.page_items + 1}",
    ],
)
def test_other_limits_over_their_maximum_are_refused(house: worlds.House, target: str) -> None:
    papers = DATA / "papers" / "snapshot.db"
    app = house.application(RUNG_PAPERS_DB=str(papers))
    answer = Api(app, house.grant()[1]).get(target)
    assert answer.status == 400 and "limit" in answer.error["param"], answer


def test_tools_refuse_what_rest_clamps(api: Api) -> None:
    for tool, args in (
        ("query_records", {"stream": "messages", "limit": CONTRACT.page_items + 1}),
        ("search", {"query": "lantern", "limit": CONTRACT.page_items + 1}),
        ("query_records", {"stream": "messages", "count": "estimated"}),
    ):
        assert api.mcp(tool, **args)["isError"], tool


def test_an_estimated_count_is_accepted(api: Api) -> None:
    exact, estimated = (api.get(f"{RECORDS}?count={word}") for word in ("exact", "estimated"))
    assert estimated.status == 200
    assert estimated.body["meta"]["count"] == exact.body["meta"]["count"]
    refused = api.get(f"{RECORDS}?count=about")
    assert (refused.status, refused.error["param"]) == (400, "count")


def test_paging_goes_on_under_a_clamped_limit(api: Api) -> None:
    answer = api.get(f"{RECORDS}?limit=500&fields=id")
    assert clamps(answer) and answer.body["links"]["self"].endswith("limit=500&fields=id")


def test_the_body_at_a_shell_is_the_same(house: worlds.House, url: str, api: Api) -> None:
    shell = Shell({"RUNG_URL": url, "RUNG_TOKEN": str(api.token)})
    assert shell.run("query", "messages", "--limit", "500").exit_code == 2
