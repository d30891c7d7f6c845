"""A filter that matches nothing is explained with values that the grant shows, and no others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.limits import BUDGETS
from service.ports import SearchQuery
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.sources import of_grants
from tests.helpers.worlds import House

MAIL = {"connection_id": "mail-work", "stream": "messages"}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("query_records", {"stream": "messages"}),
    ("aggregate", {"stream": "messages", "metric": "count"}),
    ("search", {"query": "lantern", "streams": ["messages"]}),
    ("search", {"query": "lantern", "streams": ["messages"], "sort": "newest"}),
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("near"))


def warned(api: Api, name: str, **args: Any) -> list[dict[str, Any]]:
    result = api.mcp(name, **args)
    assert not result.get("isError"), result
    listed = result["structuredContent"]["data"]["meta"].get("warnings", [])
    found = [one for one in listed if one["code"] == "filter_matches_nothing"]
    for one in found:
        assert "must match exactly" in result["content"][0]["text"], "both channels have it"
    return found


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_filter_that_matches_nothing_names_near_values(
    house: House, name: str, args: dict[str, Any]
) -> None:
    api = house.api(MAIL)
    (warning,) = warned(api, name, **args, filter={"folder": "INBOXES"})
    assert "must match exactly" in warning["message"] and warning["near_values"] == ["inbox"]
    (warning,) = warned(api, name, **args, filter={"folder": "qqqq"})
    assert "near_values" not in warning
    assert warned(api, name, **args, filter={"folder": "inbox"}) == []


LIMITS: tuple[dict[str, Any], ...] = (
    {"resources": ["m1", "m4"]},
    {"time_constraint": {"since": "2026-03-02T00:00:00Z", "until": "2026-03-04T00:00:00Z"}},
)


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@given(text=st.sampled_from(["Inbox", "SENT", "Archive", "achive", "in"]) | st.text(min_size=1))
def test_only_values_inside_the_limits_of_a_grant_are_near(
    house: House, limit: dict[str, Any], text: str
) -> None:
    api = house.api({**MAIL, **limit})
    shown = api.mcp("query_records", stream="messages", limit=100)["structuredContent"]["data"][
        "data"
    ]
    granted = {one["data"].get("folder") for one in shown if "data" in one}
    assert len(granted) < 3
    for name, args in CALLS[:3]:
        for one in warned(api, name, **args, filter={"folder": text}):
            near = one.get("near_values", [])
            assert set(near) <= granted and len(near) <= BUDGETS.near_values


def test_a_field_that_is_not_granted_has_no_near_values(house: House) -> None:
    api = house.api({**MAIL, "fields": ["id", "subject", "body"]})
    for name, args in CALLS:
        error = api.mcp(name, **args, filter={"folder": "Inbox"})
        assert error["isError"] and "inbox" not in str(error)


@pytest.mark.parametrize(
    ("folder", "near"),
    [("travel", None), ("inbox", None), ("INBOXES", ["inbox"])],
    ids=["only in one grant", "in both", "in none"],
)
def test_a_package_says_that_a_value_is_nowhere_only_if_no_grant_has_it(
    tmp_path: Path, folder: str, near: list[str] | None
) -> None:
    world = worlds.two_mailboxes()
    found = worlds.row("messages", "x", subject="A trip", body="Nothing.", folder="travel")
    house = worlds.build(replace(world, later=(("mail-work", found),)), tmp_path)
    entries = {name: ({"connection_id": f"mail-{name}"},) for name in ("home", "work")}
    answer = (
        of_grants(house, entries)()
        .search(
            SearchQuery(
                "lantern zymurgy", words="all", streams=("messages",), filter={"folder": folder}
            )
        )
        .value
    )
    codes = [one for one in answer.warnings if one["code"] == "filter_matches_nothing"]
    assert answer.hits == []
    assert [one["near_values"] for one in codes] == ([near] if near else [])
