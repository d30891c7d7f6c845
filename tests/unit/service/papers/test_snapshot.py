"""A snapshot is read whole, by many at once, and nothing on disk ever shows it."""

import gc
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import pytest

from evidence.errors import TimedOut, Unavailable
from service.papers.snapshot_file import look, whole
from service.papers.snapshot import CONNECTIONS, Snapshot, SnapshotRefused, open_snapshot
from tests.helpers.snapshots import changed, place, retitled, tree

TITLES = "SELECT DISTINCT title FROM paper"
NOBODY = 65_534


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for temporary files that no other run shares."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def open_files() -> int:
    gc.collect()  # what earlier tests left
    return len(os.listdir("/proc/self/fd"))


def use(snapshot: Snapshot) -> int:
    """Asks for what needs every table, the full text and temporary space."""
    with snapshot.connection() as db:
        db.execute(
            "SELECT snippet(paper_fts, 2, '', '', '', 9) FROM paper_fts"
            " WHERE paper_fts MATCH 'learning' ORDER BY rank"
        ).fetchall()
        db.execute("SELECT DISTINCT lower(summary_preview) FROM paper ORDER BY 1 DESC").fetchall()
        return int(db.execute("SELECT count(*) FROM paper").fetchone()[0])


def used(path: Path) -> str:
    snapshot = open_snapshot(path)
    assert use(snapshot) == snapshot.papers
    return snapshot.tag


def titles(snapshot: Snapshot) -> list[str]:
    with snapshot.connection() as db:
        return [title for (title,) in db.execute(TITLES)]


