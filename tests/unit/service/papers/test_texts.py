"""Windows rebuild a text to the character; finds walk through it once, in order."""

import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from evidence.errors import InvalidRequest, Unavailable
from evidence.limits import BUDGETS
from evidence.papers import TextMatch
from evidence.text import unmark
from evidence.work import Deadline
from service.papers import assets
from service.papers.assets import LocalAssets
from service.papers.text_file import BLOCK_BYTES, STEP_CHARS, TextFile
from service.papers.text_places import CHUNK_CHARS, OVERLAP_CHARS, find
from tests.helpers.asset_files import PAPER, digest, soon, text_file

DATA = Path(__file__).parents[3] / "data" / "papers"
UNITS = ["a", "word ", "é", "中", "𝔘", "👩‍🔬", "\r\n", "\r", "\n", "\0", "\ufeff", "한국어 "]
RUNS = st.lists(st.tuples(st.sampled_from(UNITS), st.integers(0, 9_000)), max_size=6)
WORDS = ["residual", "learning", "Résidual", "network,", "深度", "x", "\n\n", "学习"]
#: Words that stand far and near, over several pieces, with what is found among them.
PIECES = st.lists(
    st.tuples(st.sampled_from(["residual learning", *WORDS]), st.sampled_from([1, 2, 900, 4_000])),
    min_size=1,
    max_size=8,
)


def ever() -> Deadline:
    """A deadline that has passed already: whatever must be done is done nevertheless."""
    return Deadline.after(0)


def places(matches: list[TextMatch]) -> list[tuple[int, int]]:
    return [(match.match_start, match.match_end) for match in matches]


def walk(file: TextFile, query: str, *, limit: int, hurry: bool = False) -> list[tuple[int, int]]:
    """All matches, by going on from `searched_to` until the end."""
    found: list[tuple[int, int]] = []
    offset = 0
    while offset < file.total:
        matches, reached = find(file, query, offset, ever() if hurry else soon(), limit=limit)
        assert len(matches) <= limit and offset < reached <= file.total
        found += places(matches)
        offset = reached
    return found


@settings(max_examples=25)
@given(RUNS, st.lists(st.integers(1, 3 * STEP_CHARS), min_size=1, max_size=8))
def test_windows_rebuild_the_text(runs: list[tuple[str, int]], sizes: list[int]) -> None:
    text = "".join(unit * count for unit, count in runs)
    with tempfile.TemporaryDirectory() as folder, text_file(Path(folder), text) as file:
        assert file.total == len(text)
        rebuilt, turn = "", 0
        while len(rebuilt) < len(text):
            size = sizes[turn % len(sizes)]
            piece = file.window(len(rebuilt), size)
            assert len(piece) == min(size, len(text) - len(rebuilt))
            rebuilt, turn = rebuilt + piece, turn + 1
        assert rebuilt == text


