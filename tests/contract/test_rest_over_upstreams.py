"""`/v1` answers the same from an upstream as from the store, and as the upstream would itself."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask

from service import bootstrap, openapi, settings
from service.app import create_app
from service.openapi import Mounted
from tests.helpers.api import Answer, Api, record_path
from tests.helpers.caller import Local
from tests.helpers.openapi import Described
from tests.helpers.replay import RECORDED, Recorded, recorded, refusals, replaying
from tests.helpers.server import serving
from tests.helpers.worlds import House

LONG = record_path("messages", "m_long", "field-window") + "?connection_id=mail-work"
TARGETS = (
    "/v1/schema?view=compact",
    "/v1/schema?detail=full&stream=notes",
    "/v1/schema?stream=secrets",
    "/v1/streams",
    "/v1/streams?connection_id=notes",
    "/v1/streams/messages?connection_id=mail-home",
    "/v1/connectors",
    "/v1/streams/messages/records?limit=3&count=exact&window=exact",
    "/v1/streams/messages/records?filter[folder]=inbox&filter[size][gte]=1&sort=-received_at",
    "/v1/streams/messages/records?limit=3&order=asc&connection_id=mail-work&fields=id,subject",
    "/v1/streams/messages/records?expand=attachments&expand_limit[attachments]=1&limit=2",
    "/v1/streams/messages/records?view=basic&limit=2",
    "/v1/streams/diary/records?changes_since=beginning&limit=2",
    "/v1/streams/diary/records?connection_id=elsewhere",
    "/v1/streams/secrets/records",
    f"{record_path('attachments', 'a/1.png')}?connection_id=mail-work",
    f"{record_path('messages', 'm_long')}?connection_id=mail-work&fields=body",
    record_path("messages", "m_001"),
    record_path("messages", "nobody"),
    f"{LONG}&field=body&q=invoice+number&before_chars=20&after_chars=30",
    f"{LONG}&field=body&offset_chars=16000&limit_chars=99",
    f"{LONG}&field=body&q=zebra",
    f"{LONG}&field=nothing",
    "/v1/streams/messages/aggregate?metric=count&group_by=folder",
    "/v1/streams/messages/aggregate?metric=sum&field=subject",
    "/v1/search?q=invoice&limit=2",
    "/v1/search?q=invoice&streams=messages&filter[folder]=inbox",
    "/v1/search?q=invoice&cursor=garbage",
    "/v1/blobs/letter?connection_id=mail-work",
    "/v1/blobs/nothing",
)
#: What we refuse by ourselves, in our words; and what clients of ours are told instead of a 401.
STATUSES = {"records_conn_conflict": 400, "stream_detail_unknown": 403}
NOT_GRANTED = {"context.stream_not_allowed": 403, "context.instance_mismatch": 404}


DESCRIBED = Described(openapi.document(Mounted(records=True, papers=False)))


@pytest.fixture(autouse=True, scope="module")
def no_store_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where there is no store, an upstream is all there is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("empty"))
        yield


def over(url: str) -> Flask:
    """The whole application over an upstream."""
    found = {"RUNG_UPSTREAM_URL": url, "RUNG_THREADS": "16"}
    return create_app(bootstrap.build(settings.load(found)))


@pytest.fixture(scope="module")
def remote(small_house: House, small: Local) -> Iterator[Api]:
    """A client of the small store, with a server of ours in between."""
    with serving("wsgi:app", small_house.environment) as url:
        yield Api(over(url), small.api.token)


@pytest.mark.parametrize("target", TARGETS)
def test_an_upstream_of_our_kind_and_its_store_answer_alike(
    remote: Api, small: Local, target: str
) -> None:
    here, there = small.api.get(target), remote.get(target)
    assert (there.status, there.body) == (here.status, here.body)
    for name in ("Content-Type", "ETag", "Content-Disposition", "PDPP-Version"):
        assert there.headers.get(name) == here.headers.get(name)


def test_ranges_of_a_blob_come_through(remote: Api, small: Local) -> None:
    target = "/v1/blobs/plan?connection_id=mail-work"
    here = small.api.get(target, Range="bytes=5-99")
    there = remote.get(target, Range="bytes=5-99")
    assert (there.status, there.body) == (here.status, here.body) == (206, bytes(range(5, 100)))


@pytest.fixture(scope="module")
def reference() -> Iterator[Flask]:
    with replaying() as server:
        yield over(server.url)


def asked(app: Flask, found: Recorded) -> Answer:
    return Api(app, found["token"]).get(found["request"].split(" ", 1)[1])


def of_clients(found: Recorded) -> bool:
    """Requests of client tokens to routes we have, which asks more than we ask ourselves."""
    method, target = found["request"].split(" ", 1)
    known = target.startswith(("/v1/streams/messages", "/v1/search?", "/v1/streams?"))
    return method == "GET" and found["token"] == "full" and known


#: One answers to a header; the others we read from the record, which nobody recorded.
APART = ("version_bad", "fw_blob", "fw_number")
REFUSED = [found for found in refusals() if of_clients(found) and found["name"] not in APART]


@pytest.mark.parametrize("found", REFUSED, ids=lambda found: str(found["name"]))
def test_recorded_refusals_keep_their_status_and_code(reference: Flask, found: Recorded) -> None:
    answer = asked(reference, found)
    said = found["body"]["error"]
    code = said["code"] if isinstance(said, dict) else "invalid_argument"
    status = STATUSES.get(found["name"], NOT_GRANTED.get(code, found["status"]))
    assert answer.status == status
    if code not in ("invalid_window", "invalid_field_path"):  # bounds we check first, in our words
        assert answer.error["code"] == code
    DESCRIBED.check("get", found["request"].split(" ", 1)[1], answer)


GOOD = sorted(
    path.stem
    for path in RECORDED.glob("*.json")
    if path.stem != "refusals" and of_clients({"token": "", "request": " ", **recorded(path.stem)})
)


@pytest.mark.parametrize("name", GOOD)
def test_recorded_answers_come_through(reference: Flask, name: str) -> None:
    found = recorded(name)
    answer = asked(reference, found)
    assert answer.status == 200
    assert kept(answer.body) == kept(found["body"])
    DESCRIBED.check("get", found["request"].split(" ", 1)[1], answer)


def kept(body: Any) -> Any:
    """What must be the same: all but links, warnings, offsets that were wrong, and shared lists."""
    if isinstance(body, dict):
        apart = ("links", "warnings", "end_chars", "next_offset_chars")
        shared = body.get("has_more") and "next_cursor" not in body
        names = [name for name in body if name not in apart and not (shared and name == "data")]
        return {name: kept(body[name]) for name in names}
    return [kept(one) for one in body] if isinstance(body, list) else body
