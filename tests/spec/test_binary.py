"""Models see only the metadata of bytes; blobs are read over HTTP, within the grant."""

import base64
import hashlib

import pytest

from tests.helpers.caller import Local
from tests.helpers.reading import printed_calls
from tests.helpers.small import LETTER, PIXELS
from tests.helpers.stores import client
from tests.helpers.worlds import House
from tests.spec.scenarios import scenario

PLAN = "mail-work/attachments:a%2F1.png"
LETTER_ID = "mail-work/attachments:a%2F2.txt"
PIXEL_BYTES = base64.b64decode(PIXELS)
NAME_ROUTE = "/v1/blobs/plan?connection_id=mail-work"
PLAN_ROUTE = f"/v1/blobs/{hashlib.sha256(PIXEL_BYTES).hexdigest()}?connection_id=mail-work"


@scenario("001/shared/binary-stays-metadata", "000/large/metadata-and-a-way-on")
def test_no_tool_ever_shows_base64(small: Local) -> None:
    answers = [
        small.ok("query_records", stream="attachments"),
        small.ok("query_records", stream="notes", limit=100),
        small.ok("fetch", id=PLAN),
        small.ok("fetch", id="notes/notes:picture"),
        small.ok("fetch", id="notes/notes:picture", fields=["image"]),
        small.ok("read_record_field", id=PLAN, field_path="blob_ref"),
        small.ok("read_record_field", id="notes/notes:picture", field_path="image"),
    ]
    for answer in answers:
        for piece in (PIXELS[:60], PIXELS[300:360]):
            assert piece not in answer.text and piece not in str(answer.structured)


@scenario("001/shared/binary-stays-metadata")
def test_a_blob_shows_its_type_its_size_its_hash_and_where_its_bytes_are(small: Local) -> None:
    for answer in (
        small.ok("fetch", id=PLAN),
        small.ok("read_record_field", id=PLAN, field_path="blob_ref"),
        small.ok("query_records", stream="attachments", connection_id="mail-work"),
    ):
        assert "image/png" in answer.text and "1024" in answer.text
        assert hashlib.sha256(PIXEL_BYTES).hexdigest() in answer.text
        assert PLAN_ROUTE in answer.text
    for route in (PLAN_ROUTE, NAME_ROUTE):
        got = small.api.get(route)
        assert got.status == 200 and got.body == PIXEL_BYTES


def test_base64_in_an_ordinary_field_says_its_size_and_how_to_inspect_it(small: Local) -> None:
    answer = small.ok("query_records", stream="notes", filter={"id": "picture"})
    (call,) = printed_calls(answer.text)
    told = small.ok(call.tool, **call.args)
    assert "type=binary" in told.lines[0] and "size_bytes=1024" in told.lines[0]
    assert told.structured["binary"]["size_bytes"] == 1024


def test_a_text_blob_is_read_as_text(small: Local) -> None:
    answer = small.ok("read_record_field", id=LETTER_ID, field_path="blob_ref")
    assert answer.structured["window"]["text"] == LETTER


def test_blob_bytes_come_whole(small: Local) -> None:
    whole = small.api.get(PLAN_ROUTE)
    assert whole.headers["Content-Type"] == "image/png"
    assert whole.headers["Content-Length"] == "1024"
    assert whole.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=1000-", 1000, 1024),
        ("bytes=-24", 1000, 1024),
        ("bytes=0-9999", 0, 1024),
    ],
)
def test_a_range_is_206_with_the_bytes_asked_for(
    small: Local, asked: str, start: int, stop: int
) -> None:
    answer = small.api.get(PLAN_ROUTE, Range=asked)
    assert answer.status == 206 and answer.body == PIXEL_BYTES[start:stop]
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/1024"


def test_a_range_outside_the_blob_is_416(small: Local) -> None:
    answer = small.api.get(PLAN_ROUTE, Range="bytes=5000-6000")
    assert answer.status == 416 and answer.headers["Content-Range"] == "bytes */1024"


def test_a_blob_outside_the_grant_is_not_there(small_house: House) -> None:
    narrow = client(small_house, {"connection_id": "notes"})
    assert narrow.api.get("/v1/blobs/plan").status == 404
    assert narrow.api.get("/v1/blobs/nonsense").status == 404
    assert narrow.api.get(PLAN_ROUTE).status == 404


def test_a_name_with_other_bytes_in_each_connection_asks_for_one(small: Local) -> None:
    error = small.refused("/v1/blobs/letter", 409)
    assert error["retry_with"] == "connection_id"
    assert small.api.get("/v1/blobs/plan").body == PIXEL_BYTES, "the same in both"
