"""Hits are told twice, typed and as rows: the reader of the rows must find the typed ones."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.envelope import Envelope, SearchEnvelope
from evidence.limits import CONTRACT
from evidence.model import Hit, SearchPage
from service.pdpp.decode import search as reading
from service.ports import ResourceServer, SearchQuery
from service.records import Store
from tests.helpers import worlds
from tests.helpers.monsters import monstrous, names, texts

QUERIES = ("needle", "needle owl", '"needle owl"', "need*", "owl -absent")


def pages(server: ResourceServer, query: str, limit: int) -> Iterator[SearchPage]:
    """Every page of a query, each read of its typed hits and found the same in its rows."""
    cursor = None
    while True:
        envelope = server.search(SearchQuery(query, limit=limit, cursor=cursor))
        assert isinstance(envelope, SearchEnvelope)
        args = {"query": query, "limit": limit}
        page = reading.read(envelope, args=args)
        assert page == reading.read(Envelope(envelope.body), args=args)
        yield page
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def every_hit(server: ResourceServer, query: str, limit: int) -> list[Hit]:
    return [hit for page in pages(server, query, limit) for hit in page.hits]


def server_of(house: worlds.House) -> ResourceServer:
    return Store(house.path, worlds.SECRET).open(house.grant()[1])


@st.composite
def odd_worlds(draw: st.DrawFn) -> worlds.World:
    """One source with odd names whose records have every word of the queries in some field."""
    stream, field = draw(st.sampled_from(["notes", "/o ~:%", "猫"])), "/f ~1"
    fields = {"t": worlds.text("primary-title"), "at": worlds.moment(), field: worlds.text()}
    query = {"search": {"lexical_fields": ["t", field]}}
    rows = []
    for key in draw(st.lists(names(40), min_size=3, max_size=8, unique=True)):
        between = draw(texts(most=draw(st.sampled_from([0, 500, 9_000, 90_000]))))
        text = f"{draw(texts(most=300))} needle {between} owl needle owl {draw(texts(most=300))}"
        title = draw(st.sampled_from(["", "A title", "needle owl " * 30, '"\\ <mark>', None, 7]))
        at = draw(st.sampled_from(["2026-05-01T10:00:00Z", "", None]))
        if key not in (".", ".."):
            rows.append(worlds.row(stream, key, **{"t": title, "at": at, field: text}))
    label = draw(st.sampled_from([None, "", "Home", "L" * 90]))
    made = worlds.stream(stream, fields, query=query)
    connection = draw(st.sampled_from(["home", "Ho me/x:y?&=%"]))
    return worlds.World((worlds.Connection(connection, "notes", label, (made,), tuple(rows)),))


@monstrous
@given(odd_worlds())
def test_typed_hits_are_what_a_reader_makes_of_the_rows(world: worlds.World) -> None:
    with TemporaryDirectory() as folder:
        server = server_of(worlds.build(world, Path(folder)))
        for query in QUERIES:
            found = every_hit(server, query, 3)
            if query == '"needle owl"':
                assert len(found) == len(world.connections[0].rows)
                assert all(0 < len(hit.matches) <= CONTRACT.windows_per_hit for hit in found)


@pytest.mark.parametrize(
    ("query", "limit", "some"),
    [("lantern", 4, 12), ("quorum elm", 10, 2), ("paid lantern", 1, 0), ("lantern zebra", 5, 0)],
)
def test_so_they_are_over_several_sources_pages_and_words_that_stand_alone(
    tmp_path: Path, query: str, limit: int, some: int
) -> None:
    server = server_of(worlds.build(worlds.household(), tmp_path))
    found = list(pages(server, query, limit))
    assert sum(len(page.hits) for page in found) >= some
    assert (found[0].words is None) == bool(found[0].hits)


def test_a_body_has_its_rows_where_the_contract_has_them(tmp_path: Path) -> None:
    server = server_of(worlds.build(worlds.household(), tmp_path))
    body = server.search(SearchQuery("lantern", limit=2)).body
    assert list(body) == ["object", "url", "has_more", "data", "meta", "next_cursor"]
    ranks = [row["score"]["value"] for row in body["data"]]
    further = server.search(SearchQuery("lantern", limit=2, cursor=body["next_cursor"])).body
    assert ranks + [row["score"]["value"] for row in further["data"]] == [1, 2, 3, 4]


def test_rows_are_spelled_once_and_only_where_a_body_is_asked_for() -> None:
    spelled = []

    def rows() -> list[dict[str, Any]]:
        spelled.append("rows")
        return [{"object": "search_result", "stream": "notes", "record_key": "a"}]

    envelope = SearchEnvelope({"object": "list", "data": [], "has_more": False}, list, rows)
    assert reading.read(envelope, args={}).hits == [] and spelled == []
    assert envelope.body is envelope.body and spelled == ["rows"]
    assert envelope.body["data"][0]["record_key"] == "a" and envelope.head["data"] == []


def test_of_equal_ranks_the_record_with_the_tightest_window_comes_first(tmp_path: Path) -> None:
    filler = "word " * 20
    apart, close = f"needle {filler}owl", f"needle owl {filler}"
    fields: dict[str, Any] = {"text": worlds.text()}
    query = {"search": {"lexical_fields": ["text"]}}
    made = worlds.stream("notes", fields, query=query)
    rows = [worlds.row("notes", name, text=text) for name, text in (("a", apart), ("b", close))]
    for order in (rows, rows[::-1]):
        folder = tmp_path / order[0].key
        folder.mkdir()
        source = worlds.Connection("home", "notes", None, (made,), tuple(order))
        server = server_of(worlds.build(worlds.World((source,)), folder))
        assert [hit.ref.record_id for hit in every_hit(server, "needle owl", 10)] == ["b", "a"]
