"""No dead ends: whatever an answer leaves out is reached by the calls and routes it prints."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import dead_ends, small
from tests.helpers.api import Api
from tests.helpers.caller import Answer, Caller, over_http
from tests.helpers.dead_ends import FIELDS, FILM, GROUPS, ODD_KEYS, PICTURE, WIDE, Walk
from tests.helpers.reading import ours, printed_calls
from tests.helpers.reading import routes as routes_of
from tests.helpers.reading import structured_calls
from tests.helpers.remote import caller_of
from tests.helpers.server import serving
from tests.helpers.sources import of_grants
from tests.helpers.stores import build


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A real server of the store: its address and a token."""
    house = build(dead_ends.connections(), tmp_path_factory.mktemp("dead-ends"))
    with serving("wsgi:app", house.environment) as url:
        yield url, house.grant()[1]


@pytest.fixture
def caller(served: tuple[str, str]) -> Caller:
    return over_http(*served)


@pytest.fixture
def api(served: tuple[str, str]) -> Api:
    return Api(*served)


@pytest.fixture
def walk(caller: Caller, api: Api) -> Walk:
    return Walk(caller, api)


@pytest.mark.parametrize("stream", ["plain", "titled"])
def test_every_field_of_a_wide_record_is_reached_from_its_document(walk: Walk, stream: str) -> None:
    found = walk.follow("fetch", id=f"c/{stream}:w").fields
    expected = {"id", *FIELDS} | ({"title", "body"} if stream == "titled" else set())
    assert found == expected


def test_every_field_of_a_wide_record_is_reached_from_a_list(walk: Walk) -> None:
    walk.follow("query_records", stream="plain")
    listed = next(iter(walk.answers.values()))[1].structured["data"]["data"][0]["data"]
    whole = {name for name, value in listed.items() if value == WIDE.get(name)}
    assert walk.fields | whole >= {*FIELDS}


def test_a_call_with_as_many_fields_as_it_takes_leads_to_those_after_them(
    walk: Walk,
) -> None:
    assert walk.follow("fetch", id="c/plain:w", fields=list(FIELDS[:100])).fields == {*FIELDS}


def test_a_call_with_fewer_fields_offers_no_others(caller: Caller) -> None:
    answer = caller.ok("fetch", id="c/plain:w", fields=list(FIELDS[:3]))
    assert printed_calls(answer.text) == []


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"group_by": "kind"}, GROUPS),
        ({"group_by": "kind", "limit": 100}, GROUPS),
        ({"group_by_time": "at", "granularity": "year", "limit": 90}, 265),
        ({"group_by": "kind", "filter": {"at": {"gte": "1900-01-01"}}}, 65),
    ],
)
def test_every_group_is_reached_once(walk: Walk, asked: dict[str, object], count: int) -> None:
    walk.follow("aggregate", stream="visits", metric="count", **asked)
    pages = [answer.structured["data"] for _, answer in walk.answers.values()]
    keys = [group["key"] for page in pages for group in page["groups"]]
    assert len(keys) == len(set(keys)) == count
    assert {page["group_count"] for page in pages} == {count}
    left = sum(group["count"] for page in pages for group in page["groups"])
    for page in pages:
        left -= sum(group["count"] for group in page["groups"])
        assert page["other_count"] == left
    assert left == 0 and "next_cursor" not in pages[-1]


def test_groups_are_paged_over_rest_by_their_links(api: Api) -> None:
    target: str | None = "/v1/streams/visits/aggregate?metric=count&group_by=kind&limit=100"
    keys: list[str] = []
    while target is not None:
        answer = api.get(target)
        assert answer.status == 200, answer
        keys += [group["key"] for group in answer.body["groups"]]
        target = answer.body["links"]["next"]
        assert (target is None) == (answer.body["next_cursor"] is None)
    assert len(keys) == len(set(keys)) == GROUPS


def test_a_cursor_of_groups_fits_its_own_call_only(caller: Caller) -> None:
    asked = {"stream": "visits", "metric": "count", "group_by": "kind", "limit": 3}
    cursor = caller.ok("aggregate", **asked).structured["data"]["next_cursor"]
    for other in ({"filter": {"at": {"gte": "1900-01-01"}}}, {"cursor": "garbage"}):
        answer = caller.fails("aggregate", **{**asked, "cursor": cursor, **other})
        assert answer.error["code"] == "invalid_cursor"
    bare = caller.fails("aggregate", stream="visits", metric="count", cursor=cursor)
    assert bare.error["param"] == "cursor"


BASE64 = {
    "image": ("image/png", PICTURE),
    "film": ("video/mp4", FILM),
    "undeclared": ("application/octet-stream", PICTURE),
    "uri": ("image/gif", PICTURE),
    "with, comma": ("application/octet-stream", PICTURE),
}


