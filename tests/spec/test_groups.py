"""Every metric by group, beside a naive count over the records that the grant shows."""

import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evidence.model import GRANULARITIES
from service.access import grants
from service.access.registry import Registry
from service.keys import Sealer
from service.ports import AggregateQuery
from service.records.reading import aggregate
from service.records.reading.local_time import DAY
from service.records.opening import open_writer
from service.records.sqlite.reader import Reader
from service.records.writing.streams import open_stream
from service.place import spelled
from service.records.view import open_view
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.filling import put
from tests.helpers.local_times import CHANGES, ZONES, bucket, micros, text
from tests.helpers.shell import Shell

PATH = "/v1/streams/payments/aggregate"
METRICS = ("count", "sum", "avg", "min", "max", "count_distinct")
PAYEES = ["Rewe", "Café Ö", "", "alpha", "Bäckerei, Ost", "10", "9"]
#: How the amounts of each connection are declared.
AMOUNTS: dict[str, dict[str, Any]] = {
    "bank": {"type": "string", "format": "decimal"},
    "cash": {"type": "number"},
    "coins": {"type": "integer"},
}
QUERY = {
    "exact_filters": ["payee", "paid"],
    "range_filters": {"at": ["gte", "lt"], "amount": ["gte", "lt"]},
    "aggregations": {
        **{name: ["amount"] for name in ("sum", "min", "max")},
        "group_by": ["payee", "paid", "year"],
        "group_by_time": ["at"],
        "count_distinct": ["payee", "amount"],
    },
}
GRANTS: tuple[dict[str, Any], ...] = (
    {},
    {"time_constraint": {"since": "2026-01-10T00:00:00Z", "until": "2026-11-01T00:00:00Z"}},
    {"resources": [f"{number}" for number in range(0, 60, 3)]},
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"paid": True},
    {"payee": "Rewe"},
    {"amount": {"gte": 0}, "at": {"gte": "2026-03-01T00:00:00Z"}},
)
GROUPINGS: tuple[dict[str, Any], ...] = (
    {"group_by": "payee"},
    {"group_by": "paid"},
    {"group_by": "year"},
    *(
        {"group_by_time": "at", "granularity": granularity, "time_zone": zone}
        for granularity, zone in (
            ("minute", "Europe/Berlin"),
            ("hour", "America/New_York"),
            ("week", "UTC"),
            ("month", "Europe/Berlin"),
            ("quarter", "Europe/Berlin"),
            ("year", "Pacific/Apia"),
        )
    ),
)


def amount(random: Random, name: str) -> Any:
    if name == "bank":
        return random.choice(["12.50", "-3.1", "90071992547409.93", "0.10", "none", "-0"])
    if name == "cash":
        return random.choice([0.1, 0.2, -7.25, 3, 1e15, "much"])
    return random.choice([1, 2, -5, 10**9 + 1])


def payment(random: Random, name: str) -> dict[str, Any]:
    start, clock_change = datetime(2025, 12, 20, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)
    times = [start + timedelta(minutes=random.randrange(480_000))]
    times.append(clock_change + timedelta(minutes=random.randrange(-30, 150)))
    fields: dict[str, Callable[[], Any]] = {
        "at": lambda: random.choice(times).isoformat(),
        "payee": lambda: random.choice(PAYEES),
        "paid": lambda: random.choice([True, False]),
        "year": lambda: random.choice([9, 10, 2026, -1]),
        "amount": lambda: amount(random, name),
    }
    return {field: value() for field, value in fields.items() if random.random() < 0.85}


def world(random: Random, names: Iterable[str], records: int = 50) -> worlds.World:
    connections = []
    for name in names:
        fields = {
            "at": worlds.moment(),
            "payee": worlds.text(),
            "paid": {"type": "boolean"},
            "year": {"type": "integer"},
            "amount": AMOUNTS[name],
        }
        stream = worlds.stream("payments", fields, "at", query=QUERY)
        rows = [worlds.row("payments", f"{key}", **payment(random, name)) for key in range(records)]
        connections.append(worlds.Connection(name, "bank", None, (stream,), tuple(rows)))
    return worlds.World(tuple(connections))


