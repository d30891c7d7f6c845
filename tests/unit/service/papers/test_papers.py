"""One paper: the names it goes by, and what is known of it."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from evidence.errors import Ambiguous, NotFound
from evidence.limits import BUDGETS
from evidence.papers import Paper
from service.papers import papers
from service.papers.names import in_order
from service.papers.search import search
from service.papers.snapshot import Snapshot
from service.ports.papers import PaperQuery
from tests.helpers.scale import times
from tests.helpers.snapshots import DATA
from tests.unit.service.papers.making import RELEASES, Made, made, opened

ATTENTION = "acbe5881db11f906e180120c8ce2f93a"
DEEP_LEARNING = "b3b71e88c072bbc4241585aa04a513cc"


@pytest.fixture(scope="module", params=RELEASES)
def snapshot(request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    found = opened(request.param)
    yield found
    found.close()


def read(snapshot: Snapshot, given: str) -> Paper:
    return papers.read(snapshot, papers.identify(snapshot, given), None)


# Names


@pytest.mark.parametrize(
    ("given", "paper_id"),
    [
        (ATTENTION, ATTENTION),
        (f" {ATTENTION}\n", ATTENTION),
        ("10.1038/nature14539", DEEP_LEARNING),
        ("doi:10.1038/Nature14539", DEEP_LEARNING),
        ("DOI: 10.1038/nature14539.", DEEP_LEARNING),
        ("https://doi.org/10.1038%2Fnature14539", DEEP_LEARNING),
        ("http://dx.doi.org/10.1038/nature14539", DEEP_LEARNING),
        ("1706.03762", ATTENTION),
        ("arXiv:1706.03762v7", ATTENTION),
        ("https://arxiv.org/abs/1706.03762v1", ATTENTION),
        ("https://arxiv.org/pdf/1706.03762.pdf", ATTENTION),
        ("10.48550/arXiv.1706.03762", ATTENTION),
        ("vaswani2017attention", ATTENTION),
        ("bib:Vaswani2017Attention", ATTENTION),
        ("Attention Is All You Need", ATTENTION),
        ("attention is all you need.", ATTENTION),
        ("DEEP  LEARNING", DEEP_LEARNING),
    ],
)
def test_a_paper_is_known_by_all_its_names(snapshot: Snapshot, given: str, paper_id: str) -> None:
    assert papers.identify(snapshot, given).paper_id == paper_id


def test_every_paper_is_known_by_its_id_and_doi() -> None:
    snapshot = opened("papers")
    for expected in json.loads((DATA / "papers" / "expected.json").read_text()):
        for name in filter(None, (expected["paper_id"], expected["doi"])):
            assert papers.identify(snapshot, name).title == expected["title"]
    snapshot.close()


def test_a_doi_is_known_however_it_was_stored(tmp_path: Path) -> None:
    stored = {"url": "https://doi.org/10.5555/A.b", "mixed": "10.5555/ABC", "both": "10.5555/(x)y"}
    snapshot = made(tmp_path, *(Made(name, doi=doi) for name, doi in stored.items()))
    for name, doi in stored.items():
        assert papers.identify(snapshot, doi).paper_id == name
        assert (
            papers.identify(snapshot, doi.lower().removeprefix("https://doi.org/")).paper_id == name
        )
    assert read(snapshot, "url").doi == "10.5555/a.b"
    snapshot.close()


def test_ids_of_other_builders_are_known_exactly(tmp_path: Path) -> None:
    snapshot = made(tmp_path, Made("legacy-paper"), Made("Legacy_Paper", title="Other"))
    assert papers.identify(snapshot, "legacy-paper").title == "Untitled"
    assert papers.identify(snapshot, "Legacy_Paper").title == "Other"
    with pytest.raises(NotFound):
        papers.identify(snapshot, "LEGACY-PAPER")
    snapshot.close()


def test_a_title_of_two_papers_is_ambiguous(tmp_path: Path) -> None:
    snapshot = made(tmp_path, Made("one", title="Twin", year="2001"), Made("two", title="TWIN!"))
    with pytest.raises(Ambiguous) as refused:
        papers.identify(snapshot, "twin")
    assert refused.value.code == "ambiguous_paper" and refused.value.retry_with == "paper_id"
    assert refused.value.details["candidates"] == [
        {"paper_id": "one", "title": "Twin", "year": "2001", "venue": "unknown"},
        {"paper_id": "two", "title": "TWIN!", "year": "2020", "venue": "unknown"},
    ]
    snapshot.close()


@pytest.mark.parametrize(
    "given",
    [
        *("Atention is all you needed", "highly accurate protein structures"),
        *("the alphafold paper: highly accurate protein structure", "卷积神经网络研究"),
    ],
)
def test_what_is_not_found_names_near_papers_and_a_search(snapshot: Snapshot, given: str) -> None:
    with pytest.raises(NotFound) as refused:
        papers.identify(snapshot, given)
    error = refused.value
    assert error.code == "paper_not_found" and error.details["paper_id"] == given
    assert 0 < len(error.details["near"]) <= BUDGETS.paper_suggestions
    assert set(error.details["near"][0]) == {"paper_id", "title", "year"}
    [call] = error.calls
    assert (call.operation, call.args) == ("search_papers", {"query": given})
    search(snapshot, PaperQuery(call.args["query"], limit=10))


@pytest.mark.parametrize(
    "given", ["0" * 32, "10.9999/none", "2401.99999", "", "\0", "\ud800", "%", "_"]
)
def test_an_unknown_number_is_not_searched_for(snapshot: Snapshot, given: str) -> None:
    with pytest.raises(NotFound) as refused:
        papers.identify(snapshot, given)
    assert refused.value.calls == () and refused.value.details.get("near") is None


def test_a_long_name_is_cut_in_the_error(snapshot: Snapshot) -> None:
    with pytest.raises(NotFound) as refused:
        papers.identify(snapshot, "word " * 100)
    assert len(refused.value.details["paper_id"]) == papers.NAME_CHARS


@settings(max_examples=times(80, 30), deadline=None)
@given(text=st.text(max_size=80))
def test_any_text_names_a_paper_or_none(snapshot: Snapshot, text: str) -> None:
    try:
        papers.identify(snapshot, text)
    except (NotFound, Ambiguous) as refused:
        assert refused.code in ("paper_not_found", "ambiguous_paper")


# What is known


def test_a_paper_is_described(snapshot: Snapshot) -> None:
    paper = read(snapshot, ATTENTION)
    assert paper.authors[:2] == ["Ashish Vaswani", "Noam Shazeer"]
    assert paper.authors[6:] == ["Łukasz Kaiser", "Illia Polosukhin"]
    assert paper.arxiv_id == "1706.03762"
    assert paper.bibtex_key == "vaswani2017attention"
    assert paper.doi is None
    assert paper.preferred_summary_template == "simple"
    assert paper.available_summary_templates == ["deep_read", "eight_questions", "simple"]
    assert paper.languages == ["ja", "zh"]
    assert paper.keywords == sorted(paper.keywords) and "transformer" in paper.keywords
    assert paper.has_source and paper.has_pdf and paper.left_out == {}
    assert (paper.year, paper.month) == ("2017", "06")


def test_identifiers_are_those_of_any_release(snapshot: Snapshot) -> None:
    assert read(snapshot, DEEP_LEARNING).doi == "10.1038/nature14539"


def test_bibtex_is_shown_where_the_release_has_it() -> None:
    for release, there in zip(RELEASES, (True, False)):
        snapshot = opened(release)
        assert (read(snapshot, ATTENTION).bibtex is not None) is there
        snapshot.close()


def test_a_paper_without_texts_says_so() -> None:
    snapshot = opened("papers")
    row = papers.identify(snapshot, "Unmatched Scan Of A Lost Memo")
    paper = papers.read(snapshot, row, None)
    assert row.preferred_summary_template == "default" and papers.templates(snapshot, row) == {}
    assert not paper.has_source and paper.has_pdf and paper.authors == []
    assert paper.output_language is None
    snapshot.close()


def test_empty_hashes_are_as_good_as_none(tmp_path: Path) -> None:
    def empty(db: sqlite3.Connection) -> None:
        db.execute("UPDATE paper SET pdf_content_hash = '', source_md_content_hash = ''")
        db.execute("UPDATE paper_translation SET md_content_hash = '' WHERE lang = 'zh'")

    snapshot = made(tmp_path, change=empty)
    row = papers.identify(snapshot, ATTENTION)
    assert row.pdf_content_hash is None and row.source_md_content_hash is None
    assert list(papers.translations(snapshot, row)) == ["ja"]
    snapshot.close()


def test_languages_are_as_they_are_stored(tmp_path: Path) -> None:
    snapshot = made(tmp_path, Made("upper", languages=["zh-CN", "PT"]))
    row = papers.identify(snapshot, "upper")
    assert papers.translations(snapshot, row) == {"PT": "1" * 64, "zh-CN": "1" * 64}
    snapshot.close()


def test_newer_releases_name_the_files_of_their_summaries(tmp_path: Path) -> None:
    def newer(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE paper_summary ADD COLUMN resource_path TEXT")
        db.execute("ALTER TABLE paper_summary ADD COLUMN content_hash TEXT")
        db.execute(
            "UPDATE paper_summary SET resource_path = 'summary/x.json', content_hash = 'ab' "
            "WHERE template_tag = 'simple'"
        )

    snapshot = made(tmp_path, change=newer)
    row = papers.identify(snapshot, ATTENTION)
    assert papers.templates(snapshot, row) == {
        "deep_read": (None, None),
        "eight_questions": (None, None),
        "simple": ("summary/x.json", "ab"),
    }
    snapshot.close()


def test_long_lists_are_cut_and_counted(tmp_path: Path) -> None:
    many = [f"name {number:03}" for number in range(BUDGETS.paper_names + 5)]
    values = {"keyword": many, "tag": many[:3], "institution": many}
    snapshot = made(tmp_path, Made("many", authors=many[::-1], values=values))
    paper = read(snapshot, "many")
    assert paper.authors == many[::-1][: BUDGETS.paper_names]
    assert paper.left_out == {"authors": 5, "keywords": 5, "institutions": 5}
    [hit] = search(snapshot, PaperQuery("many", limit=1)).hits
    assert hit.authors_total == len(many) and len(hit.authors) == BUDGETS.paper_hit_authors
    snapshot.close()


def test_a_long_bibtex_entry_is_left_out(tmp_path: Path) -> None:
    long = "@misc{" + "x" * BUDGETS.paper_bibtex_chars
    snapshot = made(
        tmp_path, change=lambda db: db.execute("UPDATE paper_bibtex SET bibtex_raw = ?", (long,))
    )
    paper = read(snapshot, ATTENTION)
    assert paper.bibtex is None and paper.bibtex_key == "vaswani2017attention"
    snapshot.close()


# Authors


def test_all_authors_of_a_release_are_found_in_their_order(snapshot: Snapshot) -> None:
    with snapshot.connection() as db:
        stored = db.execute(
            "SELECT paper_id, count(*) FROM paper_author JOIN author USING (author_id) "
            "WHERE value <> 'unknown' GROUP BY paper_id"
        ).fetchall()
    assert stored
    for paper_id, count in stored:
        authors = read(snapshot, paper_id).authors
        assert len(authors) == count
        assert all(name != name.lower() or not name.isascii() for name in authors), authors


@pytest.mark.parametrize(
    ("text", "names", "ordered"),
    [
        ("T Jan Lind Jan Li Venue", ["jan li", "jan lind"], ["Jan Lind", "Jan Li"]),
        ("T  Zoë  Ó Briain 王小明 V", ["zoë ó briain", "王小明"], ["Zoë Ó Briain", "王小明"]),
        ("T A. One V", ["a. one", "lost"], ["A. One", "lost"]),
        ("T V", [], []),
        ("Other title A. One", ["a. one"], None),
    ],
)
def test_authors_are_read_off_the_metadata(
    text: str, names: list[str], ordered: list[str] | None
) -> None:
    assert in_order(text, "t", names) == ordered


def test_authors_that_cannot_be_read_off_are_alphabetical(tmp_path: Path) -> None:
    snapshot = made(
        tmp_path,
        Made("stale", title="Zymurgy", authors=["Zoe", "Abe"]),
        change=lambda db: db.execute("UPDATE paper SET title = 'New' WHERE paper_id = 'stale'"),
    )
    assert read(snapshot, "stale").authors == ["abe", "zoe"]
    snapshot.close()


@pytest.mark.parametrize("text", [b"\xff", b"", None, 5])
def test_metadata_that_is_no_text_costs_the_order_of_authors_only(
    tmp_path: Path, text: object
) -> None:
    def spoil(db: sqlite3.Connection) -> None:
        db.execute("UPDATE paper_fts_content SET c5 = ? WHERE c0 = 'odd'", (text,))

    paper = Made("odd", "Title", authors=("ada author", "bo writer"))
    found = read(made(tmp_path, paper, change=spoil), "odd")
    assert sorted(name.lower() for name in found.authors) == ["ada author", "bo writer"]
