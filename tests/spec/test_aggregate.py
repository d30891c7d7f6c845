"""Figures and groups: printed in full, over one connection or many, within the grant."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import worlds
from tests.helpers.caller import Local
from tests.spec.scenarios import scenario

WORK = {"stream": "messages", "connection_id": "mail-work"}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"metric": "count"}, "24"),
        ({"metric": "count_distinct", "field": "folder"}, "2"),
        ({"metric": "min", "field": "received_at"}, '"2026-04-02T08:00:00Z"'),
        ({"metric": "max", "field": "received_at"}, '"2026-04-26T08:00:00Z"'),
        ({"metric": "count", "filter": {"sender": "Noor Haddad"}}, "1"),
    ],
)
@scenario("004/schema/cursors-and-counts-in-text")
def test_a_figure_stands_in_the_first_line(small: Local, given: dict[str, Any], value: str) -> None:
    answer = small.ok("aggregate", **WORK, **given)
    assert answer.lines[0].endswith(f" value={value}")
    assert str(answer.structured["data"]["value"]) == value.strip('"')


def test_a_sum_is_the_sum_of_the_records(small: Local) -> None:
    listed = small.ok("query_records", **WORK, fields=["size"], limit=100)
    total = sum(record["data"]["size"] for record in listed.structured["data"]["data"])
    assert f"value={total}" in small.ok("aggregate", **WORK, metric="sum", field="size").text


def test_every_group_is_printed_on_a_line_of_its_own(small: Local) -> None:
    answer = small.ok("aggregate", **WORK, metric="count", group_by="folder")
    assert answer.lines[1:] == ["archive 13", "inbox 11"]
    assert "groups=2 of=2 records=24" in answer.lines[0]


def test_groups_beyond_the_limit_are_counted_and_said(small: Local) -> None:
    answer = small.ok("aggregate", **WORK, metric="count", group_by="folder", limit=1)
    assert answer.lines[1] == "archive 13"
    assert "groups=1 of=2" in answer.lines[0]
    assert answer.lines[2].startswith("other_count=11")


def test_time_groups_follow_the_zone_that_was_asked_for(small: Local) -> None:
    answer = small.ok(
        "aggregate",
        **WORK,
        metric="count",
        group_by_time="received_at",
        granularity="month",
        time_zone="Europe/Berlin",
    )
    assert "time_zone=Europe/Berlin" in answer.lines[0]
    assert answer.lines[1].endswith(" 24")


def test_a_shared_stream_is_counted_over_all_its_connections(small: Local, wide: Local) -> None:
    assert "value=26" in small.ok("aggregate", stream="messages", metric="count").lines[0]
    answer = wide.ok("aggregate", stream="messages", metric="count", group_by="kind")
    assert answer.lines[1:] == ["even 192", "odd 128"]


@pytest.mark.parametrize(
    "given",
    [
        {"metric": "sum"},
        {"metric": "sum", "field": "subject"},
        {"metric": "average", "field": "size"},
        {"metric": "count", "group_by": "body"},
        {"metric": "count", "group_by_time": "received_at"},
        {"metric": "count", "group_by_time": "received_at", "granularity": "eon"},
        {"metric": "count", "group_by": "folder", "group_by_time": "received_at"},
        {"metric": "count", "group_by": "folder", "limit": 0},
        {"metric": "count", "field": "secret"},
    ],
)
def test_what_is_not_declared_is_refused_with_words_to_act_on(
    small: Local, given: dict[str, Any]
) -> None:
    answer = small.fails("aggregate", **WORK, **given)
    assert len(answer.lines) >= 3 and answer.error["message"] in answer.text


def test_a_yes_is_no_one_where_connections_differ(tmp_path: Path) -> None:
    connections = []
    for name, kind, value in (("flags", "boolean", True), ("counts", "integer", 1)):
        query = {"aggregations": {"group_by": ["on"], "count_distinct": ["on"]}}
        stream = worlds.stream("states", {"on": {"type": kind}}, query=query)
        rows = tuple(worlds.row("states", f"{name}-{n}", on=value) for n in range(2))
        connections.append(worlds.Connection(name, "house", None, (stream,), rows))
    api = worlds.build(worlds.World(tuple(connections)), tmp_path).api()
    path = "/v1/streams/states/aggregate"
    groups = api.rest(path, metric="count", group_by="on").body["groups"]
    assert [repr(group["key"]) for group in groups] == ["1", "True"]
    assert [group["count"] for group in groups] == [2, 2]
    assert api.rest(path, metric="count_distinct", field="on").body["value"] == 2
