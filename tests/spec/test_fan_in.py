"""Search over many sources: one limit, no source starved, nothing twice, lost or unreported."""

import math
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence import hits_wire
from evidence.errors import EvidenceError, InvalidRequest
from evidence.limits import BUDGETS
from service.pdpp.decode import search as reading
from service.pdpp.encode import body_of
from renderers import search as renderer
from renderers.rendering import Context
from tests.helpers.sources import DOWN, LATE, OK, QUERY, REVOKED, Crowd, Plan, ids
from tests.spec.scenarios import scenario

LIMITS = st.integers(1, 100)
STEADY = st.builds(
    Plan,
    hits=st.integers(0, 20),
    most=st.sampled_from([1, 3, 10, 100]),
    cursor_chars=st.sampled_from([0, 60, 400, 3_000]),
)
FATES = st.lists(st.sampled_from([OK, LATE, DOWN, REVOKED]), max_size=6).map(tuple)
SHAKY = st.builds(Plan, hits=st.integers(0, 12), outcomes=FATES, most=st.sampled_from([2, 100]))


def many(plans: st.SearchStrategy[Plan], most: int = 70) -> st.SearchStrategy[list[Plan]]:
    """Two or more sources. The size is drawn first, so that large ones occur."""
    return st.integers(2, most).flatmap(lambda n: st.lists(plans, min_size=n, max_size=n))


def both_channels(body: dict[str, Any], limit: int) -> tuple[str, dict[str, Any]]:
    """(text, structured content) of a page, as a model sees it."""
    page = replace(reading.read(body), args={"query": QUERY, "limit": limit})
    rendering = renderer.render(renderer.fit(page, BUDGETS), Context())
    return "\n".join(rendering.blocks), rendering.structured


@scenario("004/fan-in/limit-is-global")
@given(many(STEADY), LIMITS)
def test_every_hit_comes_exactly_once_whatever_the_limit(plans: list[Plan], limit: int) -> None:
    crowd = Crowd(plans)
    pages = list(crowd.pages(limit))
    shown = [found for body in pages for found in ids(body)]
    assert sorted(shown) == sorted(
        f"{server.connection_id}/{row['record_key']}"
        for server in crowd.servers
        for row in server.rows
    )
    assert all(len(body["data"]) <= limit for body in pages)
    assert all(body["has_more"] is ("next_cursor" in body) for body in pages)
    assert not pages[-1]["has_more"]


@given(many(STEADY), LIMITS)
def test_every_source_with_hits_is_met_early(plans: list[Plan], limit: int) -> None:
    """They are on page one if the limit allows, else on the first pages with room for them."""
    crowd = Crowd(plans)
    live = {server.connection_id for server in crowd.servers if server.rows}
    met = set[str]()
    for _, body in zip(range(math.ceil(len(live) / limit)), crowd.pages(limit)):
        met |= {hit["connection_id"] for hit in body["data"]}
    assert met == live


@given(many(SHAKY), LIMITS)
def test_whatever_fails_no_page_passes_its_limit_and_no_hit_comes_twice(
    plans: list[Plan], limit: int
) -> None:
    crowd = Crowd(plans)
    shown = list[str]()
    try:
        for body in crowd.pages(limit):
            assert len(body["data"]) <= limit
            assert len(body.get("next_cursor", "")) < 4_096
            shown += ids(body)
    except EvidenceError as error:
        assert not shown
        assert error.code in ("upstream_unreachable", "deadline_exceeded", "grant_revoked")
    assert len(shown) == len(set(shown))


@given(many(SHAKY, most=12), LIMITS)
def test_who_fails_at_most_twice_in_a_row_loses_nothing(plans: list[Plan], limit: int) -> None:
    plans = [Plan(p.hits, tuple(DOWN for _ in p.outcomes[:2]), p.most) for p in plans]
    crowd = Crowd([*plans, Plan(hits=1)])
    shown = [found for body in crowd.pages(limit) for found in ids(body)]
    assert len(shown) == len(set(shown)) == sum(len(server.rows) for server in crowd.servers)