def number(value: Any) -> Decimal | None:
    """The number in an amount."""
    try:
        return None if value is None else Decimal(str(value))
    except ArithmeticError:
        return None


def is_shown(key: str, data: dict[str, Any], limits: dict[str, Any]) -> bool:
    bounds = limits.get("time_constraint")
    if bounds is None:
        return key in limits.get("resources", [key])
    at = data.get("at")
    return at is not None and bounds["since"] <= at.replace("+00:00", "Z") < bounds["until"]


def passes(data: dict[str, Any], filter: dict[str, Any]) -> bool:
    for name, wanted in filter.items():
        value = data.get(name)
        if name == "amount":
            found = number(value)
            if found is None or found < wanted["gte"]:
                return False
        elif name == "at":
            if value is None or value < wanted["gte"]:
                return False
        elif value != wanted:
            return False
    return True


def group_of(data: dict[str, Any], grouping: dict[str, Any]) -> Any:
    if "group_by" in grouping:
        return data.get(grouping["group_by"])
    if data.get("at") is None:
        return None
    return bucket(data["at"], grouping["granularity"], grouping["time_zone"])


def naive(
    records: Iterable[dict[str, Any]], metric: str, grouping: dict[str, Any]
) -> list[tuple[Any, int, Any]]:
    """(key, number of records, value) of each group, in the order of the answer."""
    groups = defaultdict[Any, list[dict[str, Any]]](list)
    for data in records:
        if (key := group_of(data, grouping)) is not None:
            groups[key].append(data)
    rows = [(key, len(rows), figure(rows, metric)) for key, rows in groups.items()]
    if "group_by_time" in grouping:
        return sorted(rows)
    ranks = [row[2] if metric != "count" else row[1] for row in rows]
    order = sorted(
        range(len(rows)),
        key=lambda n: (ranks[n] is None, -ranks[n] if ranks[n] is not None else 0, rows[n][0]),
    )
    return [rows[n] for n in order]


def figure(records: list[dict[str, Any]], metric: str) -> Any:
    values = [found for data in records if (found := number(data.get("amount"))) is not None]
    if metric in ("count", "count_distinct"):
        return len(set(values)) if metric == "count_distinct" else None
    if metric == "sum":
        return sum(values, Decimal(0))
    if not values:
        return None
    if metric == "avg":
        return Context(prec=16).divide(sum(values), Decimal(len(values)))
    return {"min": min, "max": max}[metric](values)


def pages(api: Api, limit: int, **asked: Any) -> list[dict[str, Any]]:
    """All groups, page by page; checks the counts of every page."""
    groups, cursor, records = list[dict[str, Any]](), None, None
    while True:
        answer = api.rest(PATH, limit=limit, cursor=cursor, **asked)
        assert answer.status == 200, answer.body
        body = answer.body
        groups += body["groups"]
        counted = sum(group["count"] for group in groups)
        records = counted + body["other_count"] if records is None else records
        assert (len(body["groups"]) <= limit, counted + body["other_count"]) == (True, records)
        cursor = body["next_cursor"]
        if cursor is None:
            assert (body["group_count"], body["other_count"]) == (len(groups), 0)
            return groups


@pytest.mark.parametrize(
    ("seed", "names"), [(1, ["bank"]), (2, ["cash", "coins"]), (3, ["bank", "cash"])]
)
def test_groups_are_those_of_a_naive_count(tmp_path: Path, seed: int, names: list[str]) -> None:
    random = Random(seed)
    drawn = world(random, names)
    house = worlds.build(drawn, tmp_path)
    records = [(row.key, row.data) for one in drawn.connections for row in one.rows]
    for limits, filter in random.sample([*product(GRANTS, FILTERS)], 4):
        api = house.api(*({"connection_id": name, **limits} for name in names))
        chosen = [d for key, d in records if is_shown(str(key), d, limits) and passes(d, filter)]
        for grouping, metric in product(GROUPINGS, METRICS):
            if metric == "count_distinct" and len(names) > 1:
                continue  # 1 and "1" are two values
            asked = {"metric": metric, **grouping, "filter": filter}
            if metric != "count":
                asked["field"] = "amount"
            groups = pages(api, random.choice([9, 100]), **asked)
            shown = [(one["key"], one["count"], number(one.get("value"))) for one in groups]
            expected = naive(chosen, metric, grouping)
            assert shown == expected, (limits, filter, grouping, metric)


