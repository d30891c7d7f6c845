"""An engine that ranks by itself answers as a search does that reads every record, as one block.

The stores and questions are those of `test_reference_search`. Threads, and limits of grants, are
left to the blocks.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.hits import Counts, SearchPage
from service.ports import SearchQuery
from service.records.sqlite.scoring import CAN_SCORE
from service.records.store import StoreResourceServer
from tests.helpers.reference import Reference
from tests.helpers.reference_parts import Question
from tests.helpers.stores import Connection, Stream, build
from tests.spec.test_reference_search import (
    FIELDS,
    QUERY,
    SEARCHED,
    check_first_hits,
    questions,
    record,
    shown,
    walk,
    worlds,
)

pytestmark = pytest.mark.skipif(not CAN_SCORE, reason="the scorer is not compiled")
#: What is not searched may be shown; a thread may not.
HIDDEN = ["title", "who", "notes"]


@st.composite
def grants(draw: st.DrawFn, connections: Sequence[Connection]) -> list[dict[str, Any]]:
    return [
        {
            "connection_id": connection.id,
            "stream": stream.name,
            "fields": [name for name in FIELDS if name not in {"thread", *hidden}],
        }
        for connection in connections
        for stream in connection.streams
        for hidden in [draw(st.sets(st.sampled_from(HIDDEN), max_size=2))]
    ]


Asked = list[tuple[dict[str, Any], Question]]


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Connection], list[dict[str, Any]], Asked]:
    connections, plain = draw(worlds()), st.booleans().flatmap(questions)
    asked = [
        ({name: arguments[name] for name in ("query", "words")}, question)
        for arguments, question in draw(st.lists(plain, min_size=5))
        if not (question.required or question.excluded or question.period)
    ]
    return connections, draw(grants(connections)), asked


@pytest.mark.slow
@given(scene=scenes(), block_size=st.integers(1, 9), limit=st.integers(1, 12))
def test_pages_of_all_matches_are_those_of_a_search_that_reads_every_record(
    scene: tuple[list[Connection], list[dict[str, Any]], Asked], block_size: int, limit: int
) -> None:
    connections, entries, asked = scene
    with TemporaryDirectory() as folder:
        house = build(connections, Path(folder), RUNG_COMPILED="on")
        store = house.app.extensions["rung"].store
        server = store.open(house.grant(*entries)[1])
        for arguments, question in asked:
            reference = Reference(list(shown(connections, entries, arguments)), question)
            query = SearchQuery(**arguments, limit=limit)
            expected = reference.block(sorted(reference.matching), [], sorted(reference.matching))
            pages = list(walk(server, query, block_size))
            assert [hit.ref.record_id for page in pages for hit in page.hits] == expected
            assert [hit.rank for page in pages for hit in page.hits] == list(
                range(1, len(expected) + 1)
            )
            counts = Counts(len(reference.holding_every()), len(expected), exact=True)
            assert all(page.counts == counts and page.recall["complete"] for page in pages)
            for variant in (query, replace(query, cut_tail=True)):
                check_first_hits(server, variant, block_size)
            store.reader.ranks = False
            check_the_walk_goes_on(server, query, pages, block_size)
            store.reader.ranks = True


@pytest.mark.parametrize("seed", range(6))
def test_a_process_without_the_scorer_goes_on_in_pages_shorter_than_a_block(
    seed: int, tmp_path: Path
) -> None:
    random, fields = Random(seed), {name: kind for name, kind in FIELDS.items() if name != "thread"}
    records = [
        {name: value for name, value in record(random, f"m{n:02}").items() if name in fields}
        for n in range(40)
    ]
    stream = Stream("mail", fields, records, SEARCHED, "at", QUERY)
    house = build([Connection("c", [stream], "key")], tmp_path, RUNG_COMPILED="on")
    store = house.app.extensions["rung"].store
    server = store.open(house.grant({"connection_id": "c", "stream": "mail"})[1])
    query = SearchQuery(query="amber meadow quorum zymurgy phlegmatic", limit=2)
    pages = list(walk(server, query, 5))
    assert pages[0].next_cursor
    store.reader.ranks = False
    check_the_walk_goes_on(server, query, pages, 3)


def check_the_walk_goes_on(
    server: StoreResourceServer, query: SearchQuery, pages: list[SearchPage], block_size: int
) -> None:
    """A process without the compiled scorer shows what is left, and says that the order changed."""
    hits = [hit.id for hit in pages[0].hits]
    if pages[0].next_cursor and len(pages[0].hits) + len(pages[1].hits) > block_size:
        rest = list(walk(server, replace(query, cursor=pages[0].next_cursor), block_size))
        assert [warning["code"] for warning in rest[0].warnings] == ["ranking_changed"]
        hits += [hit.id for page in rest for hit in page.hits]
        assert len(hits) == len({*hits})
        assert {*hits} == {hit.id for page in pages for hit in page.hits}
