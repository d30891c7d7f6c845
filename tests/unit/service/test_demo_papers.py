"""The demo's papers: a snapshot like any other, the same every time, with the promised breadth."""

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.demo.papers import write
from tests.demo_papers import static
from tests.demo_papers.markdown import plain, preview, spaced
from tests.demo_papers.shelf import DemoPaper, papers
from tests.demo_papers.snapshot import build

REAL = Path("tests/data/papers/snapshot.db")
LICENCE = "CC0 1.0"
LAST_ENTRY = "The brass key hangs on the third nail, left of the glass. The cat comes with me."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    assert write(folder) == folder / "snapshot.db"
    return folder


@pytest.fixture
def db(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "snapshot.db")) as db:
        yield db


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def column(db: sqlite3.Connection, query: str, *args: Any) -> list[Any]:
    return [row[0] for row in db.execute(query, args)]


def columns_of(db: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """(name, type, not null, default, place in the key) of each column of each table."""
    names = column(db, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return {name: [row[1:] for row in db.execute(f"PRAGMA table_info('{name}')")] for name in names}


def test_its_tables_and_indexes_are_those_of_a_real_snapshot(db: sqlite3.Connection) -> None:
    indexes = "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name"
    with closing(sqlite3.connect(f"{REAL.absolute().as_uri()}?immutable=1", uri=True)) as real:
        assert columns_of(db) == columns_of(real)
        assert column(db, indexes) == column(real, indexes)


def test_it_is_one_whole_file_that_needs_no_other(folder: Path, db: sqlite3.Connection) -> None:
    assert column(db, "PRAGMA journal_mode") == ["delete"]
    assert column(db, "PRAGMA integrity_check") == ["ok"]
    assert column(db, "PRAGMA foreign_key_check") == []
    assert sorted(path.name for path in folder.iterdir()) == ["snapshot.db", "static"]


def test_it_is_what_its_texts_give(folder: Path, db: sqlite3.Connection, tmp_path: Path) -> None:
    build(tmp_path)
    assert tree(tmp_path / "static") == tree(folder / "static")
    with closing(sqlite3.connect(tmp_path / "snapshot.db")) as built:
        for name in columns_of(built):
            if not name.endswith(("_data", "_idx", "_docsize", "_config")):  # those of an index
                rows = f"SELECT * FROM {name} ORDER BY rowid"
                assert db.execute(rows).fetchall() == built.execute(rows).fetchall(), name


@pytest.mark.parametrize("damage", ["no database", "not SQLite", "another build", "lost file"])
def test_anything_else_is_written_anew(folder: Path, tmp_path: Path, damage: str) -> None:
    path = write(tmp_path)
    if damage == "no database":
        path.unlink()
    elif damage == "not SQLite":
        path.write_bytes(b"not a database" * 100)
    elif damage == "another build":
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE snapshot_meta SET value = 'older'")
    else:
        next(tmp_path.glob("static/md/*.md")).unlink()
    write(tmp_path)
    assert tree(tmp_path) == tree(folder)


def test_files_of_the_tree_are_those_the_database_names(
    folder: Path, db: sqlite3.Connection
) -> None:
    sources = "SELECT source_md_content_hash FROM paper WHERE source_md_content_hash IS NOT NULL"
    named = {f"md/{found}.md" for found in column(db, sources)}
    for lang, found in db.execute("SELECT lang, md_content_hash FROM paper_translation"):
        named.add(f"md_translate/{lang}/{found}.md")
    for paper_id, template in db.execute("SELECT paper_id, template_tag FROM paper_summary"):
        named |= {f"summary/{paper_id}.json", f"summary/{paper_id}/{template}.json"}
    found_files = tree(folder / "static")
    assert set(found_files) == named
    for name, content in found_files.items():
        if name.endswith(".md"):
            assert Path(name).stem == hashlib.sha256(content).hexdigest()


def test_summaries_are_complete_json(folder: Path, db: sqlite3.Connection) -> None:
    for paper_id, title, preferred in db.execute(
        "SELECT paper_id, title, preferred_summary_template FROM paper"
    ):
        default = orjson.loads((folder / f"static/summary/{paper_id}.json").read_bytes())
        known = column(
            db,
            "SELECT template_tag FROM paper_summary WHERE paper_id = ? ORDER BY template_tag",
            paper_id,
        )
        assert default.pop("available_templates") == known
        for template in known:
            file = folder / f"static/summary/{paper_id}/{template}.json"
            summary = orjson.loads(file.read_bytes())
            assert (summary["paper_title"], summary["template_tag"]) == (title, template)
            assert (summary == default) is (template == preferred)


def test_facets_are_counted_by_the_papers_that_have_them(db: sqlite3.Connection) -> None:
    for name in ("author", "keyword", "institution", "tag", "venue"):
        wrong = (
            f"SELECT value FROM {name} WHERE paper_count !="
            f" (SELECT count(*) FROM paper_{name} WHERE paper_{name}.{name}_id = {name}.{name}_id)"
        )
        assert column(db, wrong) == []
        common = "SELECT value FROM facet_node WHERE facet_type = ?"
        assert set(column(db, f"SELECT value FROM {name}")) == set(column(db, common, name))
    pairs = (
        "SELECT a.node_id, b.node_id, count(*) FROM paper_facet a JOIN paper_facet b"
        " ON a.paper_id = b.paper_id AND a.node_id < b.node_id GROUP BY 1, 2"
    )
    assert sorted(db.execute(pairs)) == sorted(db.execute("SELECT * FROM facet_edge"))
    assert column(db, "SELECT paper_count FROM tag WHERE value = 'must-read'") == [3]
    assert sum(column(db, "SELECT paper_count FROM year_count")) == len(list(papers()))


def test_a_paper_is_found_by_words_of_all_its_parts(db: sqlite3.Connection) -> None:
    def found(match: str) -> list[str]:
        named = "SELECT title FROM paper_fts WHERE paper_fts MATCH ? ORDER BY title"
        return [title.split()[0] for title in column(db, named, match)]

    assert found('"高 潮"') == ["What"]
    assert found("Bleistifts") == ["A"]
    assert found("Ερατοσθένης") == ["Πώς"]
    assert found("погода") == ["Before"]
    assert found('"third nail"') == ["The"]
    assert found('"10.5555/rung.bloom"') == ["Bloom"]
    assert found("hashlib") == [], "words of code blocks are left out"
    trigrams = "SELECT count(*) FROM paper_fts_trigram WHERE paper_fts_trigram MATCH 'waggl'"
    assert column(db, trigrams) == [1]


def test_the_papers_have_the_breadth_they_promise() -> None:
    shelf = list(papers())
    assert 10 <= len(shelf) <= 14
    assert {lang for paper in shelf for lang in paper.translations} == {"de", "zh"}
    assert any(set(paper.summaries) >= {"simple", "deep_read", "three_pass"} for paper in shelf)
    assert [paper.source for paper in shelf].count(None) == 1
    assert {"el", "en"} == {paper.output_language for paper in shelf}
    assert all(paper.doi is None or paper.doi.startswith("10.5555/") for paper in shelf)
    sources = [paper.source for paper in shelf if paper.source]
    for mark in ("```", "$$", "|---", "## "):
        assert any(mark in source for source in sources), mark


def test_every_text_says_that_it_is_free() -> None:
    for paper in papers():
        texts = [paper.source or paper.summaries["simple"], *paper.translations.values()]
        assert all(LICENCE in text for text in texts), paper.title


@pytest.mark.parametrize("paper", [*papers()], ids=lambda paper: paper.bibtex_key)
def test_a_translation_has_the_shape_of_its_source(paper: DemoPaper) -> None:
    for text in paper.translations.values():
        for mark in (r"^#+ ", r"^\|", r"^\$\$$"):
            lines = [len(re.findall(mark, each, re.MULTILINE)) for each in (text, paper.source)]
            assert lines[0] == lines[1], mark


def test_the_long_paper_ends_with_the_keepers_last_entry() -> None:
    (long,) = (paper.source for paper in papers() if "long" in paper.tags)
    assert long and len(long) >= 300_000
    assert long.count(LAST_ENTRY) == 1
    assert long.index(LAST_ENTRY) > len(long) - 1_500
    headings = re.findall(r"^### (\d+) (.+)$", long, re.MULTILINE)
    assert [int(number) for number, _ in headings] == list(range(1, len(headings) + 1))
    assert len({heading for _, heading in headings}) == len(headings) == 10 + 48
    assert len(re.findall(r"^\*\*\w{3} \d+\.\*\* ", long, re.MULTILINE)) == 1_461


def test_markdown_becomes_words() -> None:
    markdown = (
        "# A *title*\n\n- one `code`\n\n| a | b |\n|---|---|\n\n```\nhidden\n```\n[x](http://y) $k$"
    )
    assert plain(markdown) == "A title one code x $k$"
    assert spaced("深度learning学习，好") == "深 度learning学 习，好"
    assert preview("short") == "short"
    assert preview("word " * 100).endswith("word…") and len(preview("word " * 100)) <= 320


def test_names_of_files_stay_inside_the_tree() -> None:
    for paper in papers():
        for name, content in static.files(paper):
            assert re.fullmatch(r"[a-z_]+(/[0-9a-z_]+)+\.(md|json)", name) and content