@given(many(SHAKY, most=30), st.integers(1, 30))
def test_who_did_not_answer_is_told_in_both_channels(plans: list[Plan], limit: int) -> None:
    crowd = Crowd([Plan(hits=1), *plans])
    for body in crowd.pages(limit):
        text, structured = both_channels(body, limit)
        silent = [row for row in body["meta"]["package"]["sources"] if row["state"] != "answered"]
        told = structured["data"]["meta"]["package"]
        assert told["failed_count"] + told["timed_out_count"] == len(silent)
        sources = next(line for line in text.split("\n") if line.startswith("sources: "))
        assert sources.startswith(f"sources: {told['answered_count']} answered")
        for row in silent[:12]:
            line = next(x for x in text.split("\n") if x.startswith(f'  "{row["name"]}" '))
            assert row["code"] in line and row["next_step"] in line
            assert any(
                found["name"] == row["name"] and found["next_step"] == row["next_step"]
                for found in told["sources"]
            )
        if silent or told["waiting_count"]:
            assert "complete=false" in text and not structured["data"]["meta"]["recall"]["complete"]
            assert "No results" not in text


@given(st.integers(2, 256), st.sampled_from([0, 60, 800, 5_000]), LIMITS)
def test_the_cursor_is_short_however_many_the_sources_and_however_long_their_cursors(
    sources: int, cursor_chars: int, limit: int
) -> None:
    crowd = Crowd([Plan(hits=120, cursor_chars=cursor_chars)] * sources)
    for _, body in zip(range(2), crowd.pages(limit)):
        assert len(body["next_cursor"]) < 4_096 == BUDGETS.package_cursor_bytes + 1


@given(many(STEADY, most=20), st.data())
def test_a_cursor_that_was_altered_or_asked_otherwise_is_refused(
    plans: list[Plan], data: st.DataObject
) -> None:
    crowd = Crowd([*plans, Plan(hits=3)])
    cursor = crowd.search(limit=1).value.next_cursor
    assert cursor is not None
    place = data.draw(st.integers(0, len(cursor) - 2))
    other = cursor[:place] + ("B" if cursor[place] == "A" else "A") + cursor[place + 1 :]
    for args in ({"cursor": other}, {"cursor": cursor, "streams": ("notes",)}):
        with pytest.raises(InvalidRequest) as refusal:
            crowd.search(limit=1, **args)
        assert refusal.value.code == "invalid_cursor"
    with pytest.raises(InvalidRequest):
        Crowd(crowd.plans[:-1] or [Plan(1), Plan(1)]).search(limit=1, cursor=cursor)


@given(
    st.lists(st.permutations([f"n{number}" for number in range(30)]), min_size=2, max_size=5),
    LIMITS,
)
def test_grants_that_overlap_show_each_record_once(orders: list[list[str]], limit: int) -> None:
    """The same connection is in several grants, each with its own order and selection."""
    plans = [
        Plan(hits=0, keys=tuple(order[: 30 - 4 * number]), connection="shared")
        for number, order in enumerate(orders)
    ]
    crowd = Crowd([*plans, Plan(hits=5)])
    shown = [found for body in crowd.pages(limit) for found in ids(body)]
    wanted = {f"shared/{key}" for plan in plans for key in plan.keys}
    assert sorted(shown) == sorted(
        wanted | {f"source-{len(plans)}/source {len(plans)}-{n}" for n in range(5)}
    )


def test_hits_of_all_sources_take_turns() -> None:
    body = body_of(Crowd([Plan(hits=5), Plan(hits=1), Plan(hits=5)]).search(limit=6))
    turns = [hit["connection_id"].removeprefix("source-") for hit in body["data"]]
    assert turns == ["0", "1", "2", "0", "2", "0"]