@pytest.mark.parametrize("unit", ["a", "é", "中", "👍", "\r\n"])
def test_windows_are_exact_around_the_places_of_the_index(tmp_path: Path, unit: str) -> None:
    text = unit * (3 * STEP_CHARS // len(unit)) + "end"
    edges = [edge + near for edge in range(0, len(text), STEP_CHARS) for near in (-2, -1, 0, 1, 2)]
    with text_file(tmp_path, text) as file:
        for start in edges:
            for end in edges:
                if 0 <= start <= end:
                    assert file.window(start, end - start) == text[start:end]


def test_characters_may_lie_across_the_blocks_they_are_read_in(tmp_path: Path) -> None:
    text = "a" * (BLOCK_BYTES - 1) + "中" + "b" * (BLOCK_BYTES - 3) + "👍 end"
    with text_file(tmp_path, text) as file:
        assert file.total == len(text)
        assert file.window(0, len(text)) == text


def test_an_offset_at_the_end_gives_nothing_and_one_behind_it_says_how_long_the_text_is(
    tmp_path: Path,
) -> None:
    with text_file(tmp_path, "中 text") as file:
        assert file.window(6, 10) == ""
        for read in (lambda: file.window(7, 10), lambda: find(file, "text", 7, soon())):
            with pytest.raises(InvalidRequest) as raised:
                read()
            assert raised.value.code == "invalid_window"
            assert "6 characters" in raised.value.message and raised.value.hint


def test_the_version_is_that_of_the_bytes(tmp_path: Path) -> None:
    with text_file(tmp_path, "中 text") as file:
        assert file.version == digest("中 text".encode())[:12]


def test_an_empty_text_can_be_read(tmp_path: Path) -> None:
    with text_file(tmp_path, "") as file:
        assert (file.total, file.window(0, 10)) == (0, "")
        assert find(file, "anything", 0, soon()) == ([], 0)


@pytest.mark.parametrize("after", ["", "é" * 10_000, "\udcff"])
def test_a_text_overwritten_while_it_is_read_is_not_given(tmp_path: Path, after: str) -> None:
    with text_file(tmp_path, "中" * 10_000) as file:
        (path,) = (tmp_path / "md").iterdir()
        path.write_bytes(after.encode("utf-8", "surrogateescape"))
        with pytest.raises(Unavailable) as raised:
            file.window(0, 10_000)
        assert raised.value.body()["paper_id"] == PAPER


def real_source() -> tuple[TextFile, str]:
    """The longest source of the real snapshot, open, and its text."""
    papers = json.loads((DATA / "expected.json").read_text())
    paper = max(papers, key=lambda each: each["source_chars"] or 0)
    asset = assets.source(paper["paper_id"], paper["source_hash"])
    path = DATA / "static" / "md" / f"{paper['source_hash']}.md"
    return LocalAssets(DATA / "static").open(asset, soon()), path.read_bytes().decode()


def test_the_longest_real_source_is_read_to_its_end() -> None:
    file, text = real_source()
    with file:
        assert file.total == len(text) == 340_736
        windows = [file.window(start, 12_000) for start in range(0, file.total, 12_000)]
        assert "".join(windows) == text


def test_every_find_in_the_longest_real_source_is_proven() -> None:
    file, text = real_source()
    with file:
        found = walk(file, "training budget", limit=10)
        assert [text[start:end].lower() for start, end in found] == ["training budget"] * len(found)
        assert len(found) == text.lower().count("training budget") > 10
        matches, _ = find(file, "training budget", 200_000, soon())
        for match in matches:
            assert 200_000 <= match.match_start
            assert match.end - match.start <= BUDGETS.excerpt_chars
            assert unmark(match.shown) == text[match.start : match.end]
            assert match.heading is not None and match.heading in text


def test_the_text_itself_is_found_before_its_words(tmp_path: Path) -> None:
    text = "learning is residual. Then RÉSIDUAL Learning, then a residual and learning."
    with text_file(tmp_path, text) as file:
        (match,), reached = find(file, "residual learning", 0, soon())
        assert text[match.match_start : match.match_end] == "RÉSIDUAL Learning"
        assert "<mark>RÉSIDUAL Learning</mark>" in match.shown
        assert reached == len(text)


def test_words_are_found_where_the_text_itself_is_not(tmp_path: Path) -> None:
    text = "learning is residual. Nothing here. A residual for learning."
    with text_file(tmp_path, text) as file:
        matches, reached = find(file, "residual learning", 0, soon())
        assert [text[start:end] for start, end in places(matches)] == [
            "learning is residual",
            "residual for learning",
        ]
        assert "<mark>learning</mark> is <mark>residual</mark>" in matches[0].shown
        assert reached == len(text)
        assert find(file, "residual unicorn", 0, soon()) == ([], len(text))


@pytest.mark.parametrize("query", ["", "   ", "\u0301", "...", '"'])
def test_queries_of_nothing_find_nothing(tmp_path: Path, query: str) -> None:
    with text_file(tmp_path, "words and words") as file:
        assert find(file, query.strip(), 0, soon()) == ([], file.total)


def test_a_full_page_ends_with_its_last_match_and_the_last_page_with_the_text(
    tmp_path: Path,
) -> None:
    text = "here and " * (BUDGETS.paper_matches * 2)
    with text_file(tmp_path, text) as file:
        first, reached = find(file, "here", 0, soon())
        assert len(first) == BUDGETS.paper_matches and reached == first[-1].match_end
        second, reached = find(file, "here", reached, soon())
        assert len(second) == BUDGETS.paper_matches and reached == file.total


@pytest.mark.parametrize("base", [CHUNK_CHARS, 2 * CHUNK_CHARS])
@pytest.mark.parametrize("query", ["needle of gold", "gold needle"])
def test_matches_across_the_edge_of_a_piece_are_found_once(
    tmp_path: Path, base: int, query: str
) -> None:
    for shift in range(16):
        start = base - shift
        text = "x " * (start // 2) + " " * (start % 2) + "needle of gold" + " y" * OVERLAP_CHARS
        with text_file(tmp_path, text) as file:
            assert walk(file, query, limit=10) == [(start, start + 14)]


@settings(max_examples=25)
@given(PIECES, st.sampled_from(["residual learning", "learning", "network residual", "深度学习"]))
def test_going_on_gives_every_match_once(runs: list[tuple[str, int]], query: str) -> None:
    text = "".join(f"{unit} " * count for unit, count in runs)
    with tempfile.TemporaryDirectory() as folder, text_file(Path(folder), text) as file:
        whole, reached = find(file, query, 0, soon(), limit=len(text))
        assert reached == file.total
        assert walk(file, query, limit=max(1, len(whole) // 7)) == places(whole)


@settings(max_examples=25)
@given(PIECES, st.sampled_from(["residual learning", "learning", "network residual"]))
def test_the_deadline_ends_a_search_but_every_search_comes_further(
    runs: list[tuple[str, int]], query: str
) -> None:
    text = "".join(f"{unit} " * count for unit, count in runs)
    with tempfile.TemporaryDirectory() as folder, text_file(Path(folder), text) as file:
        found = walk(file, query, limit=2_000, hurry=True)
        for (_, end), (start, _) in zip(found, found[1:]):
            assert end <= start


def test_a_search_in_a_hurry_looks_at_one_piece(tmp_path: Path) -> None:
    with text_file(tmp_path, "x " * CHUNK_CHARS + "needle") as file:
        assert find(file, "needle", 5, ever()) == ([], CHUNK_CHARS)


def test_one_text_may_be_read_by_many_at_once(tmp_path: Path) -> None:
    text = "".join(f"{number:07}中" for number in range(20_000))
    with text_file(tmp_path, text) as file, ThreadPoolExecutor(8) as pool:
        starts = range(0, len(text), 997)
        windows = pool.map(lambda start: file.window(start, 5_000), starts)
        assert list(windows) == [text[start : start + 5_000] for start in starts]


def test_a_text_may_lose_its_name_while_it_is_read(tmp_path: Path) -> None:
    with text_file(tmp_path, "still here") as file:
        (path,) = (tmp_path / "md").iterdir()
        os.unlink(path)
        assert file.window(0, 100) == "still here"
