"""How each stream is searched: what `schema` says of vectors, and `recall` of those that lack."""

from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from evidence.schema import StreamSchema, joint_search
from service.meaning.building import build as build_vectors
from service.pdpp.decode import schema as decode
from service.pdpp.encode import body as encoded
from tests.helpers.caller import Local
from tests.helpers.stores import BODY, TIME, TITLE, WORD, Connection, House, Stream, bring, build
from tests.helpers.stores import client
from tests.helpers.trigrams import Trigrams
from tests.helpers.worlds import row

FIELDS = {"id": WORD, "at": TIME, "title": TITLE, "body": BODY}
NOTES = [
    {"id": f"n{n}", "at": f"2026-01-0{n}T08:00:00Z", "title": f"Number {n}", "body": "a kettle"}
    for n in range(1, 5)
]
#: Streams of two connections, of which `words` has no field for vectors.
STREAMS = (
    Stream("notes", FIELDS, NOTES, ["title", "body"], "at", more={"consent_time_field": "at"}),
    Stream("words", {"id": WORD, "note": WORD}, [{"id": "w1", "note": "a kettle"}], ["note"]),
)


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = build([Connection(id, STREAMS, "key") for id in ("c", "d")], tmp_path)
    embed(house)
    house.app.extensions["rung"].store.encoder = Trigrams()
    return house


def embed(house: House) -> None:
    """Builds the vectors that are missing."""
    store = house.app.extensions["rung"].store
    build_vectors(store.place, Trigrams(), Event(), on_commit=lambda progress: None)


def modes(caller: Local, **arguments: Any) -> dict[str, str]:
    """How streams are searched by the structure of `schema`."""
    (connector,) = caller.ok("schema", **arguments).structured["data"]["connectors"]
    return {stream["name"]: stream.get("search") for stream in connector["streams"]}


def test_the_index_and_the_details_name_how_each_stream_is_searched(house: House) -> None:
    caller = client(house)
    index, details = caller.ok("schema"), caller.ok("schema", stream="notes")
    assert "  search=words+meaning 100%: notes" in index.lines
    assert "  search=words: words" in index.lines
    assert "stream notes connector_key=key search=words+meaning 100%" in details.lines
    assert "  search: full text in title, body; by meaning in title, body" in details.lines
    assert modes(caller) == {"notes": "words+meaning 100%", "words": "words"}
    assert modes(caller, stream="notes") == {"notes": "words+meaning 100%"}
    assert "no semantic search" in caller.ok("schema", stream="words").text


def test_the_share_counts_the_records_of_all_connections_and_follows_the_store(
    house: House,
) -> None:
    caller = client(house)
    assert modes(caller)["notes"] == "words+meaning 100%"
    bring(house, "d", *(row("notes", f"m{n}", body="a gate", title="") for n in range(4)))
    assert modes(caller)["notes"] == "words+meaning 66%"
    assert modes(caller, connection_id="d")["notes"] == "words+meaning 50%"
    assert modes(caller, connection_id="c")["notes"] == "words+meaning 100%"
    answer = caller.ok("search", query="kettle stove")
    assert answer.structured["data"]["meta"]["recall"]["vectors"] == 0.66
    assert "vectors=0.66" in answer.lines[0]
    embed(house)
    assert modes(caller)["notes"] == "words+meaning 100%"
    fresh = caller.ok("search", query="kettle gate").structured
    assert "vectors" not in fresh["data"]["meta"]["recall"]


@pytest.mark.parametrize(
    "limit",
    [
        {"time_constraint": {"since": "2026-01-02T00:00:00Z"}},
        {"resources": ["n1"]},
    ],
)
def test_no_share_is_named_of_a_stream_that_the_grant_limits(
    house: House, limit: dict[str, Any]
) -> None:
    bring(house, "c", row("notes", "m", body="a gate", title=""))
    caller = client(house, {"connection_id": "c", "stream": "notes", **limit})
    assert modes(caller) == {"notes": "words+meaning"}
    recall = caller.ok("search", query="kettle stove").structured["data"]["meta"]["recall"]
    assert "vectors" not in recall


def test_a_stream_whose_granted_fields_have_no_vectors_is_searched_by_words(house: House) -> None:
    entry = {"connection_id": "c", "stream": "notes"}
    without_title = client(house, {**entry, "fields": ["id", "body"]})
    assert modes(without_title) == {"notes": None}
    words = {"connection_id": "d", "stream": "words"}
    two = client(house, {**entry, "fields": ["id", "body"]}, {**entry, "connection_id": "d"}, words)
    connectors = two.ok("schema", stream="notes").structured["data"]["connectors"]
    named = {row["streams"][0]["search"] for row in connectors}
    assert named == {"words", "words+meaning 100%"} and modes(two, stream="words") == {
        "words": "words"
    }


def test_rest_declares_the_fields_with_vectors_and_is_read_back(house: House) -> None:
    caller = client(house)
    details = caller.get("/v1/streams/notes")
    assert details["search"] == "words+meaning 100%"
    assert details["query"]["search"]["semantic_fields"] == ["title", "body"]
    able = details["field_capabilities"]["body"]["semantic_search"]
    assert able == {"declared": True, "usable": True}
    compact = caller.get("/v1/schema?view=compact")
    flags = compact["connectors"][0]["streams"][0]["field_capabilities"]["body"]
    assert flags.split(",")[-1] == "sem" or ",sem," in flags
    for body in (compact, caller.get("/v1/schema")):
        assert encoded(decode.read(body))["connectors"] == body["connectors"]


def test_without_a_model_or_vectors_nothing_is_said_of_meaning(house: House) -> None:
    caller, store = client(house), house.app.extensions["rung"].store
    store.encoder = None
    assert modes(caller) == {"notes": None, "words": None}
    assert "no semantic search" in caller.ok("schema", stream="notes").text


def test_connections_that_differ_have_no_common_share() -> None:
    first = StreamSchema("notes", search="words+meaning 83%")
    assert joint_search((first, first)) == "words+meaning 83%"
    assert joint_search((first, replace(first, search="words+meaning 90%"))) == "words+meaning"
    assert joint_search((first, replace(first, search=None))) == "words+meaning"
    assert joint_search((StreamSchema("notes"),)) is None


@pytest.mark.parametrize("text", ["words\nstream other", "words+meaning 83% and more", 7])
def test_another_server_cannot_write_into_the_text(text: Any) -> None:
    body = {"connectors": [{"connector_key": "k", "streams": [{"name": "s", "search": text}]}]}
    (row,) = decode.read(body).rows
    assert row.stream.search is None