def test_one_source_that_fails_leaves_the_page_to_the_others_and_comes_later() -> None:
    crowd = Crowd([Plan(hits=2, outcomes=(LATE,)), Plan(hits=2), Plan(hits=2, outcomes=(REVOKED,))])
    first, second = crowd.pages(10)
    assert {hit["connection_id"] for hit in first["data"]} == {"source-1"}
    assert {hit["connection_id"] for hit in second["data"]} == {"source-0"}
    states = {row["name"]: row["state"] for row in first["meta"]["package"]["sources"]}
    assert states == {"source 0": "timed_out", "source 1": "answered", "source 2": "failed"}
    text, _ = both_channels(first, 10)
    assert 'sources: 1 answered ("source 1" 2), 1 failed, 1 timed out' in text
    assert "The next page queries this source again." in text and "grant_revoked" in text
    assert "Ask the owner to renew the grant of this source." in text


def test_where_every_source_fails_the_first_error_is_the_answer() -> None:
    with pytest.raises(EvidenceError) as error:
        Crowd([Plan(1, (LATE,)), Plan(1, (REVOKED,)), Plan(1, (DOWN,))]).search(limit=5)
    assert error.value.code == "grant_revoked"


def test_a_source_that_never_answers_is_given_up_and_stays_told() -> None:
    crowd = Crowd([Plan(hits=9), Plan(hits=1, outcomes=(DOWN,) * 9)])
    pages = list(crowd.pages(2))
    assert len(crowd.servers[1].calls) == BUDGETS.fan_in_tries
    codes = [
        row.get("code")
        for body in pages
        for row in body["meta"]["package"]["sources"]
        if row["name"] == "source 1"
    ]
    assert codes[:3] == ["upstream_unreachable"] * 3 and set(codes[3:]) == {"given_up"}


def test_the_count_is_that_of_all_sources_and_says_when_it_is_not_exact() -> None:
    whole = [body["meta"] for body in Crowd([Plan(hits=3), Plan(hits=4)]).pages(2)]
    assert {(meta["count"], meta["count_accuracy"]) for meta in whole} == {(7, "exact")}
    partly = body_of(Crowd([Plan(hits=3), Plan(hits=4, outcomes=(LATE,))]).search(limit=9))["meta"]
    assert (partly["count"], partly["count_accuracy"]) == (3, "lower_bound")


def test_wire_and_text_say_the_same_of_the_sources() -> None:
    crowd = Crowd([Plan(hits=2), Plan(hits=0), Plan(hits=1, outcomes=(DOWN,))])
    page = replace(crowd.search(limit=5).value, args={"query": QUERY})
    told = hits_wire.structured(page, page.continuations())["data"]["meta"]["package"]
    assert {name: told[name] for name in told if name.endswith("count")} == {
        "member_count": 3,
        "waiting_count": 0,
        "answered_count": 2,
        "failed_count": 1,
        "timed_out_count": 0,
    }
    assert [row["name"] for row in told["sources"]] == ["source 0", "source 2"]


@pytest.mark.parametrize(
    "label, least", [('"' * 60, 20), ("猫" * 200, 20), ("\x00" * 60, 0), ("Mail", 40)]
)
def test_a_page_of_many_sources_half_of_them_down_stays_in_its_budget(
    label: str, least: int
) -> None:
    crowd = Crowd([Plan(hits=3, outcomes=(DOWN,) * (number % 2)) for number in range(200)])
    crowd.children = [replace(child, name=label + child.name) for child in crowd.children]
    page = replace(crowd.search(limit=100).value, args={"query": QUERY, "limit": 100})
    kept = len(renderer.fit(page, BUDGETS).hits)
    page = replace(crowd.search(limit=kept).value, args={"query": QUERY, "limit": 100})
    rendering = renderer.render(renderer.fit(page, BUDGETS), Context())
    assert len("".join(rendering.blocks).encode()) <= BUDGETS.text_bytes
    assert len(orjson.dumps(rendering.structured)) <= BUDGETS.structured_bytes
    assert kept > least
