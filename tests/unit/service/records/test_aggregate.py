"""Every figure and group, beside the same counted record by record."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from service.keys import Sealer
from service.ports import AggregateQuery
from service.access import grants
from service.access.registry import Registry
from service.records.sqlite.snapshot import SqliteSnapshot
from service.records.reading import aggregate
from tests.helpers.filling import put
from service.records.intake import Row
from evidence.manifest import parse
from service.records.writing.streams import connect, declare, open_stream
from service.records.view import View, open_view
from service.records.sqlite.writer import Writer, open_writer

TIME = {"type": "string", "format": "date-time"}
VISITS = {
    "name": "visits",
    "primary_key": ["id"],
    "cursor_field": "at",
    "schema": {
        "properties": {
            "id": {"type": "string"},
            "at": TIME,
            "left": TIME,
            "place": {"type": "string"},
            "paid": {"type": "number"},
            "again": {"type": "boolean"},
        }
    },
    "query": {
        "exact_filters": ["place"],
        "range_filters": {"at": ["gte", "lt"]},
        "aggregations": {
            "sum": ["paid"],
            "min": ["paid", "left"],
            "max": ["paid", "at"],
            "group_by": ["place", "again"],
            "group_by_time": ["at", "left"],
            "count_distinct": ["place", "at"],
        },
    },
}
MOMENTS = (
    "2026-03-29T00:59:59.999999Z",
    "2026-03-29T01:00:00Z",
    "2026-10-25T02:30:00+02:00",
    "2026-10-25T02:30:00+01:00",
    "2025-12-31T23:30:00Z",
    "1969-12-31T23:59:59Z",
    "1955-07-01T12:00:00Z",
    "not a time",
)
GRANTS: tuple[dict[str, Any], ...] = (
    {},
    {"time_constraint": {"since": "2026-03-29T01:00:00Z"}},
    {"time_constraint": {"until": "2026-03-29T01:00:00Z"}},
    {"time_constraint": {"since": "1969-12-31T23:59:59Z", "until": "2026-10-01T00:00:00Z"}},
    {"resources": [f"{number}" for number in range(0, 60, 2)]},
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"place": "inn"},
    {"at": {"gte": "2026-01-01T00:00:00Z"}},
)
BY_TIME = [
    {"group_by_time": field, "granularity": granularity, "time_zone": zone}
    for field in ("at", "left")
    for granularity in ("minute", "hour", "day", "month", "year")
    for zone in (None, "Europe/Berlin", "America/New_York")
]
ASKED: tuple[dict[str, Any], ...] = (
    {"metric": "count"},
    {"metric": "count", "group_by": "place"},
    {"metric": "count", "group_by": "again"},
    {"metric": "count_distinct", "field": "place"},
    {"metric": "count_distinct", "field": "at"},
    {"metric": "sum", "field": "paid"},
    {"metric": "min", "field": "paid"},
    {"metric": "min", "field": "left"},
    {"metric": "max", "field": "paid"},
    {"metric": "max", "field": "at"},
    *({"metric": "count", "limit": 500, **each} for each in BY_TIME),
)
CUTS = {"minute": 16, "hour": 13, "day": 10, "month": 7, "year": 4}
RESTS = {"minute": "", "hour": ":00", "day": "", "month": "-01", "year": "-01-01"}


SEALER = Sealer(b"a secret of tests only")
Kept = dict[tuple[str, str], dict[str, Any]]


@pytest.mark.parametrize("seed", range(2))
def test_figures_and_groups_are_those_of_the_records_one_by_one(tmp_path: Path, seed: int) -> None:
    with open_writer(tmp_path / "rung.db") as writer:
        for name in "ab":
            connect(writer, name)
            declare(writer, name, parse({"streams": [VISITS]}))
        kept = _history(writer, Random(seed))
        granted = [(limits, _view(writer, limits)) for limits in GRANTS]
        for (limits, view), wanted, asked in product(granted, FILTERS, ASKED):
            query = AggregateQuery(stream="visits", filter=wanted, **asked)
            found = aggregate.aggregate(SqliteSnapshot(writer.db, (0, 0)), view, query, SEALER)
            shown = [
                data
                for (_, key), data in kept.items()
                if _granted(key, data, limits) and _is(data, wanted)
            ]
            assert found.filtered_record_count == len(shown)
            if "group_by" in asked or "group_by_time" in asked:
                groups = {group.key: group.count for group in found.groups or ()}
                assert groups == Counter(_keys(shown, asked)), (limits, wanted, asked)
                assert found.group_count == len(groups) and found.other_count == 0
            else:
                assert _figure(found.value) == _value(shown, asked), (limits, wanted, asked)


def test_groups_beyond_the_limit_are_the_later_ones_and_counted(tmp_path: Path) -> None:
    with open_writer(tmp_path / "rung.db") as writer:
        connect(writer, "a")
        declare(writer, "a", parse({"streams": [VISITS]}))
        for month in (3, 1, 2, 12):
            _put(writer, "a", f"{month}", {"at": f"2026-{month:02}-01T00:00:00Z"})
        query = AggregateQuery(
            stream="visits", metric="count", group_by_time="at", granularity="month", limit=2
        )
        found = aggregate.aggregate(
            SqliteSnapshot(writer.db, (0, 0)), _view(writer, {}), query, SEALER
        )
    assert [group.key for group in found.groups or ()] == ["2026-01-01", "2026-02-01"]
    assert (found.other_count, found.group_count) == (2, 4)


@pytest.mark.parametrize("granularity", ["minute", "month"])
def test_counts_by_time_are_one_statement_that_does_not_look_at_records(
    tmp_path: Path, granularity: str
) -> None:
    """The index on values alone tells them, which is what makes them fast."""
    with open_writer(tmp_path / "rung.db") as writer:
        connect(writer, "a")
        declare(writer, "a", parse({"streams": [VISITS]}))
        for month in (1, 6):
            _put(writer, "a", f"{month}", {"at": f"2026-{month:02}-01T00:00:00Z"})
        asked: list[str] = []
        writer.db.set_trace_callback(asked.append)
        query = AggregateQuery(
            stream="visits",
            metric="count",
            group_by_time="at",
            granularity=granularity,
            time_zone="Europe/Berlin",
        )
        until = {"time_constraint": {"until": "2027-01-01T00:00:00Z"}}
        for view in (_view(writer, {}), _view(writer, until)):
            asked.clear()
            aggregate.aggregate(SqliteSnapshot(writer.db, (0, 0)), view, query, SEALER)
            (grouped,) = [sql for sql in asked if "GROUP BY" in sql]
            plan = [step for *_, step in writer.db.execute(f"EXPLAIN QUERY PLAN {grouped}")]
            assert any("COVERING INDEX cell_value" in step for step in plan), plan
            assert not any("record" in step for step in plan)


def _history(writer: Writer, random: Random) -> Kept:
    """Records that come, change and go in two connections; those that are there at the end."""
    kept: Kept = {}
    streams = {name: open_stream(writer, name, "visits") for name in "ab"}
    for _ in range(6):
        for name, stream in streams.items():
            rows = []
            for key in random.sample(range(60), 25):
                data = None if random.random() < 0.2 else _visit(random)
                kept.pop((name, f"{key}"), None)
                if data is not None:
                    kept[name, f"{key}"] = data
                rows.append(Row({"id": f"{key}", **(data or {})}, f"{key}", deleted=data is None))
            put(writer, stream, rows)
    assert any(data.get("at") is None for data in kept.values())
    return kept


def _visit(random: Random) -> dict[str, Any]:
    fields: dict[str, Callable[[], Any]] = {
        "at": lambda: _some_time(random),
        "left": lambda: _some_time(random),
        "place": lambda: random.choice(["inn", "café", "mill", "", 7]),
        "paid": lambda: random.choice([1, 2.5, -3, 0.1, 0.2, "much"]),
        "again": lambda: random.choice([True, False, 1]),
    }
    return {name: value() for name, value in fields.items() if random.random() < 0.8}


def _some_time(random: Random) -> str:
    if random.random() < 0.5:
        return random.choice(MOMENTS)
    seconds = random.randrange(-400_000_000, 2_200_000_000)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()


def _put(writer: Writer, connection: str, key: str, data: dict[str, Any] | None) -> None:
    row = Row({}, key, deleted=True) if data is None else Row({"id": key, **data}, key)
    put(writer, open_stream(writer, connection, "visits"), [row])


def _view(writer: Writer, limits: dict[str, Any]) -> View:
    """What a grant of everything within these limits shows."""
    held = writer.db.execute("SELECT connection_id FROM connection")
    entries = [{"connection_id": name, **limits} for (name,) in held.fetchall()]
    _, token = grants.create(Registry(writer), {"streams": entries})
    return open_view(SqliteSnapshot(writer.db, (0, 0)), grants.find(Registry(writer), token=token))


def _moment(value: Any) -> datetime | None:
    return None if value in (None, "not a time") else datetime.fromisoformat(value)


def _granted(key: str, data: dict[str, Any], limits: dict[str, Any]) -> bool:
    if key not in limits.get("resources", [key]):
        return False
    time, bounds = _moment(data.get("at")), limits.get("time_constraint", {})
    if not bounds:
        return True
    since, until = (_moment(bounds.get(name)) for name in ("since", "until"))
    return time is not None and (not since or time >= since) and (not until or time < until)


def _is(data: dict[str, Any], wanted: dict[str, Any]) -> bool:
    if "place" in wanted:
        return bool(data.get("place") == wanted["place"])
    time = _moment(data.get("at"))
    return not wanted or (time is not None and time >= datetime(2026, 1, 1, tzinfo=UTC))


def _keys(shown: Iterable[dict[str, Any]], asked: dict[str, Any]) -> Iterable[Any]:
    if "group_by" in asked:
        kind = str if asked["group_by"] == "place" else bool
        values = (data.get(asked["group_by"]) for data in shown)
        return [value for value in values if isinstance(value, kind)]
    zone = ZoneInfo(asked["time_zone"] or "UTC")
    times = [_moment(data.get(asked["group_by_time"])) for data in shown]
    local = [time.astimezone(zone).isoformat() for time in times if time is not None]
    unit = asked["granularity"]
    return [text[: CUTS[unit]] + RESTS[unit] for text in local]


def _value(shown: list[dict[str, Any]], asked: dict[str, Any]) -> Any:
    if asked == {"metric": "count"}:
        return len(shown)
    values = [data[asked["field"]] for data in shown if asked["field"] in data]
    if asked["field"] == "paid":
        values = [value for value in values if not isinstance(value, str)]
    elif asked["field"] == "place":
        values = [value for value in values if isinstance(value, str)]
    else:
        values = [time for value in values if (time := _moment(value))]
    if asked["metric"] == "count_distinct":
        return len(set(values))
    if asked["metric"] == "sum":
        return round(sum(values), 9)
    return {"min": min, "max": max}[asked["metric"]](values, default=None)


def _figure(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
