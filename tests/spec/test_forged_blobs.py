"""Bytes are what they say: no record reaches or replaces those that another one delivered."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from service.place import spelled
from service.records.writing.ingest import Batch
from service.records.intake import Row
from service.records.opening import open_writer
from service.records.writing.streams import open_stream
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.shell import Shell
from tests.helpers.worlds import Connection, House, World

PLAN, FORGED = b"the plan of the house", b"another house"
PLAN_HASH = hashlib.sha256(PLAN).hexdigest()
FORGED_HASH = hashlib.sha256(FORGED).hexdigest()
NAMED: dict[str, Any] = {"blob_id": "plan", "mime_type": "text/plain"}


def row(stream: str, key: str, file: Any, **more: Any) -> Row:
    return worlds.row(stream, key, file=file, **more)


def delivered(content: bytes, blob_id: str = "plan") -> dict[str, Any]:
    return {
        **NAMED,
        "blob_id": blob_id,
        "data_base64": base64.b64encode(content).decode(),
    }


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Two streams of a connection; a private record has delivered the plan."""
    fields = {"title": worlds.text("primary-title"), "file": {"type": "object"}}
    streams = tuple(worlds.stream(name, fields) for name in ("private", "public"))
    rows = (row("private", "p", delivered(PLAN)),)
    return worlds.build(World((Connection("home", "files", "Home", streams, rows),)), tmp_path)


def file_of(api: Api, stream: str, key: str) -> dict[str, Any]:
    body = api.rest(f"/v1/streams/{stream}/records/{key}").body
    found: dict[str, Any] = body["data"]["file"]
    return found


def bytes_of(api: Api, stream: str, key: str) -> bytes:
    """The bytes at the route that is printed for a record."""
    answer = api.get(file_of(api, stream, key)["fetch_url"])
    assert answer.status == 200
    return answer.body


def public(house: House) -> Api:
    return house.api({"connection_id": "home", "stream": "public"})


def test_a_record_that_delivers_a_name_again_replaces_no_bytes(house: House) -> None:
    house.add("home", row("public", "f", delivered(FORGED)))
    api = house.api()
    assert bytes_of(api, "private", "p") == PLAN and bytes_of(api, "public", "f") == FORGED
    answer = api.get("/v1/blobs/plan")
    assert answer.status == 409 and answer.error["code"] == "ambiguous_blob"
    assert set(answer.error["available_blobs"]) == {PLAN_HASH, FORGED_HASH}
    assert {api.get(f"/v1/blobs/{one}").body for one in (PLAN_HASH, FORGED_HASH)} == {PLAN, FORGED}
    assert public(house).get("/v1/blobs/plan").body == FORGED


@pytest.mark.parametrize(
    "forged",
    [
        NAMED,
        {**NAMED, "sha256": PLAN_HASH},
        {**NAMED, "blob_id": PLAN_HASH},
        {**NAMED, "blob_id": f"blob_{PLAN_HASH}", "sha256": PLAN_HASH, "available": True},
    ],
)
def test_data_that_names_a_blob_reaches_nothing(
    house: House, forged: dict[str, Any], tmp_path: Path
) -> None:
    house.add("home", row("public", "f", forged), row("public", "many", [forged, forged]))
    _, token = house.grant({"connection_id": "home", "stream": "public"})
    api = Api(house.app, token)
    for file in (file_of(api, "public", "f"), *file_of(api, "public", "many")):
        assert file["available"] is False and "fetch_url" not in file
    for id in (PLAN_HASH, "plan", f"blob_{PLAN_HASH}"):
        assert api.get(f"/v1/blobs/{id}").status == 404
    read = api.mcp("read_record_field", id="home/public:f", field_path="file")
    assert PLAN.decode() not in str(read) and "/v1/blobs/" not in str(read)
    assert file_of(house.api(), "public", "f")["available"] is False, "nor under a wider grant"
    (tmp_path / "token").write_text(token)
    source = ("--store", spelled(house.path), "--token-file", str(tmp_path / "token"))
    shell = Shell({"RUNG_SECRET_KEY": worlds.SECRET})
    failed = shell.run("export", "blob", "home/public:f", "file", "-o", "-", *source)
    assert failed.exit_code and PLAN.decode() not in failed.output


def test_a_name_that_is_a_hash_hides_no_bytes(house: House) -> None:
    house.add("home", row("public", "f", delivered(FORGED, PLAN_HASH)))
    assert house.api().get(f"/v1/blobs/{PLAN_HASH}").body == PLAN
    assert public(house).get(f"/v1/blobs/{PLAN_HASH}").body == FORGED
    assert bytes_of(public(house), "public", "f") == FORGED


def test_a_record_keeps_the_bytes_that_it_delivered_before(house: House) -> None:
    api = house.api()
    house.add("home", row("private", "p", NAMED, title="A new title"))
    assert bytes_of(api, "private", "p") == PLAN
    house.add("home", row("private", "p", {**NAMED, "sha256": PLAN_HASH, "note": "old"}))
    assert bytes_of(api, "private", "p") == PLAN
    house.add("home", row("private", "p", {**NAMED, "sha256": FORGED_HASH}))
    assert file_of(api, "private", "p")["available"] is False
    assert api.get(f"/v1/blobs/{PLAN_HASH}").status == 404
    house.add("home", row("private", "p", {**NAMED, "sha256": PLAN_HASH}))
    assert file_of(api, "private", "p")["available"] is False, "the bytes are gone"


def test_bytes_that_arrive_later_with_an_equal_record_are_stored(house: House) -> None:
    known = {**NAMED, "size_bytes": len(FORGED), "sha256": FORGED_HASH}
    house.add("home", row("public", "f", known))
    assert file_of(house.api(), "public", "f")["available"] is False
    house.add("home", row("public", "f", {**known, **delivered(FORGED)}))
    assert bytes_of(house.api(), "public", "f") == FORGED


def test_a_replaced_stream_keeps_the_bytes_of_records_that_only_name_them(house: House) -> None:
    with open_writer(house.path) as writer, writer.staging([("home", "private")]) as stage:
        stage.keep_manifests()
        stream, batch = open_stream(writer, "home", "private"), Batch(writer)
        for one in (row("private", "p", NAMED, title="new"), row("private", "q", NAMED)):
            batch.add(stream, one)
        batch.flush()
        stage.publish(batch.counts)
    api = house.api()
    assert bytes_of(api, "private", "p") == PLAN
    assert file_of(api, "private", "q")["available"] is False
    if isinstance(house.path, Path):
        assert "sound" in Shell({"RUNG_STORE": str(house.path)}).ok("check").stderr


def test_the_media_type_is_that_of_the_record_that_delivered_the_bytes_first(house: House) -> None:
    house.add("home", row("public", "f", {**delivered(PLAN), "mime_type": "text/html"}))
    assert house.api().get(f"/v1/blobs/{PLAN_HASH}").headers["Content-Type"] == "text/plain"
    assert file_of(house.api(), "private", "p")["mime_type"] == "text/plain"
    assert json.dumps(file_of(house.api(), "public", "f")).count("text/html") == 1
