"""What a hit shows: proven snippets, the find behind them, the authors."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evidence.limits import BUDGETS
from evidence.papers import PaperHit
from evidence.text import split
from service.papers.search import search
from service.papers.snapshot import Snapshot
from service.ports.papers import PaperQuery
from tests.unit.service.papers.making import RELEASES, Made, made, opened


@pytest.fixture(scope="module", params=RELEASES)
def snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    found = opened(request.param)
    yield found
    found.close()


def hits(snapshot: Snapshot, query: str) -> list[PaperHit]:
    return search(snapshot, PaperQuery(query, limit=100)).hits


def test_snippets_are_proven_in_the_cheapest_text(tmp_path: Path) -> None:
    snapshot = made(
        tmp_path,
        Made("t", title="Zymurgy today"),
        Made("s", summary="We brew. Zymurgy is old."),
        Made("m", authors=["Zymurgy Smith"]),
        Made("o", source="A long source with zymurgy in it"),
        Made("x", source="Nothing", translated="关于zymurgy的研究", languages=["zh", "de"]),
    )
    found = {hit.paper_id: hit for hit in hits(snapshot, "zymurgy")}
    assert {name: hit.place for name, hit in found.items()} == {
        "t": "title",
        "s": "summary",
        "m": "metadata",
        "o": "source",
        "x": "translated",
    }
    assert found["t"].snippet == "<mark>Zymurgy</mark> today"
    assert (found["o"].find, found["o"].lang) == ("zymurgy", None)
    assert (found["x"].find, found["x"].lang) == ("zymurgy", "zh")
    assert found["x"].snippet == "关于<mark>zymurgy</mark>的研究"
    assert found["s"].find is None
    snapshot.close()


def test_a_text_with_all_words_is_preferred_to_a_cheaper_one_with_some(tmp_path: Path) -> None:
    snapshot = made(
        tmp_path,
        Made("all", title="Zymurgy", summary="brewing only", source="zymurgy and then brewing"),
        Made("some", title="Zymurgy", summary="zymurgy of brewing", source="zymurgy brewing hops"),
        Made("parted", title="Zymurgy zythum", summary="zymurgy", source="nothing but brewing"),
    )
    places = {hit.paper_id: hit.place for hit in hits(snapshot, "zymurgy brewing")}
    assert places == {"all": "source", "some": "summary", "parted": "title"}
    snapshot.close()


def test_where_no_text_has_all_words_the_one_with_most_is_shown(tmp_path: Path) -> None:
    snapshot = made(
        tmp_path, Made("most", title="Zymurgy", source="zythum brewing", translated="brewing")
    )
    [hit] = hits(snapshot, "zymurgy zythum brewing")
    assert hit.place == "source"
    assert hit.snippet == "<mark>zythum</mark> <mark>brewing</mark>"
    snapshot.close()


def test_only_free_words_are_offered_to_find(tmp_path: Path) -> None:
    snapshot = made(
        tmp_path, Made("o", title="Beer", source="zymurgy is the craft", authors=["Ann Smith"])
    )
    [hit] = hits(snapshot, 'zymurgy -wine title:beer author:"ann smith" "the craft"')
    assert (hit.place, hit.find) == ("source", 'zymurgy "the craft"')
    snapshot.close()


def test_a_match_behind_what_is_looked_at_shows_the_preview(tmp_path: Path) -> None:
    far = "word " * (BUDGETS.paper_proof_bytes // 5) + "zymurgy"
    snapshot = made(tmp_path, Made("far", summary="A preview <mark>of it</mark>", source=far))
    [hit] = hits(snapshot, "zymurgy")
    assert hit.place is None and hit.find is None
    assert split(hit.snippet) == ("A preview <mark>of it</mark>", ())
    snapshot.close()


def test_no_word_is_cut_where_a_long_text_is_first_looked_at(tmp_path: Path) -> None:
    begun = "x" * 16_376 + " zymurgyx and zymurgy"  # the first look ends inside of zymurgyx
    snapshot = made(tmp_path, Made("cut", source=begun))
    [hit] = hits(snapshot, "zymurgy")
    assert hit.snippet.endswith("zymurgyx and <mark>zymurgy</mark>")
    snapshot.close()


@pytest.mark.parametrize(
    "query", ["the", "深度学习", "learning", "数据", "a* -b", "self-attention"]
)
def test_snippets_are_short_balanced_and_marked(snapshot: Snapshot, query: str) -> None:
    for hit in hits(snapshot, query):
        assert len(hit.snippet.encode()) <= BUDGETS.paper_snippet_bytes + 2 * len("…".encode())
        assert hit.snippet.count("<mark>") == hit.snippet.count("</mark>")
        assert ("<mark>" in hit.snippet) == (hit.place is not None)
        assert not re.search("[\u4e00-\u9fff] [\u4e00-\u9fff]", split(hit.snippet)[0])


def test_an_english_query_is_shown_in_english(snapshot: Snapshot) -> None:
    assert "translated" not in {hit.place for hit in hits(snapshot, "deep learning")}


def test_field_queries_show_the_preview(snapshot: Snapshot) -> None:
    [hit] = hits(snapshot, 'author:"yann lecun"')
    assert hit.place is None and hit.snippet.startswith("Problem.")


def test_authors_are_in_their_order_and_spelling(snapshot: Snapshot) -> None:
    [hit] = hits(snapshot, "arXiv:1706.03762")[:1]
    assert hit.authors == [
        *("Ashish Vaswani", "Noam Shazeer", "Niki Parmar"),
        *("Jakob Uszkoreit", "Llion Jones", "Aidan N. Gomez"),
    ]
    assert hit.authors_total == 8


@pytest.mark.parametrize(("query", "lang"), [("本研究", "zh"), ("これは", "ja"), ("zythum", "de")])
def test_the_translation_is_told_by_its_script(tmp_path: Path, query: str, lang: str) -> None:
    texts = (
        "本研究的方法" + " filler" * 200 + " これは方法です" + " filler" * 200 + " das zythum hier"
    )
    snapshot = made(
        tmp_path,
        Made("x", translated=texts, languages=["ja", "de", "zh"]),
    )
    [hit] = [hit for hit in hits(snapshot, query) if hit.paper_id == "x"]
    assert (hit.place, hit.lang) == ("translated", lang)
    snapshot.close()
