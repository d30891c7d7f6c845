"""Papers by meaning: their order, related papers, and the file that has the vectors."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from evidence.errors import Unavailable
from evidence.text import json_line
from service import settings
from service.app import create_app
from service.bootstrap import Services
from service.meaning.building import Progress
from service.meaning.building import build as build_vectors
from service.meaning.papers import PaperMeaning, filled_store
from service.papers.snapshot import open_snapshot
from service.papers.snapshot_library import Papers
from tests.helpers.papers import Library, Release, in_process, papers_app
from tests.helpers.server import UNLIMITED
from tests.helpers.snapshots import DATA, changed, place
from tests.helpers.trigrams import Trigrams, serving
from tests.helpers.waiting import WAIT_SECONDS
from tests.spec.test_meaning import Broken

#: No paper has these words, not even spelled a little differently; most of their trigrams occur.
UNPROVEN = "residduall lerrningg recoggnitionn"
WORDS = "deep residual learning for recognition"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the vectors of the release."""
    folder = tmp_path_factory.mktemp("vectors")
    embed(DATA / "papers" / "snapshot.db", folder)
    return folder


@pytest.fixture
def library(folder: Path) -> Library:
    return opened(folder)


def embed(snapshot: Path, folder: Path) -> Progress:
    """Builds the vectors of a snapshot."""
    commits = list[Progress]()
    papers = partial(filled_store, Papers(snapshot), folder)
    build_vectors(None, Trigrams(), Event(), commits.append, papers=papers)
    return commits[-1]


def opened(folder: Path, encoder: Trigrams = Trigrams()) -> Library:
    """A library whose vectors are in a folder."""
    release = Release(DATA / "papers")
    meaning = PaperMeaning(folder, encoder).open
    papers = Papers(release.snapshot, None, meaning)
    return Library(create_app(Services(settings.load(UNLIMITED), papers=papers)), release)


def by_words() -> Library:
    return in_process()


def test_the_file_is_named_by_the_snapshot_which_stays_as_it_is(tmp_path: Path) -> None:
    snapshot = place(tmp_path / "papers" / "snapshot.db")
    before = snapshot.read_bytes(), os.listdir(snapshot.parent)
    progress = embed(snapshot, tmp_path / "vectors")
    opened_snapshot = open_snapshot(snapshot)
    assert progress.records == progress.total == opened_snapshot.papers == 46
    (file,) = (tmp_path / "vectors").glob("*.db")
    assert file.name == f"papers-{opened_snapshot.sha256}.db"
    assert (snapshot.read_bytes(), os.listdir(snapshot.parent)) == before
    assert embed(snapshot, tmp_path / "vectors").vectors == 0
    changed(snapshot, lambda db: db.execute("UPDATE paper SET title = title || ' again'"))
    embed(snapshot, tmp_path / "vectors")
    assert len(list((tmp_path / "vectors").glob("*.db"))) == 2


def test_related_papers_fill_free_places_and_prove_nothing(library: Library) -> None:
    answer = library.ok("search_papers", query=UNPROVEN, limit=5)
    hits = answer.structured["data"]
    related = [hit for hit in hits if hit.get("kind") == "related"]
    assert related == hits and hits[0]["title"].startswith("Deep Residual Learning")
    for hit in related:
        ((preview,),) = library.release.rows(
            "SELECT summary_preview FROM paper WHERE paper_id = ?", hit["paper_id"]
        )
        assert hit["matched_in"] is None and "coverage" not in hit
        assert "<mark>" not in hit["snippet_markdown"]
        assert hit["snippet_markdown"][:40] == preview[:40]
    counts = answer.structured["meta"]["counts"]
    assert (counts["all"], counts["some"], len(related)) == (0, 0, 5)
    assert "papers=0 related=5" in answer.lines[0]
    assert "ranking=words+meaning" in answer.lines[0]
    assert answer.text.count(" related preview of its summary:") == len(related)
    assert "nothing is proven" in answer.text
    rest = library.get(f"/papers/v1/search?q={UNPROVEN.replace(' ', '+')}&limit=5")
    assert [hit.get("kind") for hit in rest["data"]] == [hit.get("kind") for hit in hits]


def test_at_most_three_of_ten_are_related_if_a_paper_holds_a_word(library: Library) -> None:
    answer = library.ok("search_papers", query="lidar odommetryy mappinggs", limit=10)
    counts, hits = answer.structured["meta"]["counts"], answer.structured["data"]
    related = sum(hit.get("kind") == "related" for hit in hits)
    assert (counts["some"], related, len(hits)) == (2, 3, 5)
    assert [hit.get("kind") for hit in hits[2:]] == ["related"] * 3
    assert answer.structured["has_more"] is False


def test_all_pages_have_each_paper_with_a_word_once(library: Library) -> None:
    shown, cursor = list[str](), {}
    while cursor is not None:
        page = library.ok("search_papers", query=WORDS, limit=7, **cursor).structured
        shown += [hit["paper_id"] for hit in page["data"]]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert len(shown) == len(set(shown)) == page["meta"]["counts"]["some"]
    first = [hit["paper_id"] for hit in page_of(library)]
    assert shown[: len(first)] == first != [hit["paper_id"] for hit in page_of(by_words())]


def page_of(library: Library) -> list[dict[str, Any]]:
    """The first page of a question."""
    hits: list[dict[str, Any]] = library.ok("search_papers", query=WORDS).structured["data"]
    return hits


@pytest.mark.parametrize(
    "query",
    ["attention", '"deep learning" images', "author:he deep nets", "deep nets -survey", "nets*"],
)
def test_words_alone_rank_what_asks_for_words(library: Library, query: str) -> None:
    answer, expected = (at.ok("search_papers", query=query) for at in (library, by_words()))
    assert answer.structured["data"] == expected.structured["data"]


def test_without_vectors_or_a_model_the_answer_is_by_words(tmp_path: Path, folder: Path) -> None:
    expected = by_words().ok("search_papers", query=WORDS)
    assert opened(tmp_path).ok("search_papers", query=WORDS).text == expected.text
    broken = opened(folder, Broken()).ok("search_papers", query=WORDS)
    (tmp_path / next(folder.glob("*.db")).name).write_bytes(b"not a store")
    damaged = opened(tmp_path).ok("search_papers", query=WORDS)
    for answer in (broken, damaged):
        assert answer.structured["data"] == expected.structured["data"]
        (warning,) = answer.structured["meta"]["warnings"]
        assert warning["code"] == "semantic_unavailable"
        assert f"warning semantic_unavailable: {json_line(warning['message'])}" in answer.text


def test_a_folder_that_cannot_be_written_is_an_error_of_the_builder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    papers = Papers(DATA / "papers" / "snapshot.db")
    with pytest.raises(Unavailable, match="cannot be created"):
        filled_store(papers, tmp_path / "file" / "vectors")


def test_the_command_builds_them_and_the_server_asks_for_them(tmp_path: Path) -> None:
    snapshot = DATA / "papers" / "snapshot.db"
    with serving() as endpoint:
        environ = {**endpoint, "RUNG_STORE": str(tmp_path / "var" / "rung.db")}
        variables = {**os.environ, **environ, "RUNG_PAPERS_DB": str(snapshot)}
        command = [sys.executable, "-m", "service", "vectors", "build"]
        subprocess.run(command, env=variables, check=True, timeout=WAIT_SECONDS)
        library = Library(papers_app(snapshot, **environ), Release(snapshot.parent))
        answer = library.ok("search_papers", query=UNPROVEN)
    assert answer.structured["data"][0]["kind"] == "related"
