"""A database as the target of sources."""

from pathlib import Path

from tests.helpers.places import new_database
from tests.helpers.synced import Synced


def test_a_folder_is_followed_into_a_database(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    synced = Synced(tmp_path, new_database())
    path = tmp_path / "docs/rows.csv"
    path.parent.mkdir()
    path.write_text("id,title\n" + "".join(f"{n},Row {n}\n" for n in range(30)), encoding="utf-8")
    synced.ok("source", "add", "files", str(path.parent), "--kind", "folder")
    assert "files: 30 new." in synced.ok("sync").stderr
    path.write_text("id,title\n" + "".join(f"{n},Row {n}\n" for n in range(5, 31)))
    assert "files: 1 new, 5 deleted." in synced.ok("sync").stderr
    path.rename(path.with_name("table.csv"))
    synced.ok("sync", "files", "--accept-deletions")
    assert sorted(map(int, synced.records("files")["table"])) == list(range(5, 31))
    assert "files: nothing new." in synced.ok("sync").stderr
    shown = synced.ok("source", "remove", "files", "--with-records").stderr
    assert "26 records removed." in shown
    assert synced.records("files") == {}