def answers_about(caller: Caller, field: str) -> list[Answer]:
    """All three tools on one field of the binary record."""
    return [
        caller.ok("query_records", stream="binary", fields=[field]),
        caller.ok("fetch", id="c/binary:b", fields=[field]),
        caller.ok("read_record_field", id="c/binary:b", field_path=field),
    ]


@pytest.mark.parametrize("field", BASE64)
def test_base64_has_one_media_type_one_size_and_a_route_on_every_surface(
    caller: Caller, api: Api, field: str
) -> None:
    media_type, content = BASE64[field]
    routes = set()
    for answer in answers_about(caller, field):
        own = ours(answer.text)
        (route,) = set(routes_of(answer.text))
        routes.add(route)
        assert media_type in own and str(len(content)) in own
        assert "size_chars" not in answer.text
        sizes = set(re.findall(r"size_bytes\W+(\d+)", answer.text))
        assert sizes <= {str(len(content))}
    (route,) = routes
    found = api.get(route)
    assert found.status == 200
    text = found.body["data"][field]
    assert base64.b64decode(text.rpartition(",")[2]) == content
    listed = api.get("/v1/streams/binary/records").body["data"][0]["data"][field]
    window = api.rest("/v1/streams/binary/records/b/field-window", field=field).body["binary"]
    for known in (listed, window):
        assert (known["mime_type"], known["size_bytes"]) == (media_type, len(content))
        assert known["fetch_url"] == route and "size_chars" not in known


def test_the_route_of_a_blob_stands_on_our_own_lines(caller: Caller, api: Api) -> None:
    field = "blob"
    for answer in answers_about(caller, field):
        assert "elsewhere.example" not in answer.text
        (route,) = set(routes_of(answer.text))
        assert api.get(route).body == PICTURE
    listed = caller.ok("query_records", stream="binary", fields=[field])
    (told,) = listed.structured["content_ladder"]["records"][0]["bytes"]
    assert told["fetch_url"] in ours(listed.text)
    assert told["size_bytes"] == len(PICTURE)


@pytest.mark.parametrize("field", ["gone", "elsewhere"])
def test_a_blob_whose_bytes_did_not_arrive_says_so_and_has_no_route(
    caller: Caller, api: Api, field: str
) -> None:
    for answer in answers_about(caller, field):
        assert "not stored here" in ours(answer.text)
        assert "/v1/blobs" not in answer.text and "elsewhere.example" not in answer.text
    for target in ("/v1/streams/binary/records", "/v1/streams/binary/records/b"):
        body = api.get(target).body
        data = body["data"][0]["data"] if "records/b" not in target else body["data"]
        assert data[field]["available"] is False and "fetch_url" not in data[field]


def test_each_blob_of_a_list_has_its_own_line(caller: Caller, api: Api) -> None:
    lines = ours(caller.ok("query_records", stream="binary", fields=["files"]).text).split("\n")
    first, second = [line for line in lines if line.startswith("  /files/")]
    assert "/v1/blobs/" in first and "not stored here" in second


def test_every_route_and_call_about_binary_fields_answers(walk: Walk) -> None:
    walk.follow("query_records", stream="binary").follow("fetch", id="c/binary:b")
    assert len(walk.routes) == 6  # the blobs of two fields have the same bytes


def test_printed_ids_are_taken_exactly_as_they_are_printed(caller: Caller) -> None:
    seen = set()
    for number in range(len(ODD_KEYS)):
        answer = caller.ok("search", query=f'"oddity {number}"')
        (printed,) = re.findall(r" first_id=(\S+)", answer.lines[0])
        found = caller.ok("fetch", id=printed)
        assert found.structured["id"] == printed
        read = caller.ok("read_record_field", id=printed, field_path="title")
        (again,) = re.findall(r" id=(\S+)", read.lines[0])
        assert again == printed
        seen.add(found.structured["metadata"]["record_id"])
    assert seen == {*ODD_KEYS}


def test_both_channels_of_every_answer_offer_the_same_calls(caller: Caller) -> None:
    for stream in ("plain", "titled", "visits", "binary", "odd"):
        answer = caller.ok("query_records", stream=stream, limit=100)
        printed, as_data = printed_calls(answer.text), structured_calls(answer.structured)
        assert {one.key() for one in printed} == {one.key() for one in as_data}


def test_groups_of_a_member_of_a_package_are_paged_too(tmp_path: Path) -> None:
    house = build([*dead_ends.connections(), *small.connections()], tmp_path)
    grants = {"odd": ({"connection_id": "c"},), "notes": ({"connection_id": "notes"},)}
    caller = caller_of(of_grants(house, grants))
    walk = Walk(caller, house.api())
    walk.follow("aggregate", stream="visits", metric="count", group_by="kind", limit=100)
    pages = [answer.structured["data"]["groups"] for _, answer in walk.answers.values()]
    assert len({group["key"] for page in pages for group in page}) == GROUPS
