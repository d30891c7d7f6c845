"""The body of a page holds everything its typed values do."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import orjson
from evidence import hits_wire
from evidence.hits import Hit, SearchPage
from evidence.limits import CONTRACT
from service.pdpp.decode import search as decode
from service.pdpp.encode.search import encode
from service.ports import ResourceServer, SearchQuery
from service.records.store import Store
from tests.helpers import worlds
from tests.helpers.monsters import monstrous, names, texts

QUERIES = ("needle", "needle owl", '"needle owl"', "need*", "owl -absent")


def pages(server: ResourceServer, query: str, limit: int) -> Iterator[SearchPage]:
    """Every page of a query, each found the same in its body."""
    cursor = None
    while True:
        page = server.search(SearchQuery(query, limit=limit, cursor=cursor)).value
        body = encode(page)
        assert decode.read(orjson.loads(orjson.dumps(body))) == page
        assert hits_wire.search(decode.read(body)) == hits_wire.search(page)
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
def test_a_page_is_what_a_reader_makes_of_its_body(world: worlds.World) -> None:
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
    assert bool(found[0].absent_words) != bool(found[0].hits)


def test_a_body_has_its_rows_where_the_contract_has_them(tmp_path: Path) -> None:
    server = server_of(worlds.build(worlds.household(), tmp_path))
    body = encode(server.search(SearchQuery("lantern", limit=2)).value)
    assert list(body) == ["object", "url", "has_more", "data", "meta", "next_cursor"]
    ranks = [row["rank"] for row in body["data"]]
    asked = SearchQuery("lantern", limit=2, cursor=body["next_cursor"])
    further = encode(server.search(asked).value)
    assert ranks + [row["rank"] for row in further["data"]] == [1, 2, 3, 4]


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
