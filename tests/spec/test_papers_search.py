"""Papers are found by words and by keyword, best first, each once, with text that proves it."""

import re
from typing import Any

import pytest

from tests.helpers.caller import Answer
from tests.helpers.papers import ATTENTION, DEEP_LEARNING, Library, ids, known
from tests.helpers.reading import fenced, printed_calls, structured_calls
from tests.spec.scenarios import scenario

MARK = re.compile(r"<mark>(.+?)</mark>", re.DOTALL)
#: A query, and a word that its marks must contain.
QUERIES = {
    "attention": "attention",
    "lidar": "lidar",
    "residual learning": "residual",
    "deep learning": "learning",
    "Transformer": "transformer",
    "注意力机制": "注意力",
    "卷积神经网络": "卷积",
    "深層学習": "深層",
    "한국어": "한국어",
    "schölkopf": "sch",
    "title:attention": "attention",
    '"attention is all you need"': "attention",
    "transform*": "transform",
    "multi-head": "multi",
}


def assert_both_channels_agree(library: Library, answer: Answer) -> None:
    """Fails unless ids in order, titles, snippets, cursor and calls are the same in both."""
    found = answer.structured
    shown = re.findall(r"^\d+ (\S+) \"", answer.text, re.MULTILINE)
    assert shown == ids(answer)
    assert fenced(answer.text) == [
        h["snippet_markdown"] for h in found["data"] if h["snippet_markdown"]
    ]
    assert f"papers={len(shown)}" in answer.lines[0]
    printed = {call.key() for call in printed_calls(answer.text)}
    assert printed == {call.key() for call in structured_calls(found)}
    if found["next_cursor"] is not None:
        assert found["has_more"] and f'"cursor":"{found["next_cursor"]}"' in answer.text


@pytest.mark.parametrize("query", QUERIES)
@scenario("002/search/full-text")
def test_a_query_finds_papers_and_proves_it_with_balanced_marks(
    library: Library, query: str
) -> None:
    answer = library.ok("search_papers", query=query)
    hits = answer.structured["data"]
    assert hits and len(ids(answer)) == len(set(ids(answer)))
    assert_both_channels_agree(library, answer)
    for hit in hits:
        (stored,) = library.release.rows(
            "SELECT title, year, venue FROM paper WHERE paper_id = ?", hit["paper_id"]
        )
        assert (hit["title"], hit["year"], hit["venue"]) == stored
        snippet = hit["snippet_markdown"]
        marks = MARK.findall(snippet)
        assert len(marks) == snippet.count("<mark>") == snippet.count("</mark>")
        assert marks and hit["matched_in"], hit
        assert not any("<" in mark for mark in marks)
    assert QUERIES[query] in "".join(MARK.findall(hits[0]["snippet_markdown"])).lower()


@pytest.mark.parametrize("word", ["lidar", "dropout", "retrieval", "convolutional", "gradient"])
@scenario("002/search/full-text")
def test_papers_with_the_word_in_the_title_come_before_those_with_it_in_the_source(
    library: Library, word: str
) -> None:
    def holding(columns: str) -> set[str]:
        rows = library.release.rows(
            "SELECT paper_id FROM paper_fts JOIN paper USING (paper_id) WHERE paper_fts MATCH ?",
            f'{{{columns}}} : "{word}"',
        )
        return {paper_id for (paper_id,) in rows}

    found = ids(library.ok("search_papers", query=word, limit=100))
    titles, head = holding("title"), holding("title summary metadata")
    elsewhere = holding("source translated") - head
    assert titles | head | elsewhere <= set(found)
    assert set(found[: len(titles)]) == titles
    last = max((found.index(paper_id) for paper_id in head), default=-1)
    assert all(found.index(paper_id) > last for paper_id in elsewhere)


def test_authors_stand_in_the_order_of_the_paper(library: Library) -> None:
    hit = library.ok("search_papers", query='"attention is all you need"').structured["data"][0]
    paper = library.ok("get_paper_metadata", paper_id=ATTENTION).structured
    assert hit["paper_id"] == ATTENTION
    assert paper["authors"][0] == "Ashish Vaswani"
    assert hit["authors"] == paper["authors"][: len(hit["authors"])]
    assert hit["authors_total"] == len(paper["authors"])