def test_buckets_in_zones_whose_clocks_changed_are_those_of_the_calendar(tmp_path: Path) -> None:
    random = Random(11)
    times = [micros(*day) + random.randrange(-3 * DAY, 3 * DAY) for day in CHANGES * 12]
    times += [random.randrange(micros(1901, 1, 1), micros(2099, 1, 1)) for _ in range(40)]
    rows = [worlds.row("payments", f"{n}", at=text(time), amount=n) for n, time in enumerate(times)]
    (connection,) = world(random, ["coins"], 0).connections
    api = worlds.build(worlds.World((replace(connection, rows=tuple(rows)),)), tmp_path).api()
    for granularity, zone in product(GRANULARITIES, ZONES):
        grouping = {"group_by_time": "at", "granularity": granularity, "time_zone": zone}
        groups = pages(api, 60, metric="sum", field="amount", **grouping)
        shown = [(one["key"], one["count"], number(one["value"])) for one in groups]
        assert shown == naive([row.data for row in rows], "sum", grouping), grouping


def test_a_mean_has_16_digits_and_a_sum_every_digit(tmp_path: Path) -> None:
    rows = [("a", "0.1"), ("a", "0.2"), ("b", "90071992547409.93"), ("b", "0.001"), ("a", "0.1")]
    drawn = world(Random(0), ["bank"], 0)
    filled = tuple(
        worlds.row("payments", f"{n}", payee=payee, amount=text)
        for n, (payee, text) in enumerate(rows)
    )
    connection = worlds.Connection("bank", "bank", None, drawn.connections[0].streams, filled)
    api = worlds.build(worlds.World((connection,)), tmp_path).api()
    for metric, values in (
        ("sum", ["90071992547409.931", "0.4"]),
        ("avg", ["45035996273704.97", "0.1333333333333333"]),
    ):
        groups = api.rest(PATH, metric=metric, field="amount", group_by="payee").body["groups"]
        assert [group["value"] for group in groups] == values
    assert api.rest(PATH, metric="avg", field="amount").body["value"] == "18014398509482.07"


def test_text_and_structure_and_command_show_each_value(tmp_path: Path) -> None:
    house = worlds.build(world(Random(5), ["cash"]), tmp_path)
    _, token = house.grant()
    args = {"stream": "payments", "metric": "sum", "field": "amount", "group_by": "payee"}
    result = Api(house.app, token).mcp("aggregate", **args, limit=2)
    data = result["structuredContent"]["data"]
    lines = result["content"][0]["text"].splitlines()
    assert "metric=sum" in lines[0] and "field=amount" in lines[0]
    for line, group in zip(lines[1:], data["groups"]):
        assert line.endswith(f" {group['value']} records={group['count']}")
    assert data["next"][0]["args"] == {**args, "limit": 2, "cursor": data["next_cursor"]}
    shell = Shell({"RUNG_STORE": spelled(house.path), "RUNG_TOKEN": token})
    table = shell.ok("aggregate", "payments", "sum", "amount", "--group-by", "payee", "--csv")
    assert table.stdout.splitlines()[0] == "key,count,value"
    assert f",{data['groups'][0]['count']},{data['groups'][0]['value']}" in table.stdout


def test_a_hidden_field_is_never_computed(tmp_path: Path) -> None:
    house = worlds.build(world(Random(6), ["cash"]), tmp_path)
    entry = {"connection_id": "cash", "stream": "payments", "fields": ["payee", "at"]}
    api = house.api(entry)
    for metric in METRICS[1:]:
        answer = api.rest(PATH, metric=metric, field="amount", group_by="payee")
        assert (answer.status, answer.error["code"]) == (403, "field_not_granted")
    answer = api.rest(PATH, metric="count", group_by="paid")
    assert (answer.status, answer.error["code"]) == (403, "field_not_granted")


