"""Ids that nobody would choose work on every surface: nothing is cut, split or decoded twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evidence import handles, pointer
from evidence.handles import RecordRef
from tests.helpers import worlds
from tests.helpers.api import Api, path, record_path
from tests.helpers.server import serving
from tests.helpers.uris import record_uri
from tests.helpers.worlds import ODD_CONNECTION, ODD_FIELD, ODD_IDS, ODD_STREAM

WHERE = pointer.path_of(ODD_FIELD)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(worlds.odd_ids(), tmp_path_factory.mktemp("odd"))


@pytest.fixture(scope="module", params=["in process", "gunicorn"])
def api(request: pytest.FixtureRequest, house: worlds.House) -> Iterator[Api]:
    """Every test runs against the application itself and against a real server in front of it."""
    token = house.grant()[1]
    if request.param == "in process":
        yield Api(house.app, token)
        return
    with serving("service.app:create_app()", house.environment) as base:
        yield Api(base, token)


@pytest.fixture(params=ODD_IDS, ids=[ascii(key)[:20] for key in ODD_IDS])
def key(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def text_of(key: str) -> str:
    return f"the oddity number{ODD_IDS.index(key) + 1}"


def hit_of(api: Api, key: str) -> dict[str, Any]:
    """The one hit of the search for a record."""
    found = api.mcp("search", query=f'"{text_of(key)}"')["structuredContent"]
    (rung,) = found["content_ladder"]["records"]
    assert found["results"][0]["id"] == rung["id"]
    return {**found["results"][0], **rung}


def test_a_printed_id_is_on_one_line_and_parses_back(api: Api, key: str) -> None:
    hit = hit_of(api, key)
    assert handles.parse(hit["id"]) == RecordRef(ODD_STREAM, key, ODD_CONNECTION)
    assert not any(char.isspace() for char in hit["id"])
    assert (hit["record_id"], hit["stream"]) == (key, ODD_STREAM)
    text = api.mcp("search", query=f'"{text_of(key)}"')["content"][0]["text"]
    assert f"1 {hit['id']} " in text


def test_a_found_id_is_fetched(api: Api, key: str) -> None:
    hit = hit_of(api, key)
    found = api.mcp("fetch", id=hit["id"])["structuredContent"]
    assert found["id"] == hit["id"]
    assert found["metadata"]["record_id"] == key
    assert text_of(key) in found["text"]


def test_the_read_of_a_hit_reads_its_field(api: Api, key: str) -> None:
    hit = hit_of(api, key)
    (evidence,) = hit["evidence"]
    assert "read" not in evidence, "a field that is shown whole has no call of its own"
    args = {"id": hit["id"], "field_path": evidence["field_path"]}
    found = api.mcp("read_record_field", **args)["structuredContent"]
    assert found["window"]["text"] == text_of(key)
    assert found["record"]["record_id"] == key


def test_every_accepted_spelling_reads_the_same_record(api: Api, key: str) -> None:
    ref = RecordRef(ODD_STREAM, key, ODD_CONNECTION)
    short = str(RecordRef(ODD_STREAM, key))
    spellings = (str(ref), short, record_uri(ref))
    texts = {api.mcp("fetch", id=spelling)["content"][0]["text"] for spelling in spellings}
    assert len(texts) == 1
    named = api.mcp("fetch", id=short, connection_id=ODD_CONNECTION)
    assert named["content"][0]["text"] in texts


def test_a_record_is_read_by_its_uri(api: Api, key: str) -> None:
    ref = RecordRef(ODD_STREAM, key, ODD_CONNECTION)
    uri = record_uri(ref)
    (content,) = api.read(uri)["result"]["contents"]
    assert content["uri"] == uri
    assert content["text"] == api.mcp("fetch", id=str(ref))["content"][0]["text"]


def test_a_field_is_read_by_its_uri(api: Api, key: str) -> None:
    ref = RecordRef(ODD_STREAM, key, ODD_CONNECTION)
    uri = handles.field_window_uri(ref, WHERE, offset_chars=4, limit_chars=6)
    (content,) = api.read(uri)["result"]["contents"]
    assert "\noddity\n" in content["text"]
    args = {"id": str(ref), "field_path": WHERE, "offset_chars": 4, "limit_chars": 6}
    assert content["text"] == api.mcp("read_record_field", **args)["content"][0]["text"]


def test_the_hidden_uri_of_a_window_reads_it_again(api: Api, key: str) -> None:
    ref = RecordRef(ODD_STREAM, key, ODD_CONNECTION)
    result = api.mcp("read_record_field", id=str(ref), field_path=WHERE)
    (content,) = api.read(result["_meta"]["rung/resource"])["result"]["contents"]
    assert text_of(key) in content["text"]


def test_rest_reads_the_record_by_its_encoded_path(api: Api, key: str) -> None:
    status, _, body = api.rest(record_path(ODD_STREAM, key), connection_id=ODD_CONNECTION)
    assert (status, body["id"]) == (200, key)
    assert body["data"][ODD_FIELD] == text_of(key)
    assert api.rest(record_path(ODD_STREAM, key)).body["data"] == body["data"]


def test_rest_reads_the_field_by_its_encoded_path(api: Api, key: str) -> None:
    address = record_path(ODD_STREAM, key, "field-window")
    status, _, body = api.rest(address, field=WHERE, q="oddity")
    assert (status, body["record_id"]) == (200, key)
    assert body["window"]["text"] == text_of(key).removeprefix("the ")
    assert body["url"] == address


def test_addresses_in_rest_hits_lead_back(api: Api, key: str) -> None:
    (hit,) = api.rest("/v1/search", q=f'"{text_of(key)}"').body["data"]
    assert api.get(hit["record_url"]).body["id"] == key
    (excerpt,) = hit["evidence_excerpts"]
    assert text_of(key) == api.get(excerpt["links"]["read"]).body["window"]["text"]


def test_cursors_lead_across_all_records_once(api: Api) -> None:
    listed, cursor = list[str](), None
    for _ in ODD_IDS:
        args = {"stream": ODD_STREAM, "limit": 3, "fields": ["id"]} | (
            {"cursor": cursor} if cursor else {}
        )
        data = api.mcp("query_records", **args)["structuredContent"]["data"]
        listed += worlds.keys_of(data["data"])
        cursor = data.get("next_cursor")
        if cursor is None:
            break
    assert listed == list(reversed(ODD_IDS))


def test_rest_links_lead_across_all_hits_once(api: Api) -> None:
    found, target = list[str](), "/v1/search?q=oddity&limit=7"
    while target:
        body = api.get(target).body
        found += worlds.keys_of(body["data"])
        target = body["links"]["next"]
    assert sorted(found) == sorted(ODD_IDS)


def test_a_grant_of_single_records_takes_odd_ids(house: worlds.House, key: str) -> None:
    entry = {"connection_id": ODD_CONNECTION, "stream": ODD_STREAM, "resources": [key]}
    api = house.api(entry)
    assert worlds.keys_of(api.rest(path(ODD_STREAM, "records")).body["data"]) == [key]
    (hit,) = api.rest("/v1/search", q="oddity").body["data"]
    assert hit["record_key"] == key
    other = ODD_IDS[ODD_IDS.index(key) - 1]
    assert api.rest(record_path(ODD_STREAM, other)).status == 404


def test_bidi_controls_in_an_id_never_reach_the_text(api: Api) -> None:
    for text in (
        api.mcp("query_records", stream=ODD_STREAM)["content"][0]["text"],
        api.mcp("search", query="oddity", limit=100)["content"][0]["text"],
    ):
        assert not set("\u202e\u202c\U000e0041") & set(text)


def test_a_new_store_starts_with_nothing_odd(tmp_path: Path) -> None:
    house = worlds.build(worlds.two_mailboxes(), tmp_path)
    assert house.api().rest("/v1/search", q="oddity").body["data"] == []
