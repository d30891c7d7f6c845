"""`POST /v1/search`: the same answers to arguments too long for an address."""

from typing import Any

import orjson
import pytest

from evidence.limits import BUDGETS
from tests.helpers.api import Answer
from tests.helpers.caller import Local
from tests.helpers.posting import JSON

ASKED: tuple[dict[str, Any], ...] = (
    {"q": "invoice number"},
    {"q": "standup*", "limit": 3},
    {"q": "standup*", "streams": ["messages", "diary"], "limit": 2},
    {"q": "invoice", "connection_id": "mail-work", "limit": 5},
    {"q": "invoice", "streams": ["messages"], "filter": {"folder": "inbox"}},
    {"q": "invoice", "connector_instance_id": "mail-work"},
    {"q": "x", "limit": 0},
    {"q": "x", "cursor": "garbage"},
    {"q": "x", "streams": ["secrets"]},
    {"q": "x", "streems": ["messages"]},
    {},
)


def post(small: Local, raw: bytes, **headers: str) -> Answer:
    return small.api.send("POST", "/v1/search", raw, {**JSON, **headers})


def without_links(answer: Answer) -> tuple[int, dict[str, Any]]:
    return answer.status, {key: found for key, found in answer.body.items() if key != "links"}


@pytest.mark.parametrize("asked", ASKED)
def test_a_post_answers_as_the_get_of_the_same_arguments(
    small: Local, asked: dict[str, Any]
) -> None:
    posted = post(small, orjson.dumps(asked))
    assert without_links(posted) == without_links(small.api.rest("/v1/search", **asked))


def test_posted_pages_lead_to_the_end(small: Local) -> None:
    body: dict[str, Any] = {"q": "standup*", "limit": 4}
    keys, whole = list[str](), small.get("/v1/search?q=standup*&limit=100")["data"]
    while True:
        page = post(small, orjson.dumps(body)).body
        keys += [hit["record_key"] for hit in page["data"]]
        if not page["has_more"]:
            break
        body["cursor"] = page["next_cursor"]
    assert keys == [hit["record_key"] for hit in whole] and len(whole) > 4


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"", 400),
        (b'{"q": 7}', 400),
        (b'{"q": "x", "connector_id": 7}', 400),
        (b'{"q": "x", "filter": "folder=inbox"}', 400),
        (b'"' + b"x" * BUDGETS.body_bytes + b'"', 413),
    ],
)
def test_a_bad_body_is_refused(small: Local, raw: bytes, status: int) -> None:
    answer = post(small, raw)
    assert answer.status == status and answer.error["message"], answer.body


def test_a_form_of_another_page_and_a_query_beside_the_body_are_refused(small: Local) -> None:
    raw = b'{"q": "invoice"}'
    assert post(small, raw, **{"Content-Type": "text/plain"}).status == 415
    assert small.api.send("POST", "/v1/search?limit=2", raw, JSON).status == 400
    assert post(small, raw, Origin="https://evil.example").status == 403


def test_only_search_is_posted_and_the_header_says_what_works(small: Local) -> None:
    assert small.api.send("POST", "/v1/schema", b"{}", JSON).status == 405
    refused = small.api.send("PUT", "/v1/search", b"{}", JSON)
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD, OPTIONS, POST")


def test_a_next_page_whose_address_would_be_too_long_is_offered_by_its_cursor(
    small: Local,
) -> None:
    asked = {"q": "standup*", "limit": 3}
    short = small.api.rest("/v1/search", **asked).body
    assert len(short["links"]["next"]) < BUDGETS.link_bytes
    long = small.api.rest("/v1/search", **asked, subject_id="x" * BUDGETS.link_bytes).body
    assert long["links"]["next"] is None and long["has_more"]
    assert long["next_cursor"] == short["next_cursor"]


def test_both_http_surfaces_refuse_a_large_body_in_the_same_words(small: Local) -> None:
    raw = b'"' + b"x" * BUDGETS.body_bytes + b'"'
    rest, mcp = post(small, raw).error, small.api.post(raw).body["error"]["data"]
    same = ("code", "message", "hint", "limit")
    assert [rest.get(name) for name in same] == [mcp.get(name) for name in same]