@pytest.mark.parametrize(
    ("query", "paper_id"),
    [
        ("10.1038/nature14539", DEEP_LEARNING),
        ("https://doi.org/10.1038/nature14539", DEEP_LEARNING),
        ("1706.03762", ATTENTION),
        ("arXiv:1706.03762v5", ATTENTION),
        ("author:vaswani", ATTENTION),
        ("author:Łukasz attention", ATTENTION),
        ("title:attention year:2017 -graph", ATTENTION),
        ("与Transformer之前", None),
    ],
)
def test_identifiers_fields_accents_and_fused_words_are_found(
    library: Library, query: str, paper_id: str | None
) -> None:
    found = ids(library.ok("search_papers", query=query))
    assert found and (paper_id is None or found[0] == paper_id)


@pytest.mark.parametrize(
    "query", ["AND", "lidar AND", "OR lidar", "a AND OR b", "NEAR(a b)", '"', "()*&^%x", "%", "_"]
)
def test_what_looks_like_syntax_is_never_an_error_of_the_engine(
    library: Library, query: str
) -> None:
    answer = library.call("search_papers", query=query)
    assert not re.search("sqlite|fts5|syntax error|no such", answer.text, re.IGNORECASE)
    assert answer.failed is (query in ('"', "%", "_"))
    if answer.failed:
        assert answer.error["code"] == "invalid_query"


def test_a_word_that_cannot_be_corrected_comes_with_queries_that_find_something(
    library: Library,
) -> None:
    answer = library.ok("search_papers", query="trnsfomer")
    assert ids(answer) == [] and answer.structured["meta"]["did_you_mean"]
    calls = [call for call in printed_calls(answer.text) if call.why == "did_you_mean"]
    assert calls and all(ids(library.ok(call.tool, **call.args)) for call in calls)


@pytest.mark.parametrize("keyword", ["transformer", "TRANSFORMER", "attention", "slam"])
@scenario("002/search/keyword")
def test_a_keyword_finds_every_paper_with_such_a_keyword_or_tag(
    library: Library, keyword: str
) -> None:
    like = f"%{keyword}%"
    expected = library.release.rows(
        "SELECT paper_id FROM paper JOIN paper_keyword USING (paper_id) "
        "JOIN keyword USING (keyword_id) WHERE value LIKE ? UNION "
        "SELECT paper_id FROM paper JOIN paper_tag USING (paper_id) "
        "JOIN tag USING (tag_id) WHERE value LIKE ?",
        like,
        like,
    )
    answer = library.ok("search_papers_by_keyword", keyword=keyword, limit=100)
    assert {(found,) for found in ids(answer)} == set(expected)
    assert len(ids(answer)) == len(expected) > 0
    assert_both_channels_agree(library, answer)
    for hit in answer.structured["data"]:
        assert keyword.lower() in "".join(MARK.findall(hit["snippet_markdown"])).lower()


@pytest.mark.parametrize("keyword", ["%", "_", "%_", "%%", "tr_nsformer", "100%_"])
def test_a_keyword_has_no_wildcards(library: Library, keyword: str) -> None:
    expected = library.release.rows(
        "SELECT paper_id FROM paper_tag JOIN tag USING (tag_id) WHERE instr(value, ?)", keyword
    )
    answer = library.ok("search_papers_by_keyword", keyword=keyword)
    assert [(paper_id,) for paper_id in ids(answer)] == expected
    assert len(expected) == (keyword in "100%_recall")


@pytest.mark.parametrize(
    ("tool", "argument"),
    [("search_papers", {"query": "learning"}), ("search_papers_by_keyword", {"keyword": "e"})],
)
@pytest.mark.parametrize("limit", [3, 7, 100])
def test_paging_by_cursor_gives_every_paper_once_and_in_order(
    library: Library, tool: str, argument: dict[str, str], limit: int
) -> None:
    offsets = [library.ok(tool, **argument, offset=start) for start in range(0, 50, 10)]
    whole = [paper_id for answer in offsets for paper_id in ids(answer)]
    assert len(whole) == len(set(whole)) > 40
    found: list[str] = []
    args: dict[str, Any] = {**argument, "limit": limit}
    while True:
        answer = library.ok(tool, **args)
        found += ids(answer)
        following = [call for call in printed_calls(answer.text) if call.why == "next_page"]
        if not following:
            break
        assert len(ids(answer)) <= limit
        args = following[0].args
    assert found == whole


@pytest.mark.parametrize(
    "paging", [{"offset": 6, "limit": 3}, {"page": 3, "limit": 3}, {"page": 3, "page_size": 3}]
)
def test_offsets_and_page_numbers_give_the_same_page(
    library: Library, paging: dict[str, int]
) -> None:
    whole = ids(library.ok("search_papers", query="learning"))
    assert ids(library.ok("search_papers", query="learning", **paging)) == whole[6:9]