@contextmanager
def waiting_log(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program has the file open and its changes still stand in the log beside it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE paper SET title = 'From the log'")
        assert path.with_name(f"{path.name}-wal").stat().st_size > 0
        yield db


def as_nobody(answer: Callable[[], str]) -> str:
    """What another user is told, or the error; in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, answer().encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        found = told.read()
    os.waitpid(child, 0)
    return found


def private_copies() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("rung-snapshot-*"))


def test_the_folder_is_the_same_to_the_byte_after_heavy_use(snapshots: Path) -> None:
    before = tree(snapshots.parent)
    snapshot = open_snapshot(snapshots)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: use(snapshot), range(16))) == {snapshot.papers}
    assert tree(snapshots.parent) == before
    snapshot.close()
    assert tree(snapshots.parent) == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_reads_it_from_a_folder_nobody_may_write(snapshots: Path) -> None:
    tag, before = open_snapshot(snapshots).tag, tree(snapshots.parent)
    with tempfile.TemporaryDirectory(
        dir="/tmp"
    ) as outer:  # pytest's own folders are closed to others
        served = snapshots.parent.rename(Path(outer) / "served")
        os.chmod(outer, 0o755)
        os.chmod(served, 0o555)
        os.chmod(served / snapshots.name, 0o444)
        assert as_nobody(lambda: used(served / snapshots.name)) == tag
        assert tree(served) == before


@pytest.mark.parametrize("table", ["snapshot_meta", "paper", "paper_fts_content"])
def test_what_is_known_of_a_file_is_what_stands_in_it(snapshots: Path, table: str) -> None:
    snapshot = open_snapshot(snapshots)
    with snapshot.connection() as db:
        columns = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}
        build = db.execute(
            "SELECT value FROM snapshot_meta WHERE key = 'snapshot_build_id'"
        ).fetchone()
        papers = db.execute("SELECT count(*) FROM paper").fetchone()
    assert snapshot.columns[table] == columns
    assert (snapshot.build_id,) == build
    assert (snapshot.papers,) == papers
    assert snapshot.folder == snapshots.parent


@pytest.mark.parametrize("name", ["a b", "100%", "what?.db", "a#b", "50%25", "ü&=;.db"])
def test_any_name_is_taken(tmp_path: Path, name: str) -> None:
    path = place(tmp_path / name / name)
    assert use(open_snapshot(path)) == 46
    assert [found.name for found in path.parent.iterdir()] == [name]


def test_a_link_leads_to_the_folder_of_the_real_file(snapshot_file: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(snapshot_file)
    assert open_snapshot(link).folder == snapshot_file.parent


def test_what_waits_in_the_log_is_seen_and_left_there(snapshot_file: Path) -> None:
    settled = open_snapshot(snapshot_file).tag
    with waiting_log(snapshot_file):
        before = tree(snapshot_file.parent)
        snapshot = open_snapshot(snapshot_file)
        assert titles(snapshot) == ["From the log"]
        assert snapshot.tag != settled
        assert snapshot.folder == snapshot_file.parent
        assert tree(snapshot_file.parent) == before
        assert private_copies() == []
    assert titles(snapshot) == ["From the log"]


@pytest.mark.parametrize("logged", [True, False])
def test_a_file_that_changes_while_it_is_read_is_refused(snapshot_file: Path, logged: bool) -> None:
    with waiting_log(snapshot_file) if logged else nullcontext():
        stamp = look(snapshot_file)
        retitled(snapshot_file, "Meanwhile")
        with pytest.raises(SnapshotRefused, match="it changed"), whole(stamp):
            pass
    assert private_copies() == []


def test_a_write_that_was_cut_off_is_undone_in_the_copy(snapshot_file: Path) -> None:
    changed(snapshot_file, lambda db: db.execute("PRAGMA journal_mode = DELETE"))
    cut = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]);"
        "db.execute('PRAGMA cache_size = 1'); db.execute('UPDATE paper_fts SET title = 1');"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", cut, str(snapshot_file)], check=True)
    before = tree(snapshot_file.parent)
    assert len(before) == 2
    with open_snapshot(snapshot_file).connection() as db:
        assert db.execute("SELECT count(*) FROM paper_fts WHERE title = 1").fetchone() == (0,)
    assert tree(snapshot_file.parent) == before


def test_copies_of_dead_processes_are_swept(snapshot_file: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = Path(tempfile.mkdtemp(prefix=f"rung-snapshot-{ended.pid}-"))
    (left / "snapshot.db").touch()
    ours = Path(tempfile.mkdtemp(prefix=f"rung-snapshot-{os.getpid()}-"))
    with waiting_log(snapshot_file):
        open_snapshot(snapshot_file)
    assert private_copies() == [ours]
    assert stat.S_IMODE(ours.stat().st_mode) == 0o700
    ours.rmdir()


def test_equal_files_have_one_tag_and_any_change_another(snapshots: Path, tmp_path: Path) -> None:
    def opened(path: Path) -> tuple[str, bytes, str]:
        snapshot = open_snapshot(path)
        return snapshot.tag, snapshot.fence_key, snapshot.build_id

    copy = place(tmp_path / "elsewhere" / "x.db", snapshots.parent.name)
    tag, fence, build = opened(snapshots)
    assert opened(copy) == (tag, fence, build)
    assert len(tag) == 10 and int(tag, 16) >= 0
    updated = opened(retitled(copy, "T"))
    added = opened(
        changed(copy, lambda db: db.execute("INSERT INTO tag (value) VALUES ('brand new')"))
    )
    assert len({tag, updated[0], added[0]}) == 3
    assert len({fence, updated[1], added[1]}) == 3
    assert {build} == {updated[2], added[2]}


def test_nothing_can_be_written(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    with pytest.raises(Unavailable), snapshot.connection() as db:
        db.execute("DELETE FROM paper")


def test_temporary_tables_may_be_made(snapshot_file: Path) -> None:
    with open_snapshot(snapshot_file).connection() as db:
        db.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, paper_fts, row)")
        assert db.execute("SELECT count(*) FROM temp.words").fetchone()[0] > 1000


def test_a_statement_without_end_times_out(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    with pytest.raises(TimedOut), snapshot.connection(seconds=0.05) as db:
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT max(i) FROM n"
        )
    assert use(snapshot) == snapshot.papers


def test_one_thread_has_one_connection_however_deep_it_asks(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    with snapshot.connection() as outer, snapshot.connection() as inner:
        assert inner is outer
    with snapshot.connection() as mine, ThreadPoolExecutor(1) as pool:
        assert pool.submit(titles, snapshot).result()
        assert mine.execute(TITLES).fetchone()


def test_a_value_is_computed_once_by_many(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    built: list[int] = []
    start = threading.Barrier(12)

    def ask(number: int) -> int:
        def build() -> int:
            built.append(number)
            return use(snapshot) + snapshot.once("inner", lambda: 1)

        start.wait()
        return snapshot.once("outer", build)

    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(ask, range(12))) == {snapshot.papers + 1}
    assert len(built) == 1


def test_nobody_computes_while_those_who_wait_have_all_connections(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    all_taken, late = threading.Barrier(CONNECTIONS + 1), threading.Event()

    def ask_inside() -> int:
        with snapshot.connection():
            all_taken.wait()
            late.wait(0.1)
            return snapshot.once("value", lambda: 1)

    def build_late() -> int:
        late.set()
        return use(snapshot)

    with ThreadPoolExecutor(CONNECTIONS + 1) as pool:
        inside = [pool.submit(ask_inside) for _ in range(CONNECTIONS)]
        all_taken.wait()
        outside = pool.submit(snapshot.once, "value", build_late)
        assert {task.result() for task in [*inside, outside]} == {1}


def test_a_value_that_failed_is_tried_again(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    with pytest.raises(ZeroDivisionError):
        snapshot.once("value", lambda: 1 // 0)
    assert snapshot.once("value", lambda: 1) == 1


def test_what_was_overwritten_while_it_was_read_is_not_answered(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    with pytest.raises(Unavailable) as caught, snapshot.connection() as db:
        db.execute(TITLES).fetchall()
        snapshot_file.write_bytes(os.urandom(1 << 20))
    assert caught.value.code == "snapshot_unavailable"
    with pytest.raises(Unavailable):
        use(snapshot)


def test_a_removed_file_is_read_on(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    snapshot_file.unlink()
    assert use(snapshot) == snapshot.papers


def test_a_closed_snapshot_says_so_and_keeps_no_file_open(snapshot_file: Path) -> None:
    before = open_files()
    snapshot = open_snapshot(snapshot_file)
    with snapshot.connection() as db:
        snapshot.close()
        assert db.execute(TITLES).fetchone()
    with pytest.raises(Unavailable):
        use(snapshot)
    del snapshot, db
    assert open_files() == before


def test_a_forked_process_is_told_to_open_its_own(snapshot_file: Path) -> None:
    snapshot = open_snapshot(snapshot_file)
    child = os.fork()
    if child == 0:
        try:
            use(snapshot)
        except Unavailable:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert use(snapshot) == snapshot.papers
