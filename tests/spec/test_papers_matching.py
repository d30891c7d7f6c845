"""Papers are found by other word forms, with typos and by partial matches, which hits report."""

from urllib.parse import quote

import pytest

from tests.helpers.caller import Answer
from tests.helpers.papers import Library, ids
from tests.spec.test_papers_search import MARK

RESIDUAL = "4c5f2d731347088f207815846bef7567"
PROTEIN = "9f6ae4d9019cc9072b2b82f324ffdadf"


def line_of(answer: Answer, paper_id: str) -> str:
    """The line of a hit in the text."""
    return next(line for line in answer.lines if f" {paper_id} " in line)


@pytest.mark.parametrize(
    ("query", "paper_id", "forms"),
    [
        ("predicted proteins", PROTEIN, {"predicted": "prediction", "proteins": "protein"}),
        ("residaul", RESIDUAL, {"residaul": "residual"}),
        ("resdual learning", RESIDUAL, {"resdual": "residual"}),
        ("residual learning", RESIDUAL, {}),
    ],
)
def test_a_hit_reports_and_marks_the_forms_it_matched_in(
    library: Library, query: str, paper_id: str, forms: dict[str, str]
) -> None:
    answer = library.ok("search_papers", query=query)
    hit = answer.structured["data"][0]
    assert (hit["paper_id"], hit["missing_words"], hit["coverage"]) == (paper_id, [], 1.0)
    assert hit["matched_words"] == query.split() and hit["forms"] == forms
    marks = " ".join(MARK.findall(hit["snippet_markdown"])).lower()
    for word in query.split():
        assert forms.get(word, word) in marks
    for word, form in forms.items():
        assert f'"{form}" for "{word}"' in line_of(answer, paper_id)
    assert (" matched " in line_of(answer, paper_id)) == bool(forms)


def test_a_paper_that_lacks_words_matches_and_lists_them(library: Library) -> None:
    answer = library.ok("search_papers", query="residual learning of zebrafish by the sea")
    hit = answer.structured["data"][0]
    assert hit["paper_id"] == RESIDUAL and 0 < hit["coverage"] < 1
    assert (hit["matched_words"], hit["missing_words"]) == (
        ["residual", "learning"],
        ["zebrafish", "sea"],
    )
    assert "matched 2 of 4, missing: zebrafish, sea" in line_of(answer, RESIDUAL)
    assert answer.structured["meta"]["counts"]["all"] == 0


@pytest.mark.parametrize("query", ["deep learning", "transformers retrieval", "强化学习 围棋"])
def test_the_counts_are_those_of_all_pages(library: Library, query: str) -> None:
    answer = library.ok("search_papers", query=query, limit=5)
    counts = answer.structured["meta"]["counts"]
    assert f"all={counts['all']} some={counts['some']}" in answer.lines[0]
    hits = []
    for offset in range(0, counts["some"] + 5, 5):
        hits += library.ok("search_papers", query=query, limit=5, offset=offset).structured["data"]
    assert counts["some"] == len(hits) == len({hit["paper_id"] for hit in hits})
    assert counts["all"] == sum(not hit["missing_words"] for hit in hits)


@pytest.mark.parametrize(
    "query", ['"residaul learning"', "residaul*", "title:residaul", "title:residuals", "author:hee"]
)
def test_required_parts_are_neither_inflected_nor_corrected(library: Library, query: str) -> None:
    assert ids(library.ok("search_papers", query=query)) == []
    assert ids(library.ok("search_papers", query=f"learning {query}")) == []


def test_a_required_part_limits_what_the_words_find(library: Library) -> None:
    answer = library.ok("search_papers", query='"residual learning" zebrafish nets', limit=100)
    assert ids(answer) == [RESIDUAL]
    assert answer.structured["data"][0]["matched_words"] == ["nets", "residual learning"]
    assert ids(library.ok("search_papers", query='"residual learning" zebrafish')) == []


def test_the_rest_body_reports_the_same_match(library: Library) -> None:
    query = "residaul learning of zebrafish"
    mine = library.ok("search_papers", query=query).structured
    theirs = library.get(f"/papers/v1/search?q={quote(query)}")
    assert theirs["meta"]["counts"] == mine["meta"]["counts"]
    for here, there in zip(mine["data"], theirs["data"], strict=True):
        for key in ("coverage", "matched_words", "missing_words", "forms"):
            assert here[key] == there[key]


def test_a_word_of_the_title_that_is_the_query_comes_first(library: Library) -> None:
    hits = library.ok("search_papers", query="deep learning").structured["data"]
    assert hits[0]["title"] == "Deep learning"
