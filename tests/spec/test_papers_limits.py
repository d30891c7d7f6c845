"""Bounds are exact: a value at a bound is accepted, one past it is refused."""

from typing import Any

import orjson
import pytest

from evidence.limits import CONTRACT
from tests.helpers.papers import DEEP_LEARNING, Library, ids
from tests.helpers.reading import printed_calls
from tests.spec.scenarios import scenario

SEARCHES = pytest.mark.parametrize(
    ("tool", "argument", "route", "parameter"),
    [
        ("search_papers", "query", "search", "q"),
        ("search_papers_by_keyword", "keyword", "keywords", "keyword"),
    ],
)
NOT_SIZES = (-1, "-5", True, 2.5, [1], {"a": 1}, 2**63)


def refusal(library: Library, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call that breaks a rule, the same in both channels."""
    answer = library.fails(tool, **arguments)
    assert answer.lines[0] == f"error code={answer.error['code']}"
    assert answer.error["message"] in answer.text
    return answer.error


@SEARCHES
@scenario("002/limits/query-length")
def test_a_query_of_500_characters_is_taken_and_one_of_501_is_not(
    library: Library, tool: str, argument: str, route: str, parameter: str
) -> None:
    for text in ("x" * 500, "学" * 500, "attention " * 50):
        assert library.ok(tool, **{argument: text}).structured["object"] == "list"
        assert refusal(library, tool, **{argument: text + "y"})["param"] == argument
        long = library.api.rest(f"/papers/v1/{route}", **{parameter: text + "y"})
        assert long.status == 400 and long.error["param"] == parameter
        assert library.api.rest(f"/papers/v1/{route}", **{parameter: text}).status == 200
    assert refusal(library, tool, **{argument: ""})["param"] == argument
    assert refusal(library, tool)["param"] == argument


def test_a_find_is_bounded_as_a_search_is(library: Library) -> None:
    args = {"paper_id": DEEP_LEARNING, "query": "x" * 500}
    assert library.ok("get_paper_source", **args).structured["data"] == []
    refused = refusal(library, "get_paper_source", **{**args, "query": "x" * 501})
    assert refused["param"] == "query"


@SEARCHES
@pytest.mark.parametrize("name", ["limit", "page_size"])
@scenario("002/limits/page-size")
def test_a_page_of_100_is_taken_and_one_of_101_is_not(
    library: Library, tool: str, argument: str, route: str, parameter: str, name: str
) -> None:
    asked = {argument: "e" if argument == "keyword" else "learning"}
    assert len(ids(library.ok(tool, **asked, **{name: CONTRACT.page_items}))) > 10
    assert refusal(library, tool, **asked, **{name: CONTRACT.page_items + 1})["param"] == name
    for size, status in ((CONTRACT.page_items, 200), (CONTRACT.page_items + 1, 400), (0, 400)):
        answer = library.api.rest(f"/papers/v1/{route}", **{parameter: "learning", name: size})
        assert answer.status == status


@SEARCHES
@pytest.mark.parametrize("name", ["limit", "page_size", "page", "offset"])
def test_what_is_no_size_is_refused(
    library: Library, tool: str, argument: str, route: str, parameter: str, name: str
) -> None:
    for size in (*NOT_SIZES, *([] if name == "offset" else [0])):
        assert refusal(library, tool, **{argument: "learning", name: size})["param"] == name


@SEARCHES
def test_a_page_has_ten_papers_when_nothing_is_said_and_never_more_than_asked(
    library: Library, tool: str, argument: str, route: str, parameter: str
) -> None:
    asked = {argument: "e" if argument == "keyword" else "learning"}
    assert len(ids(library.ok(tool, **asked))) == 10
    for limit in (1, 3, 9):
        answer = library.ok(tool, **asked, limit=limit)
        assert len(ids(answer)) == limit and answer.structured["has_more"]


@SEARCHES
@pytest.mark.parametrize(
    "paging",
    [{"offset": 9_990, "limit": 10}, {"page": 100, "limit": 100}, {"page": 1000}, {"offset": 9990}],
)
@scenario("002/limits/page-size")
def test_pages_go_to_10_000_papers_and_no_further(
    library: Library,
    tool: str,
    argument: str,
    route: str,
    parameter: str,
    paging: dict[str, int],
) -> None:
    assert ids(library.ok(tool, **{argument: "learning"}, **paging)) == []
    name = "page" if "page" in paging else "offset"
    refused = refusal(library, tool, **{argument: "learning"}, **{**paging, name: paging[name] + 1})
    assert refused["param"] == name


@SEARCHES
def test_a_page_past_the_end_says_so_and_leads_back(
    library: Library, tool: str, argument: str, route: str, parameter: str
) -> None:
    answer = library.ok(tool, **{argument: "learning"}, offset=500, limit=3)
    assert "There are no papers at this offset. Use a smaller offset." in answer.lines
    (back,) = printed_calls(answer.text)
    assert back.why == "first_page" and len(ids(library.ok(back.tool, **back.args))) == 3
    found = library.get(f"/papers/v1/{route}?{parameter}=learning&offset=500&limit=3")
    assert len(library.get(found["links"]["first_page"])["data"]) == 3


def test_facets_past_the_end_lead_back(library: Library) -> None:
    (back,) = printed_calls(library.ok("list_top_facets", category="tag", offset=5_000).text)
    assert library.ok(back.tool, **back.args).structured["data"]


@SEARCHES
@pytest.mark.parametrize(
    "paging",
    [
        {"offset": 5, "page": 2},
        {"limit": 5, "page_size": 6},
        {"offset": 5, "cursor": "0123456789.5"},
        {"page": 2, "cursor": "0123456789.5"},
    ],
)
def test_two_ways_to_say_where_are_refused(
    library: Library,
    tool: str,
    argument: str,
    route: str,
    parameter: str,
    paging: dict[str, Any],
) -> None:
    refusal(library, tool, **{argument: "learning"}, **paging)


@SEARCHES
@pytest.mark.parametrize(
    ("cursor", "code"),
    [
        ("nonsense", "invalid_cursor"),
        ("0123456789.10.5", "invalid_cursor"),
        ("0123456789.10", "cursor_expired"),
    ],
)
def test_a_cursor_that_is_not_ours_is_refused_with_the_call_that_starts_over(
    library: Library,
    tool: str,
    argument: str,
    route: str,
    parameter: str,
    cursor: str,
    code: str,
) -> None:
    answer = library.fails(tool, **{argument: "learning"}, cursor=cursor)
    assert answer.error["code"] == code
    if cursor:
        (again,) = printed_calls(answer.text)
        assert ids(library.ok(again.tool, **again.args))


@pytest.mark.parametrize(
    ("tool", "most"), [("get_paper_summary", 100_000), ("get_paper_source", 50_000)]
)
def test_a_window_is_bounded_on_both_sides(library: Library, tool: str, most: int) -> None:
    library.ok(tool, paper_id=DEEP_LEARNING, max_chars=most)
    for size in (0, -1, most + 1, "-5", True, 2.5):
        refused = refusal(library, tool, paper_id=DEEP_LEARNING, max_chars=size)
        assert refused["param"] == "max_chars"
    for start in (-1, "-5", True):
        refused = refusal(library, tool, paper_id=DEEP_LEARNING, offset_chars=start)
        assert refused["param"] == "offset_chars"


@pytest.mark.parametrize("offset", [340_737, 2**31, 2**53 - 1])
@pytest.mark.parametrize("more", [{}, {"query": "learning"}, {"outline": True}])
def test_a_place_past_the_end_is_refused_with_the_places_there_are(
    library: Library, offset: int, more: dict[str, Any]
) -> None:
    given = {"paper_id": DEEP_LEARNING, "offset_chars": offset, **more}
    refused = refusal(library, "get_paper_source", **given)
    assert (refused["code"], refused["param"]) == ("invalid_window", "offset_chars")
    assert refused["total_chars"] == 340_736 and "0 to 340736" in refused["message"]


@pytest.mark.parametrize("limit", [0, -1, CONTRACT.page_items + 1, "-5", True])
def test_facets_are_bounded_too(library: Library, limit: Any) -> None:
    assert refusal(library, "list_top_facets", category="tag", limit=limit)["param"] == "limit"
    assert library.ok("list_top_facets", category="author", limit=CONTRACT.page_items).structured[
        "data"
    ]


def test_an_unknown_category_is_refused_with_those_there_are(library: Library) -> None:
    refused = refusal(library, "list_top_facets", category="publisher")
    assert refused["param"] == "category"
    for category in ("author", "venue", "keyword", "institution", "tag", "year"):
        assert category in refused["message"]


@pytest.mark.parametrize("paper_id", ["x" * 501, "", None, 5, ["a"]])
def test_a_paper_id_is_a_text_of_at_most_500_characters(library: Library, paper_id: Any) -> None:
    for tool in ("get_paper_metadata", "get_paper_summary", "get_paper_source"):
        assert refusal(library, tool, paper_id=paper_id)["param"] == "paper_id"


@pytest.mark.parametrize(
    ("tool", "given", "near"),
    [
        ("search_papers", {"qery": "x"}, "query"),
        ("get_paper_source", {"paper": DEEP_LEARNING}, "paper_id"),
        ("get_paper_source", {"paper_id": DEEP_LEARNING, "offset": 5}, "offset_chars"),
    ],
)
def test_an_unknown_argument_is_refused_with_the_nearest(
    library: Library, tool: str, given: dict[str, Any], near: str
) -> None:
    assert near in refusal(library, tool, **given)["message"]


def test_query_and_outline_are_one_or_the_other(library: Library) -> None:
    given = {"paper_id": DEEP_LEARNING, "query": "x", "outline": True}
    assert refusal(library, "get_paper_source", **given)["param"] == "outline"


def test_a_page_of_a_hundred_stays_inside_the_size_of_a_result(library: Library) -> None:
    for tool, argument in (("search_papers", "query"), ("search_papers_by_keyword", "keyword")):
        for limit in (10, 11, 50, CONTRACT.page_items):
            answer = library.ok(tool, **{argument: "learning", "limit": limit})
            assert len(answer.text.encode()) <= (8_192 if limit <= 10 else 24_576)
            assert len(orjson.dumps(answer.structured)) <= 40_960
            if answer.structured["meta"].get("ended_early"):
                assert "ended early" in answer.text and answer.structured["next_cursor"]
