"""Papers by a part of their keywords or tags."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from evidence.errors import InvalidRequest
from evidence.papers import PaperHit
from service.papers.search import by_keyword
from service.papers.snapshot import Snapshot
from service.ports.papers import KeywordQuery
from tests.helpers.scale import times
from tests.unit.service.papers.making import RELEASES, Made, made, opened


@pytest.fixture(scope="module", params=RELEASES)
def snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    found = opened(request.param)
    yield found
    found.close()


def with_keyword(snapshot: Snapshot, keyword: str) -> list[PaperHit]:
    return by_keyword(snapshot, KeywordQuery(keyword, limit=100)).hits


def test_keywords_and_tags_hold_the_text_whatever_its_case(snapshot: Snapshot) -> None:
    found = with_keyword(snapshot, "TRANSFORM")
    assert len(found) >= 5
    assert all(
        hit.place == "keywords" and "<mark>transform</mark>er" in hit.snippet for hit in found
    )
    assert any(hit.snippet.startswith("tags: ") for hit in with_keyword(snapshot, "classic"))


def test_exact_keywords_come_first_then_newer_papers(tmp_path: Path) -> None:
    snapshot = made(
        tmp_path,
        Made("part", year="2024", values={"keyword": ["zymurgy basics"]}),
        Made("whole", year="1990", values={"keyword": ["hops", "zymurgy"]}),
        Made("tagged", year="unknown", values={"tag": ["zymurgy"]}),
        Made("old", year="1800", values={"tag": ["zymurgy ale"], "keyword": ["malt"]}),
    )
    found = with_keyword(snapshot, "Zymurgy")
    assert [hit.paper_id for hit in found] == ["whole", "tagged", "part", "old"]
    assert found[0].snippet == "keywords: <mark>zymurgy</mark>, hops"
    assert found[3].snippet == "tags: <mark>zymurgy</mark> ale"
    snapshot.close()


@pytest.mark.parametrize("keyword", ["pre-training", "Pre Training", "pre–training"])
def test_dashes_and_spaces_are_alike_in_keywords(snapshot: Snapshot, keyword: str) -> None:
    assert "<mark>pre-training</mark>" in with_keyword(snapshot, keyword)[0].snippet


@pytest.mark.parametrize("keyword", ["", "  ", "\u0301"])
def test_an_empty_keyword_is_refused(snapshot: Snapshot, keyword: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        with_keyword(snapshot, keyword)
    assert refused.value.code == "invalid_query"


def test_keyword_pages_follow_each_other(snapshot: Snapshot) -> None:
    whole = [hit.paper_id for hit in with_keyword(snapshot, "e")]
    page = by_keyword(snapshot, KeywordQuery("e", limit=7))
    read = [hit.paper_id for hit in page.hits]
    while page.next_cursor:
        page = by_keyword(snapshot, KeywordQuery("e", limit=7, cursor=page.next_cursor))
        read += [hit.paper_id for hit in page.hits]
    assert read == whole and len(whole) > 7


def test_wildcards_are_ordinary_characters(snapshot: Snapshot) -> None:
    for part in ("%", "_"):
        [hit] = with_keyword(snapshot, part)
        assert f"<mark>{part}</mark>" in hit.snippet  # of the tag 100%_recall
    assert with_keyword(snapshot, "transf_rmer") == []


def test_a_misspelt_keyword_is_put_right(snapshot: Snapshot) -> None:
    page = by_keyword(snapshot, KeywordQuery("tranformer", limit=10))
    assert page.hits == [] and "transformer" in page.did_you_mean
    assert [call.args for call in page.continuations()][0] == {"keyword": "transformer"}


@settings(
    max_examples=times(60, 20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.text(max_size=30))
def test_any_keyword_gets_a_page_or_a_reason(snapshot: Snapshot, text: str) -> None:
    try:
        by_keyword(snapshot, KeywordQuery(text, limit=3))
    except InvalidRequest as refused:
        assert refused.code == "invalid_query"
