"""Property: a search page and its PDPP body say the same."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.hits import Counts, SearchPage
from evidence.hits_wire import structured
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import FanIn, SourceReport
from service.pdpp.decode import search as decode
from service.pdpp import NEWEST_PAGE_ONLY, NO_HITS
from service.pdpp.encode import encode_search as encode
from tests.helpers.monsters import Held, held, monstrous, names, pages

HIT = {"stream": "notes", "record_key": "a", "connection_id": "home"}


@st.composite
def told_pages(draw: st.DrawFn) -> SearchPage:
    """Pages with everything a source may say beside its hits."""
    words = st.lists(names(64), max_size=3)
    reports = [
        SourceReport("Home", "answered", 2, "grant_1"),
        SourceReport("Work", "failed", 0, None, "down", "It is down.", "Ask again."),
    ]
    page = draw(pages(most=4))
    label = draw(st.none() | names(BUDGETS.label_chars))
    hits = [
        replace(
            hit,
            source=hit.source._replace(display_name=label),
            # Marked text without offsets may be of a server that escapes nothing: it is escaped.
            matches=[match for match in hit.matches if match.start is not None],
        )
        for hit in page.hits
    ]
    return replace(
        page,
        args={},
        hits=hits,
        as_of=(),
        absent_words=draw(words),
        nearest_words=draw(st.dictionaries(names(64), words.filter(bool), max_size=2)),
        retry=draw(st.none() | st.just({"query": "lantern", "words": "any", "streams": None})),
        left_out=draw(st.none() | st.integers(1, 10**6)),
        fan_in=draw(st.none() | st.just(FanIn(3, 1, reports))),
    )


@monstrous
@given(held(told_pages()))
def test_a_page_is_read_back_from_its_body(monster: Held[SearchPage]) -> None:
    page = monster.reading
    read = decode.read(orjson.loads(orjson.dumps(encode(page))))
    assert read == page
    assert structured(read, read.continuations()) == structured(page, page.continuations())


@pytest.mark.parametrize(
    "meta, counts",
    [
        ({}, None),
        ({"count": 7, "count_accuracy": "exact"}, Counts(None, 7, True)),
        ({"count": 7}, Counts(None, 7, False)),
        ({"count": {"kind": "exact", "value": 7}}, Counts(None, 7, False)),
        ({"counts": {"all": 2, "some": 7, "accuracy": "exact"}}, Counts(2, 7, True)),
        ({"counts": {"all": True, "some": "7"}, "count": "many"}, None),
    ],
)
def test_counts_of_other_servers_are_read(meta: dict[str, Any], counts: Counts | None) -> None:
    assert decode.read({"data": [], "meta": meta}).counts == counts


def test_what_a_server_should_not_send_is_left_out() -> None:
    hit = {**HIT, "rank": "1", "coverage": 7, "matched_words": "no", "forms": {"a": 1, "b": "c"}}
    meta = {
        "recall": [],
        "absent_words": ["w" * 999, 7, "word"],
        "nearest_words": {"wrod": "word", "x": ["y"]},
        "warnings": [
            {"code": NO_HITS, "detail": {"retry_arguments": {"q": ["lantern"], "id": "other"}}},
            {"code": NEWEST_PAGE_ONLY, "detail": {"left_out": True}},
        ],
    }
    page = decode.read({"data": [hit, 7, {"stream": "notes"}], "meta": meta})
    (found,) = page.hits
    assert (found.rank, found.coverage, found.matched_words) == (None, None, [])
    assert found.forms == {"b": "c"}
    assert (page.recall, page.absent_words, page.retry) == ({}, ["word"], None)
    assert (page.nearest_words, page.left_out) == ({"x": ["y"]}, None)


def test_a_retry_takes_nothing_but_words_and_times() -> None:
    given = {"q": "lantern", "since": "2026-01-01", "connection_id": "other", "cursor": "c"}
    assert decode.read(with_retry(given | {"streams": None, "limit": None})).retry == {
        "query": "lantern",
        "since": "2026-01-01",
        "streams": None,
    }
    assert decode.read(with_retry({"q": "w" * (CONTRACT.query_chars + 1)})).retry is None


def with_retry(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "meta": {"warnings": [{"code": NO_HITS, "detail": {"retry_arguments": arguments}}]},
    }


def test_a_body_has_no_keys_in_meta_beyond_those_of_the_contract() -> None:
    page = SearchPage(
        {}, [], False, None, Counts(0, 0, True), {}, [], retry={"query": "x"}, left_out=4
    )
    meta = encode(page)["meta"]
    assert meta.keys() == {"count", "count_accuracy", "counts", "recall", "warnings"}
    left, none = meta["warnings"]
    assert left["detail"] == {"left_out": 4} and "Matching records left out: 4." in left["message"]
    assert none["detail"] == {"retry_arguments": {"q": "x"}}
