"""Sources that require every word: narrower searches, ordered by what their excerpts prove."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from evidence.errors import InvalidRequest
from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from service.pdpp.decode import search as decode
from service.ports import SearchQuery
from service.sources.remote import search
from tests.helpers.all_words import AllWords
from tests.helpers.loopback import Asked, Reply, answering, as_json
from tests.helpers.remote import caller_of, opener
from tests.helpers.scripted import Scripted

QUESTION = "where did the quorum meet in Lisbon"
NOTES = {
    "minutes": "The quorum shall meet on Fridays.",
    "trip": "A trip to Lisbon, by train.",
    "far": "The quorum was small; much later, after tea, they would meet again.",
    "both": "In Lisbon the quorum was lost.",
    "other": "Nothing of this.",
}
RANKED = ["minutes", "far", "trip", "both"]


@contextmanager
def over(source: Callable[[Asked], Reply]) -> Iterator[Scripted]:
    with answering(source) as server:
        yield Scripted(server)


def keys(page: SearchPage) -> list[str]:
    return [hit.ref.record_id for hit in page.hits]


def test_rest_sends_the_one_query_and_relays_the_answer() -> None:
    source = AllWords(NOTES)
    with over(source) as world:
        answer = world.open().search(SearchQuery(QUESTION, limit=10))
    assert source.asked == [(QUESTION, 10)]
    assert answer.value.hits == [] and answer.body is not None and answer.body["data"] == []
    assert answer.reopen is None


def test_few_hits_lead_to_narrower_searches_ordered_by_what_they_prove() -> None:
    source = AllWords(NOTES)
    with over(source) as world:
        answer = world.open().search(SearchQuery(QUESTION, limit=10, widen=True))
    assert source.queries == [QUESTION, "quorum meet Lisbon", "quorum Lisbon", "Lisbon"]
    page = answer.value
    assert answer.body is None and keys(page) == ["both", "trip"]
    assert [hit.rank for hit in page.hits] == [1, 2]
    assert [hit.matched_words for hit in page.hits] == [["quorum", "Lisbon"], ["Lisbon"]]
    assert page.hits[0].coverage == pytest.approx(2 / 3)
    assert all("<mark>" in match.shown for hit in page.hits for match in hit.matches)
    assert page.recall["narrower_searches"] == source.queries[1:]
    assert page.recall["complete"] is False
    assert page.counts is not None and (page.counts.some, page.counts.exact) == (2, False)
    assert [one["code"] for one in page.warnings] == ["narrower_searches"]
    assert all(query in page.warnings[0]["message"] for query in source.queries[1:])


def test_of_equal_coverage_the_tighter_passage_comes_first() -> None:
    source = AllWords({"far": NOTES["far"], "minutes": NOTES["minutes"]})
    with over(source) as world:
        found = world.open().search(SearchQuery("why did the quorum meet", limit=5, widen=True))
    assert keys(found.value) == ["minutes", "far"]


def test_a_page_that_is_full_is_not_widened() -> None:
    source = AllWords(NOTES)
    with over(source) as world:
        answer = world.open().search(SearchQuery("quorum meet", limit=2, widen=True))
        page_on = SearchQuery("quorum", limit=2, widen=True)
        cursor = world.open().search(page_on).value.next_cursor
        rest = world.open().search(SearchQuery("quorum", limit=2, widen=True, cursor=cursor))
    assert keys(answer.value) == ["minutes", "far"] and answer.body is not None
    assert keys(rest.value) == ["both"]
    assert source.queries == ["quorum meet", "quorum", "quorum"]


@pytest.mark.parametrize(
    "query",
    [
        SearchQuery("quorum", widen=True),
        SearchQuery("quorum Lisbon", words="all", widen=True),
        SearchQuery('"the quorum"', widen=True),
    ],
    ids=["one word", "all words", "a phrase"],
)
def test_some_searches_are_sent_as_they_are(query: SearchQuery) -> None:
    source = AllWords(NOTES)
    with over(source) as world:
        world.open().search(query)
    assert source.queries == [query.query]


def test_a_source_that_ranks_any_words_is_asked_once() -> None:
    source = AllWords({}, more={"counts": {"all": 0, "some": 0, "accuracy": "exact"}})
    with over(source) as world:
        world.open().search(SearchQuery(QUESTION, widen=True))
    assert source.queries == [QUESTION]


def test_narrower_searches_stop_when_the_page_is_full() -> None:
    source = AllWords(NOTES)
    with over(source) as world:
        found = world.open().search(SearchQuery("did the quorum meet", limit=2, widen=True))
    assert source.queries == ["did the quorum meet", "quorum meet"]
    assert keys(found.value) == ["minutes", "far"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_every_hit_of_the_list_comes_once_whatever_the_limits(limit: int) -> None:
    source = AllWords(NOTES)
    with over(source) as world:
        first = world.open().search(SearchQuery("Lisbon meet", limit=4, widen=True))
        assert keys(first.value) == RANKED and not first.value.has_more
        shown, cursor = list[str](), None
        small = SearchQuery("Lisbon meet", limit=3, widen=True)
        page = world.open().search(small).value
        shown, cursor = keys(page), page.next_cursor
        while cursor is not None:
            page = (
                world.open()
                .search(SearchQuery("Lisbon meet", limit=limit, widen=True, cursor=cursor))
                .value
            )
            shown, cursor = shown + keys(page), page.next_cursor
            assert [hit.rank for hit in page.hits][-1] == len(shown)
    assert len(shown) == len(set(shown)) and set(shown) <= set(RANKED)


def test_reopen_opens_the_same_page_with_another_limit() -> None:
    with over(AllWords(NOTES)) as world:
        first = world.open().search(SearchQuery(QUESTION, limit=10, widen=True))
        assert first.reopen is not None and first.value.next_cursor is None
        again = world.open().search(SearchQuery(QUESTION, limit=1, cursor=first.reopen))
        assert keys(again.value) == keys(first.value)[:1]
        last = world.open().search(SearchQuery(QUESTION, cursor=again.value.next_cursor))
    assert keys(again.value) + keys(last.value) == keys(first.value)


def test_the_cursor_of_another_query_is_refused() -> None:
    with over(AllWords(NOTES)) as world:
        found = world.open().search(SearchQuery(QUESTION, widen=True))
        error = world.refused(lambda rs: rs.search(SearchQuery("x", cursor=found.reopen)))
    assert isinstance(error, InvalidRequest) and error.code == "invalid_cursor"


def test_a_narrower_search_that_fails_leaves_what_was_found() -> None:
    source = AllWords(NOTES)
    source.failing = {"quorum Lisbon"}
    with over(source) as world:
        found = world.open().search(SearchQuery(QUESTION, widen=True)).value
        assert found.recall["narrower_searches"] == ["quorum meet Lisbon"]
        source.failing = {"quorum meet Lisbon"}
        answer = world.open().search(SearchQuery(QUESTION, widen=True))
    assert answer.body is not None and "narrower_searches" not in answer.value.recall


def test_what_a_narrower_search_does_not_prove_is_not_shown() -> None:
    """A hit without a window, and one whose window holds none of the words."""

    def source(asked: Asked) -> Reply:
        reply = AllWords(NOTES)(asked)
        if "q=Lisbon&" not in asked.target:
            return reply
        wrong = {"field_path": "text", "preview_text": "<mark>obey</mark>", "truncated": True}
        rows = [
            {"stream": "notes", "record_key": "bare", "connection_id": "away"},
            {"stream": "notes", "record_key": "wrong", "evidence_excerpts": [wrong]},
        ]
        return as_json({"data": rows, "has_more": False})

    with over(source) as world:
        found = world.open().search(SearchQuery(QUESTION, widen=True)).value
    assert keys(found) == ["both"]


def test_narrower_searches_take_a_part_of_the_time_only() -> None:
    """A source that hangs on them leaves time to answer with what was found."""
    gate, source = threading.Event(), AllWords({"both": NOTES["both"]})

    def hanging(asked: Asked) -> Reply:
        if "q=quorum+Lisbon" in asked.target:
            gate.wait(30)
        return source(asked)

    with over(hanging) as world:
        server = world.open(seconds=1.0)
        found = server.search(SearchQuery("the lost quorum in Lisbon of old", widen=True))
        gate.set()
    assert found.value.recall.get("narrower_searches", []) == ["lost quorum Lisbon old"]
    assert keys(found.value) == []


def test_a_model_sees_the_narrower_searches_and_a_program_the_one_answer() -> None:
    source = AllWords(NOTES)
    with answering(source) as server:
        caller = caller_of(opener(server.url, "t"))
        answer = caller.ok("search", query=QUESTION)
    assert answer.structured["results"][0]["record_id"] == "both"
    recall = answer.structured["data"]["meta"]["recall"]
    assert recall["narrower_searches"] == ["quorum meet Lisbon", "quorum Lisbon", "Lisbon"]
    assert "complete=false" in answer.text and "quorum Lisbon" in answer.text


@pytest.mark.parametrize(
    "text, expected",
    [
        (QUESTION, ["quorum meet Lisbon", "quorum Lisbon", "Lisbon"]),
        ("quorum", []),
        ("Quorum?", []),
        ("invoice number Lisbon March 2026", ["invoice Lisbon", "Lisbon", "invoice"]),
        ('"copper key" lantern shed', ['lantern "copper key"', 'shed "copper key"']),
        ("invoice budget -draft", ["invoice -draft", "budget -draft"]),
        ("wo sind die offenen Rechnungen", ["offenen Rechnungen", "Rechnungen", "offenen"]),
    ],
)
def test_fewer_words_names_and_long_ones_last(text: str, expected: list[str]) -> None:
    assert search.queries(text) == expected
    assert len(expected) <= BUDGETS.narrower_searches


def covering(*shares: float | None) -> SearchPage:
    """A page of hits that cover these shares of a question."""
    rows = [
        {"stream": "s", "record_key": f"r{n}", "coverage": share} for n, share in enumerate(shares)
    ]
    return decode.read({"data": rows, "has_more": True, "next_cursor": "on"})


@pytest.mark.parametrize(
    ("shares", "kept"),
    [
        ((1.0, 0.9, 0.5, 0.19, 0.1), 3),
        ((1.0, 0.1, 0.1, 0.1), 3),
        ((1.0, 0.9, 0.5, 0.1, 0.3, 0.1), 5),
        ((0.4, 0.3, 0.2, 0.09), 4),
        ((1.0, 0.1), 2),
        ((1.0, 0.9, 0.9, None), 4),
        ((None, 0.9, 0.9, 0.1), 4),
        ((), 0),
    ],
)
def test_a_first_page_ends_where_coverage_falls_off(
    shares: tuple[float | None, ...], kept: int
) -> None:
    query, found = SearchQuery("quorum elm", limit=10), covering(*shares)
    page = search.cut(query, search.ListPosition(10, 0), found)
    assert keys(page) == keys(found)[:kept]
    assert page.tail_cut == (kept < len(shares))
    if not page.tail_cut:
        assert page == found
        return
    place = search.opened(SearchQuery("quorum elm", limit=10, cursor=page.next_cursor))
    assert place == (10, 0, kept)
    rest = search.rest(query, place, found)
    assert keys(page) + keys(rest) == keys(found)
    assert (rest.has_more, rest.next_cursor) == (True, "on")
    assert [hit.rank for hit in rest.hits] == [*range(kept + 1, len(shares) + 1)]


def test_mcp_and_the_shell_cut_the_tail_of_a_remote_source_and_rest_never_does() -> None:
    row = {"object": "search_result", "stream": "s", "connection_id": "c"}
    shares = (1.0, 0.9, 0.8, 0.1, 0.05)
    rows = [{**row, "record_key": f"r{n}", "coverage": one} for n, one in enumerate(shares)]
    last = {**row, "record_key": "last", "coverage": 0.05}
    first = {"object": "list", "data": rows, "has_more": True, "next_cursor": "on"}

    def source(asked: Asked) -> Reply:
        if "cursor=on" in asked.target:
            return as_json({"object": "list", "data": [last], "has_more": False})
        return as_json(first)

    with over(source) as world:
        whole = world.open().search(SearchQuery("quorum elm", limit=5)).value
        caller = caller_of(world.open)
        answer = caller.ok("search", query="quorum elm", limit=5)
        assert "Later hits score far lower; next_page shows them." in answer.text
        seen = [answer]
        while cursor := seen[-1].structured["data"].get("next_cursor"):
            seen.append(caller.ok("search", query="quorum elm", limit=5, cursor=cursor))
    assert len(whole.hits) == 5 and not whole.tail_cut and whole.next_cursor == "on"
    pages = [[one["record_id"] for one in each.structured["results"]] for each in seen]
    assert pages == [["r0", "r1", "r2"], ["r3", "r4"], ["last"]]
    assert "tail_cut" not in seen[1].structured["data"]["meta"]
