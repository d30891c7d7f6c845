"""REST as PDPP clients read it: recorded answers of the reference have the same shape as ours."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from service.rest.blueprint import PDPP_VERSION
from tests.helpers.caller import Local
from tests.spec.scenarios import scenario

RECORDED = Path(__file__).parents[1] / "data" / "pdpp"
WORK = "connection_id=mail-work"

#: A recorded answer, and the equivalent request here.
SAME = {
    "schema_compact": "/v1/schema?view=compact",
    "records_limit2": "/v1/streams/messages/records?limit=2",
    "records_count_exact": "/v1/streams/messages/records?count=exact&limit=1",
    "changes_begin": f"/v1/streams/messages/records?changes_since=beginning&limit=2&{WORK}",
    "search_basic": "/v1/search?q=invoice&limit=3",
    "record_get_shared_conn": f"/v1/streams/messages/records/m_001?{WORK}",
    "agg_count": "/v1/streams/messages/aggregate?metric=count",
    "agg_group": "/v1/streams/messages/aggregate?metric=count&group_by=folder",
    "agg_conn_time": "/v1/streams/messages/aggregate?metric=count&group_by_time=received_at"
    f"&granularity=day&limit=2&{WORK}",
    "fw_default": f"/v1/streams/messages/records/m_long/field-window?field=body&{WORK}",
    "streams_list": "/v1/streams",
    "connectors": "/v1/connectors",
}
#: What is specific to the reference: manifests, measured freshness, and what clients skip.
APART = {
    "schema_compact": {"bearer.client_id", "connectors.streams.field_capabilities"},
    "records_limit2": {"data.data"},
    "records_count_exact": {"data.data"},
    "changes_begin": {"data.data"},
    "connectors": {"data.streams"},
    # Present only if known: the count of a page, a size that was requested, times.
    # A score would reveal how often words occur outside the grant; there is `rank` instead.
    "search_basic": {"meta.recall.ranked_candidate_count", "data.score"},
    "record_get_shared_conn": {"data", "record_json_bytes"},
    "streams_list": {"data.last_updated", "data.freshness.captured_at"},
}


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((RECORDED / f"{name}.json").read_bytes())
    return found


def kind(value: Any) -> str:
    """The type of a JSON value; whole and broken numbers are one."""
    return "number" if type(value) in (int, float) else type(value).__name__


def missing(theirs: Any, ours: Any, path: str, apart: set[str]) -> list[str]:
    """Every path of a recorded answer that ours lacks or has with another type."""
    if path in apart or theirs is None:
        return []
    if ours is None or kind(theirs) != kind(ours):
        return [] if ours is None and path else [f"{path}: {kind(theirs)} became {kind(ours)}"]
    if isinstance(theirs, list):
        return missing(theirs[0], ours[0], path, apart) if theirs and ours else []
    if not isinstance(theirs, dict):
        return []
    found = []
    for name, value in theirs.items():
        inner = f"{path}.{name}".lstrip(".")
        if inner in apart:
            continue
        if name not in ours:
            found.append(f"{inner} is missing")
        else:
            found += missing(value, ours[name], inner, apart)
    return found


@pytest.mark.parametrize("name", SAME)
@scenario("000/parity/rest-describes-evidence")
def test_an_answer_has_every_key_and_type_of_the_recorded_one(small: Local, name: str) -> None:
    there = recorded(name)
    answer = small.api.get(SAME[name])
    assert answer.status == there["status"]
    assert missing(there["body"], answer.body, "", APART.get(name, set())) == []
    assert answer.headers["Content-Type"] == there["headers"]["content-type"]
    assert answer.headers["PDPP-Version"] == there["headers"]["pdpp-version"] == PDPP_VERSION


@pytest.mark.parametrize(
    ("name", "target", "status"),
    [("unknown_v1", "/v1/zzz", 404), ("search_noq", "/v1/search", 400)],
)
def test_an_error_has_the_keys_of_the_recorded_one(
    small: Local, name: str, target: str, status: int
) -> None:
    error = small.refused(target, status)
    assert {"type", "code", "message", "request_id"} <= set(error)
    assert recorded(name)["status"] == status
    theirs = recorded(name)["body"].get("error")
    if isinstance(theirs, dict):
        assert error["type"] == theirs["type"]


@pytest.mark.parametrize("target", SAME.values())
def test_every_envelope_has_links_and_meta(small: Local, target: str) -> None:
    body = small.get(target)
    assert body["links"]["self"] == target
    assert {"count", "warnings"} <= set(body["meta"])


def test_links_next_walks_a_list_to_its_end(small: Local) -> None:
    target: str | None = "/v1/streams/messages/records?limit=10"
    seen: list[tuple[str, str]] = []
    while target:
        body = small.get(target)
        seen += [(row["connection_id"], row["id"]) for row in body["data"]]
        target = body["links"]["next"]
        assert (target is not None) == body["has_more"]
    assert len(seen) == len(set(seen)) == 26


def test_a_request_id_is_echoed_in_both_headers_or_made(small: Local) -> None:
    for name in ("Request-Id", "X-Request-Id"):
        answer = small.api.get("/v1/schema", **{"Request-Id": "", name: "my.id-1"})
        assert answer.headers["X-Request-Id"] == answer.headers["Request-Id"] == "my.id-1"
    made = small.api.get("/v1/schema", **{"Request-Id": "not ok!"}).headers["Request-Id"]
    assert made.startswith("req_")
    error = small.api.get("/v1/zzz", **{"Request-Id": "my.id-2"})
    assert error.error["request_id"] == error.headers["Request-Id"]


def test_another_version_of_the_contract_is_refused_and_ours_is_taken(small: Local) -> None:
    assert small.api.get("/v1/schema", **{"PDPP-Version": PDPP_VERSION}).status == 200
    answer = small.api.get("/v1/schema", **{"PDPP-Version": "2020-01-01"})
    assert answer.status == 400 and answer.error["code"] == "unsupported_version"


def test_answers_are_private_and_never_sniffed(small: Local) -> None:
    headers = small.api.get("/v1/schema").headers
    assert headers["Cache-Control"] == "private, no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Authorization" in headers["Vary"]


@pytest.mark.parametrize(
    "target",
    [
        "/v1/streams/messages/records?limit=abc",
        "/v1/streams/messages/records?offset=3",
        "/v1/streams/messages/records?order=up",
        "/v1/search?q=x&semantic=true",
        "/v1/streams?limit=3",
        "/v1/schema?detail=full",
        "/v1/schema?detail=some",
        "/v1/streams/messages/aggregate",
        f"/v1/streams/messages/records/m_long/field-window?{WORK}",
    ],
)
def test_what_is_out_of_bounds_or_unknown_is_400_and_names_the_parameter(
    small: Local, target: str
) -> None:
    assert small.refused(target, 400)["param"]


def test_the_deprecated_alias_works_and_warns(small: Local) -> None:
    body = small.get("/v1/streams/messages/records?connector_instance_id=mail-home")
    assert {row["connection_id"] for row in body["data"]} == {"mail-home"}
    assert [w["code"] for w in body["meta"]["warnings"]] == ["deprecated_alias_used"]
    error = small.refused(
        f"/v1/streams/messages/records?connector_instance_id=mail-home&{WORK}", 400
    )
    assert error["code"] == "invalid_argument"


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "PATCH"])
def test_there_is_nothing_to_write(small: Local, verb: str) -> None:
    answer = small.api.send(verb, "/v1/streams/messages/records", b"{}", {})
    assert answer.status == 405 and "GET" in answer.headers["Allow"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/event-subscriptions",
        "/v1/streams/messages/records/a/b",
        "/v1/search/semantic",
    ],
)
def test_unknown_routes_are_404_in_the_same_body(small: Local, path: str) -> None:
    assert small.refused(path, 404)["code"] == "not_found"


def test_a_record_id_is_one_segment_whatever_is_in_it(small: Local) -> None:
    segment = quote("a/1.png", safe="")
    body = small.get(f"/v1/streams/attachments/records/{segment}?{WORK}")
    assert body["id"] == "a/1.png"


def test_a_long_field_comes_whole_on_the_detail_route(hostile: Local) -> None:
    target = "/v1/streams/long/records/ascii"
    whole = hostile.get(target)["data"]["text"]
    assert isinstance(whole, str) and len(whole) > 290_000
    assert hostile.get(f"{target}?fields=text")["data"]["text"] == whole
