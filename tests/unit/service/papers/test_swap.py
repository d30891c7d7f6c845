"""A new snapshot is checked first and then stands in the place of the old one, in one step."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from evidence.errors import InvalidRequest, Unavailable
from service.papers.snapshot import open_snapshot
from service.papers.swap import swap
from tests.helpers.snapshots import place, tree


def titles(path: Path) -> list[str]:
    with open_snapshot(path).connection() as db:
        return [title for (title,) in db.execute("SELECT DISTINCT title FROM paper")]


def test_the_new_file_stands_there_byte_for_byte(snapshot_file: Path, other_file: Path) -> None:
    before = tree(other_file.parent)
    opened = open_snapshot(other_file)
    installed = swap(other_file, snapshot_file)
    assert snapshot_file.read_bytes() == other_file.read_bytes()
    assert (installed.build_id, installed.tag) == (opened.build_id, opened.tag)
    assert installed.papers == opened.papers
    assert sorted(tree(snapshot_file.parent)) == ["snapshot.db"]
    assert tree(other_file.parent) == before


def test_the_first_snapshot_is_installed_the_same_way(other_file: Path, tmp_path: Path) -> None:
    other_file.chmod(0o640)
    swap(other_file, tmp_path / "first.db")
    assert titles(tmp_path / "first.db") == ["Another title"]
    assert stat.S_IMODE((tmp_path / "first.db").stat().st_mode) == 0o640


def test_whoever_could_read_the_old_file_can_read_the_new(
    snapshot_file: Path, other_file: Path
) -> None:
    snapshot_file.chmod(0o604)
    other_file.chmod(0o600)
    swap(other_file, snapshot_file)
    assert stat.S_IMODE(snapshot_file.stat().st_mode) == 0o604


def test_what_waits_in_the_log_of_the_new_file_comes_along(
    snapshot_file: Path, other_file: Path
) -> None:
    with closing(sqlite3.connect(other_file, isolation_level=None)) as db:
        db.execute("UPDATE paper SET title = 'From the log'")
        before = tree(other_file.parent)
        assert len(before) == 3
        swap(other_file, snapshot_file)
        assert tree(other_file.parent) == before
    assert titles(snapshot_file) == ["From the log"]
    assert sorted(tree(snapshot_file.parent)) == ["snapshot.db"]


def test_a_log_left_of_the_old_file_is_not_read_into_the_new(
    snapshot_file: Path, other_file: Path
) -> None:
    with closing(sqlite3.connect(snapshot_file, isolation_level=None)) as db:
        db.execute("UPDATE paper SET title = 'Stale'")
        assert len(tree(snapshot_file.parent)) == 3
        swap(other_file, snapshot_file)
        assert sorted(tree(snapshot_file.parent)) == ["snapshot.db"]
        assert titles(snapshot_file) == ["Another title"]


def test_a_link_stays_and_what_it_leads_to_is_replaced(
    snapshot_file: Path, other_file: Path, tmp_path: Path
) -> None:
    link = tmp_path / "current.db"
    link.symlink_to(snapshot_file)
    swap(other_file, link)
    assert link.is_symlink()
    assert titles(snapshot_file) == ["Another title"]


def spoil(path: Path) -> Path:
    os.truncate(path, path.stat().st_size // 2)
    return path


@pytest.mark.parametrize("kind", ["cut", "missing", "folder", "text"])
def test_what_is_no_good_snapshot_is_refused_and_the_old_one_stays(
    snapshot_file: Path, tmp_path: Path, kind: str
) -> None:
    before = tree(snapshot_file.parent)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("Not a database. " * 500)
    spoil(place(tmp_path / "cut"))
    with pytest.raises(InvalidRequest) as caught:
        swap(tmp_path / kind, snapshot_file)
    assert caught.value.code == "snapshot_refused"
    assert caught.value.hint
    assert tree(snapshot_file.parent) == before


def test_the_served_file_is_not_taken_for_the_new_one(snapshot_file: Path, tmp_path: Path) -> None:
    before = snapshot_file.stat()
    link = tmp_path / "same.db"
    link.symlink_to(snapshot_file)
    for same in (snapshot_file, link):
        with pytest.raises(InvalidRequest, match="path of the new file"):
            swap(same, snapshot_file)
    assert snapshot_file.stat() == before


def test_a_folder_that_cannot_be_written_is_named_as_the_cause(
    other_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable, match="directory of the served snapshot") as caught:
        swap(other_file, tmp_path / "nowhere" / "snapshot.db")
    assert caught.value.hint is not None and "writable" in caught.value.hint
