"""Valid but unexpected values from a connector: requests are answered, never with a 5xx."""

from typing import Any

import pytest

from tests.helpers import worlds
from tests.helpers.api import Api, path, record_path

TIMES = (
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-12:00",
    "9999-12-31",
    "2026-02-30",
    "soon",
    "",
)
NUMBERS: tuple[Any, ...] = (2**63 - 1, 2**63 - 1, -(2**63), 2**64 - 1, 1.5e308, 1.5e308, 0, -0.0)
MEDIA_TYPES = ("text/html\r\nSet-Cookie: a=b", "text/plain; charset=日本", "", "\0", "x" * 9_000)


def world() -> worlds.World:
    fields = {
        "at": worlds.moment(),
        "number": {"type": "number"},
        "whole": {"type": "integer"},
        "file": {"type": "object"},
    }
    query = {
        "range_filters": {"at": worlds.TIMES, "number": worlds.TIMES},
        "aggregations": {
            "sum": ["number", "whole"],
            "min": ["at", "number"],
            "max": ["at", "number"],
            "group_by": ["number"],
            "group_by_time": ["at"],
        },
    }
    rows = [
        worlds.row("odd", f"r{n}", at=at, number=number, whole=number)
        for n, (at, number) in enumerate(zip(TIMES, NUMBERS))
    ]
    rows += [
        worlds.row("odd", f"blob{n}", file=worlds.blob(b"<p>", media_type, f"b{n}"))
        for n, media_type in enumerate(MEDIA_TYPES)
    ]
    odd = worlds.stream("odd", fields, "at", query=query)
    return worlds.World((worlds.Connection("here", "here", None, (odd,), tuple(rows)),))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return worlds.build(world(), tmp_path_factory.mktemp("extreme")).api()


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu"])
@pytest.mark.parametrize("granularity", ["minute", "day", "week", "quarter", "year"])
def test_the_first_and_the_last_days_have_buckets(api: Api, zone: str, granularity: str) -> None:
    args = {"group_by_time": "at", "granularity": granularity, "time_zone": zone}
    answer = api.rest(path("odd", "aggregate"), metric="count", **args)
    assert answer.status == 200
    assert sum(group["count"] for group in answer.body["groups"]) == 3


def test_times_nobody_can_tell_are_listed_and_not_compared(api: Api) -> None:
    assert api.get("/v1/streams").body["data"][0]["last_updated"] == "9999-12-31T23:59:59Z"
    body = api.rest(path("odd", "records"), window="exact", count="exact").body
    assert body["meta"]["window"]["total"] == len(TIMES) + len(MEDIA_TYPES)
    found = api.rest(path("odd", "records"), filter={"at": {"gte": "0001-01-01"}}, count="exact")
    assert found.body["meta"]["count"]["value"] == 3


@pytest.mark.parametrize("field", ["number", "whole"])
def test_a_sum_beyond_64_bits_is_a_number(api: Api, field: str) -> None:
    for metric in ("sum", "min", "max") if field == "number" else ("sum",):
        args = {"stream": "odd", "metric": metric, "field": field}
        assert "isError" not in api.mcp("aggregate", **args)
        assert api.rest(path("odd", "aggregate"), metric=metric, field=field).status == 200


def test_two_large_integers_add_up(api: Api) -> None:
    args = {"metric": "sum", "field": "whole", "filter": {"id": "r0"}}
    assert api.rest(path("odd", "aggregate"), **args).body["value"] == 2**63 - 1


@pytest.mark.parametrize("number", range(len(MEDIA_TYPES)))
def test_a_media_type_cannot_break_or_forge_headers(api: Api, number: int) -> None:
    answer = api.get(f"/v1/blobs/b{number}")
    assert (answer.status, answer.body) == (200, b"<p>")
    assert "Set-Cookie" not in answer.headers
    assert answer.headers["Content-Disposition"] == "attachment"
    assert len(answer.headers["Content-Type"]) < 300
    assert api.rest(record_path("odd", f"blob{number}")).status == 200
    read = {"id": f"odd:blob{number}", "field_path": "file"}
    assert "isError" not in api.mcp("read_record_field", **read)
