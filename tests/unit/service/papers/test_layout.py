"""Snapshots of every release are taken; what is broken or foreign is refused, with the reason."""

import gc
import os
from pathlib import Path

import pytest

from service.papers.snapshot import SnapshotRefused, open_snapshot
from tests.helpers.snapshots import changed, place


def open_files() -> int:
    gc.collect()  # what earlier tests left
    return len(os.listdir("/proc/self/fd"))


def test_older_and_newer_releases_are_taken(tmp_path: Path) -> None:
    assert "paper_bibtex" not in open_snapshot(place(tmp_path / "a.db", "papers-legacy")).columns
    bare = changed(place(tmp_path / "c.db"), lambda db: db.execute("DROP TABLE paper_fts_trigram"))
    assert open_snapshot(bare).papers == 46
    newer = changed(
        place(tmp_path / "b.db"),
        lambda db: db.executescript(
            "ALTER TABLE paper_summary ADD COLUMN resource_path TEXT;"
            "ALTER TABLE paper_summary ADD COLUMN content_hash TEXT;"
            "CREATE TABLE semantic_staging (id INTEGER PRIMARY KEY AUTOINCREMENT);"
        ),
    )
    assert "resource_path" in open_snapshot(newer).columns["paper_summary"]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def garble(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(300 * 4096)
        file.write(os.urandom(4096))


def garble_words(path: Path) -> None:
    """Damages the full-text index where the tables that hold it stay well formed."""
    changed(
        path,
        lambda db: db.execute(
            "UPDATE paper_fts_data SET block = zeroblob(length(block)) WHERE id > 10"
        ),
    )


BROKEN = {
    "cut": (cut, "it is truncated"),
    "garbage": (garble, "it is damaged"),
    "words": (garble_words, "it is damaged"),
    "text": (lambda path: path.write_text("Not a database. " * 500), "not an SQLite file"),
    "short": (lambda path: path.write_bytes(b"SQLite format 3\0"), "not an SQLite file"),
    "empty": (lambda path: path.write_bytes(b""), "it is empty"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
    "pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "not a regular file"),
    "missing": (lambda path: path.unlink(), "no such file"),
}
FOREIGN = {
    "DROP TABLE paper_translation": "no table paper_translation",
    "DROP TABLE paper_fts": "no table paper_fts",
    "ALTER TABLE paper DROP COLUMN summary_preview": "no column summary_preview",
    "DROP TABLE paper_fts_trigram; CREATE TABLE paper_fts_trigram (paper_id, title, venue)": (
        "not the full-text index"
    ),
    "DROP TABLE paper; CREATE VIEW paper AS SELECT 1 AS paper_id": "no table paper",
    "DROP TABLE paper_fts; CREATE TABLE paper_fts (paper_id, title, summary, source, translated,"
    " metadata); CREATE TABLE paper_fts_content (id, c0, c1, c2, c3, c4, c5)": (
        "not the full-text index"
    ),
    "DROP TABLE paper_fts; CREATE VIRTUAL TABLE paper_fts USING fts5(title, paper_id, summary,"
    " source, translated, metadata)": "not the full-text index",
    "DELETE FROM snapshot_meta": "no snapshot_build_id",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_with_its_reason(snapshot_file: Path, kind: str) -> None:
    breaking, reason = BROKEN[kind]
    breaking(snapshot_file)
    with pytest.raises(SnapshotRefused, match=reason) as refused:
        open_snapshot(snapshot_file)
    assert "/" not in str(refused.value)


@pytest.mark.parametrize("script", FOREIGN)
def test_a_foreign_database_is_refused_with_its_reason(snapshot_file: Path, script: str) -> None:
    changed(snapshot_file, lambda db: db.executescript(script))
    with pytest.raises(SnapshotRefused, match=FOREIGN[script]):
        open_snapshot(snapshot_file)


def test_a_refused_file_leaves_nothing_open(snapshot_file: Path) -> None:
    garble_words(snapshot_file)
    before = open_files()
    for _ in range(3):
        with pytest.raises(SnapshotRefused):
            open_snapshot(snapshot_file)
    assert open_files() == before


BAD_VALUES = {
    "UPDATE paper SET title = x'ff'": "column title",
    "UPDATE paper SET year = '20' || char(0)": "column year",
    "UPDATE paper SET venue = hex(zeroblob(10000))": "column venue",
    "UPDATE paper SET output_language = x'ff'": "column output_language",
    "UPDATE paper SET title = CAST(x'41ff' AS TEXT)": "damaged",
    "UPDATE author SET paper_count = 'many'": "column paper_count",
    "UPDATE tag SET value = CAST(tag_id AS BLOB)": "column value",
    "UPDATE paper_summary SET template_tag = template_tag || char(0) || 'x'": "template_tag",
    "UPDATE paper_bibtex SET bibtex_raw = char(0)": "column bibtex_raw",
    "UPDATE paper_fts_trigram_content SET c1 = 5": "table paper_fts_trigram",
}


@pytest.mark.parametrize("script", BAD_VALUES)
def test_values_that_no_snapshot_holds_are_refused(snapshot_file: Path, script: str) -> None:
    changed(snapshot_file, lambda db: db.executescript(script))
    with pytest.raises(SnapshotRefused, match=BAD_VALUES[script]):
        open_snapshot(snapshot_file)


def test_what_may_be_absent_or_long_is_taken(snapshot_file: Path) -> None:
    script = (
        "UPDATE paper SET output_language = NULL, doi = NULL;"
        "UPDATE paper_bibtex SET bibtex_raw = hex(zeroblob(100000)), bibtex_key = NULL;"
        "UPDATE paper SET venue = hex(zeroblob(8000));"
    )
    assert open_snapshot(changed(snapshot_file, lambda db: db.executescript(script))).papers == 46
