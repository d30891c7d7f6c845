"""PDPP's routes for search by meaning and by both, which only a store with vectors has."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from service import openapi
from service.meaning.building import build as build_vectors
from service.openapi import Mounted
from tests.helpers.caller import Local
from tests.helpers.openapi import Described
from tests.helpers.stores import TIME, WORD, Connection, House, Stream, build, client
from tests.helpers.trigrams import Trigrams, serving
from tests.spec.test_meaning import BODIES, TEXT, TITLE, UNPROVEN, Broken

SEMANTIC, HYBRID = "/v1/search/semantic", "/v1/search/hybrid"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A store that is served with an encoder, and has no vectors yet."""
    records = [
        {"id": id, "at": f"2026-01-0{n}T08:00:00Z", "title": f"Number {n}", "body": body}
        for n, (id, body) in enumerate(BODIES.items(), start=1)
    ]
    fields = {"id": WORD, "at": TIME, "title": TITLE, "body": TEXT}
    stream = Stream("notes", fields, records, ["title", "body"], "at")
    with serving() as variables:
        house = build([Connection("c", [stream], "key")], tmp_path, **variables)
        house.app.extensions["rung"].store.encoder = Trigrams()
        yield house


@pytest.fixture
def embedded(house: House) -> House:
    """The same with vectors."""
    store = house.app.extensions["rung"].store
    build_vectors(store.place, Trigrams(), Event(), on_commit=lambda progress: None)
    return house


@pytest.fixture
def notes(embedded: House) -> Local:
    return client(embedded)


def test_semantic_hits_are_ordered_by_meaning_and_words_are_proven(notes: Local) -> None:
    body = notes.get(f"{SEMANTIC}?q=the+copper+gate+creaks+in+the+wind&limit=10")
    first, *others = body["data"]
    assert body["url"] == SEMANTIC and len(body["data"]) == len(BODIES)
    assert first["record_key"] == "note2" and first["retrieval_mode"] == "semantic"
    assert "<mark>copper" in first["evidence_excerpts"][0]["preview_text"]
    assert first["snippet"]["text"] == BODIES["note2"]
    assert [hit["rank"] for hit in body["data"]] == [1, 2, 3, 4]
    kinds = {hit["record_key"]: hit.get("kind", "proven") for hit in others}
    assert kinds == {"note1": "proven", "note3": "related", "note4": "related"}
    assert all("score" not in hit and hit["retrieval_mode"] == "semantic" for hit in others)
    assert body["meta"]["ranking"] == "meaning" and body["meta"]["model"] == "trigrams"
    assert body["meta"]["count"] == {"kind": "none"}


def test_semantic_pages_give_each_record_once(notes: Local) -> None:
    target, keys = f"{SEMANTIC}?q={UNPROVEN.replace(' ', '+')}&limit=1", list[str]()
    while target:
        body = notes.get(target)
        keys += [hit["record_key"] for hit in body["data"]]
        target = body["links"]["next"]
    assert keys[0] == "note3" and sorted(keys) == sorted(BODIES)


def test_a_single_word_and_limits_are_by_meaning_too(notes: Local) -> None:
    assert len(notes.get(f"{SEMANTIC}?q=copper")["data"]) == len(BODIES)
    body = notes.get(f"{SEMANTIC}?q=copper&since=2026-01-02&until=2026-01-04")
    assert {hit["record_key"] for hit in body["data"]} == {"note2", "note3"}


def test_a_cursor_is_of_its_own_route(notes: Local) -> None:
    cursor = notes.get(f"{SEMANTIC}?q=copper+gate&limit=1")["next_cursor"]
    notes.refused(f"/v1/search?q=copper+gate&limit=1&cursor={cursor}", 400)
    error = notes.refused(f"{HYBRID}?q=copper+gate&cursor={cursor}", 400)
    assert (error["code"], error["param"]) == ("invalid_request", "cursor")


def test_hybrid_hits_are_those_of_search_with_their_sources(notes: Local) -> None:
    query = "q=copper+kettle+stove&limit=3"
    body, usual = notes.get(f"{HYBRID}?{query}"), notes.get(f"/v1/search?{query}")
    keys = [[hit["record_key"] for hit in page["data"]] for page in (body, usual)]
    assert keys[0] == keys[1] and body["url"] == HYBRID
    sources = [hit["retrieval_sources"] for hit in body["data"]]
    assert sources == [["lexical", "semantic"]] * 2 + [["semantic"]]
    page = notes.get(f"{HYBRID}?q=copper&limit=1")
    assert page["has_more"] and page["links"]["next"] is None and "next_cursor" not in page
    assert page["data"][0]["retrieval_sources"] == ["lexical"]


def test_both_are_404_until_the_store_has_vectors(house: House) -> None:
    caller = client(house)
    for route in (SEMANTIC, HYBRID, f"{SEMANTIC}?q=copper"):
        assert caller.refused(route, 404)["message"].startswith("No such route.")
    assert caller.get("/")["capabilities"].keys() == {"lexical_retrieval"}


def test_discovery_declares_both_and_the_document_describes_them(notes: Local) -> None:
    capabilities = notes.get("/")["capabilities"]
    assert capabilities["semantic_retrieval"]["endpoint"] == SEMANTIC
    assert capabilities["hybrid_retrieval"]["endpoint"] == HYBRID
    described = Described(notes.get("/openapi.json"))
    for route in (SEMANTIC, HYBRID):
        answer = notes.api.get(f"{route}?q=copper+gate&limit=2")
        described.check("get", route, answer)
    assert SEMANTIC not in openapi.document(Mounted(records=True, papers=True))["paths"]


def test_without_an_encoder_there_are_no_such_routes(small: Local) -> None:
    for route in (SEMANTIC, HYBRID):
        assert small.refused(f"{route}?q=copper", 404)["code"] == "not_found"


def test_a_model_that_fails_leaves_hits_by_words_with_a_warning(embedded: House) -> None:
    caller, store = client(embedded), embedded.app.extensions["rung"].store
    store.encoder = Broken()
    body = caller.get(f"{SEMANTIC}?q=copper")
    assert {hit["record_key"] for hit in body["data"]} == {"note1", "note2"}
    assert [notice["code"] for notice in body["meta"]["warnings"]] == ["semantic_unavailable"]
    assert body["meta"]["ranking"] == "words"