def test_records_outside_the_grant_change_nothing(tmp_path: Path) -> None:
    drawn = world(Random(7), ["cash"])
    limits = {"connection_id": "cash", "time_constraint": {"until": "2026-06-01T00:00:00Z"}}
    bodies = []
    for extra in (0, 40):
        (connection,) = drawn.connections
        hidden = [
            worlds.row("payments", f"x{n}", at="2026-07-01T00:00:00Z", payee="Rewe", amount=n * 9.5)
            for n in range(extra)
        ]
        one = worlds.Connection(
            "cash", "bank", None, connection.streams, (*connection.rows, *hidden)
        )
        folder = tmp_path / f"{extra}"
        folder.mkdir()
        house = worlds.build(worlds.World((one,)), folder)
        api = house.api(limits)
        asked = product(METRICS[1:], GROUPINGS)
        bodies.append(
            [
                {
                    **api.rest(PATH, metric=metric, field="amount", limit=3, **grouping).body,
                    "links": None,
                    "next_cursor": None,
                }
                for metric, grouping in asked
            ]
        )
    for body in (*bodies[0], *bodies[1]):
        body["meta"].pop("request_id", None)
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("metric", ["count", "sum", "max"])
@pytest.mark.parametrize(
    "grouping", [{"group_by": "payee"}, {"group_by_time": "at", "granularity": "minute"}]
)
def test_a_page_of_many_groups_needs_little_memory(
    tmp_path: Path, grouping: dict[str, str], metric: str
) -> None:
    """The values of 40,000 records are put into the file of a store; the last ten are records."""
    path, count = tmp_path / "rung.db", 40_000
    worlds.fill(path, world(Random(8), ["cash"], 0))
    times = (datetime(2021, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(10))
    late = [
        worlds.row("payments", f"{n}", at=time.isoformat(), payee=f"z{n}", amount=10**9 + n)
        for n, time in enumerate(times)
    ]
    with open_writer(path) as writer:
        put(writer, open_stream(writer, "cash", "payments"), late)
        _, token = grants.create(Registry(writer), {"streams": [{"connection_id": "cash"}]})
        grant = grants.find(Registry(writer), token=token)
        start = 1_640_995_200_000_000
        values = {"at": f"{start} + n * 180000000", "payee": "'p' || n", "amount": "n / 8.0"}
        for field, value in values.items():
            writer.db.execute(
                "INSERT INTO cell SELECT n, ordinal, value FROM scope, (WITH RECURSIVE c(n) AS"
                " (SELECT 1000 UNION ALL SELECT n + 1 FROM c WHERE n < ?)"
                f" SELECT n, {value} AS value FROM c) WHERE field = ?",
                (count + 999, field),
            )
    name = None if metric == "count" else "amount"
    query = AggregateQuery("payments", metric, field=name, limit=10, **grouping)
    with Reader(path).snapshot(60) as snapshot:
        view = open_view(snapshot, grant)
        tracemalloc.start()
        try:
            found = aggregate.aggregate(snapshot, view, query, Sealer(b"secret"))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert found.group_count == count + 10 and len(found.groups or ()) == 10
    assert peak < 12_000_000


def test_a_cursor_of_other_arguments_is_refused(tmp_path: Path) -> None:
    api = worlds.build(world(Random(9), ["cash"]), tmp_path).api()
    asked = {"field": "amount", "group_by": "payee", "limit": 1}
    cursor = api.rest(PATH, metric="sum", **asked).body["next_cursor"]
    assert api.rest(PATH, metric="sum", **asked, cursor=cursor).status == 200
    answer = api.rest(PATH, metric="avg", **asked, cursor=cursor)
    assert (answer.status, answer.error["code"]) == (400, "invalid_cursor")