@pytest.mark.parametrize("size", [{"limit": 100}, {"page_size": 100}])
@pytest.mark.parametrize("where", [{}, {"page": 1}, {"offset": 0}])
def test_a_page_that_ends_early_goes_on_with_the_size_that_was_asked_for(
    library: Library, size: dict[str, int], where: dict[str, int]
) -> None:
    answer = library.ok("search_papers", query="the", **size, **where)
    assert answer.structured["meta"]["ended_early"] and "ended early" in answer.text
    (following,) = (call for call in printed_calls(answer.text) if call.why == "next_page")
    assert following.args["limit"] == 100
    rest = library.ok(following.tool, **following.args)
    assert rest.structured["meta"]["offset"] == len(ids(answer))


def test_a_later_page_that_would_end_early_starts_where_it_should(library: Library) -> None:
    query = "the"
    whole = [
        paper_id
        for start in range(0, 50, 10)
        for paper_id in ids(library.ok("search_papers", query=query, offset=start))
    ]
    answer = library.ok("search_papers", query=query, page=2, page_size=22)
    assert ids(answer) == whole[22 : 22 + len(ids(answer))] and ids(answer)


def test_a_find_that_a_hit_offers_finds_its_words_there(library: Library) -> None:
    """The call opens the source or the translation that contains the match."""
    finds = 0
    for query in [*QUERIES, "backpropagation", "自注意力", "エンコーダ", "残差学习", "编码器"]:
        for hit in library.ok("search_papers", query=query, limit=50).structured["data"]:
            for call in structured_calls(hit):
                if call.why == "find":
                    finds += 1
                    assert library.ok(call.tool, **call.args).structured["data"], (query, call)
    assert finds > 0


def test_snippets_of_a_latin_query_are_not_from_a_translation(library: Library) -> None:
    hits = library.ok("search_papers", query="deep learning").structured["data"]
    for hit in hits:
        assert hit["matched_in"] != "translated", hit


@pytest.mark.parametrize("category", ["author", "venue", "keyword", "institution", "tag"])
@scenario("002/facets/sorted-by-papers")
def test_facets_are_sorted_by_papers_then_by_value(library: Library, category: str) -> None:
    answer = library.ok("list_top_facets", category=category, limit=10)
    expected = library.release.rows(
        f"SELECT value, count(DISTINCT paper_id) AS papers FROM {category} "
        f"JOIN paper_{category} USING ({category}_id) JOIN paper USING (paper_id) "
        "GROUP BY value ORDER BY papers DESC, value LIMIT 10"
    )
    shown = [(row["value"], row["paper_count"]) for row in answer.structured["data"]]
    assert shown == expected
    for (value, count), line in zip(shown, answer.lines[1:], strict=False):
        assert line.startswith(f"{count} ") and value.strip('"') in line


@pytest.mark.parametrize("category", ["year", "month", "template", "language"])
def test_the_other_categories_count_papers_too(library: Library, category: str) -> None:
    rows = library.ok("list_top_facets", category=category, limit=100).structured["data"]
    counts = [row["paper_count"] for row in rows]
    assert counts and counts == sorted(counts, reverse=True)
    if category == "language":
        assert {row["value"]: row["paper_count"] for row in rows} == {
            lang: sum(lang in paper.translations for paper in known().values())
            for lang in ("zh", "ja")
        }


@pytest.mark.parametrize(
    "category", ["author", "venue", "keyword", "tag", "institution", "year", "month"]
)
def test_each_facet_value_comes_with_a_call_that_finds_its_papers(
    library: Library, category: str
) -> None:
    for row in library.ok("list_top_facets", category=category).structured["data"]:
        (call,) = structured_calls(row)
        found = ids(library.ok(call.tool, **{**call.args, "limit": 100}))
        assert len(found) >= row["paper_count"], (row["value"], len(found))


def test_paging_through_facets_gives_every_value_once(library: Library) -> None:
    whole: list[Any] = []
    args: dict[str, Any] = {"category": "tag", "limit": 7}
    while True:
        answer = library.ok("list_top_facets", **args)
        whole += [row["value"] for row in answer.structured["data"]]
        following = [call for call in printed_calls(answer.text) if call.why == "next_page"]
        if not following:
            break
        args = following[0].args
    assert len(whole) == len(set(whole)) == answer.structured["meta"]["total"]
