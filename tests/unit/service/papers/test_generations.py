"""A snapshot is replaced under a running server, and nobody who asks notices more than new rows."""

import gc
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from evidence.errors import EvidenceError, Unavailable
from evidence.work import Deadline
from service.papers.snapshot import Snapshot, Snapshots, open_snapshot
from service.papers.swap import swap
from tests.helpers.snapshots import place, retitled, tree
from tests.helpers.waiting import WAIT_SECONDS

TITLES = "SELECT DISTINCT title FROM paper ORDER BY title"
BROKEN = {
    "cut": lambda path: os.truncate(path, 8192),
    "text": lambda path: path.write_text("Not a database. " * 500),
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_bytes(foreign()),
}


def titles(snapshot: Snapshot) -> list[str]:
    with snapshot.connection() as db:
        return [title for (title,) in db.execute(TITLES)]


def until(holds: Callable[[], bool]) -> None:
    """Asks again until it holds; fails after `WAIT_SECONDS`."""
    deadline, pause = Deadline.after(WAIT_SECONDS), threading.Event()
    while not holds():
        assert not deadline.expired(), "it never came true"
        pause.wait(0.005)


def foreign() -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE paper (paper_id)")
        return db.serialize()


def open_files() -> int:
    gc.collect()  # what earlier tests left
    return len(os.listdir("/proc/self/fd"))


def test_nothing_is_opened_before_somebody_asks(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    snapshots = Snapshots(path)
    assert titles(open_snapshot(place(path))) == titles(snapshots.current())


def test_where_nothing_lies_the_error_says_so_without_a_path(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "snapshot.db")
    with pytest.raises(Unavailable, match="no such file") as caught:
        snapshots.current()
    assert caught.value.code == "snapshot_unavailable"
    assert str(tmp_path) not in str(caught.value.body())
    assert snapshots.status() == {
        "status": "unavailable",
        "refused": "it cannot be read: no such file or directory",
    }
    place(tmp_path / "snapshot.db")
    assert snapshots.status()["status"] == "ready"


def test_the_status_names_the_build_and_counts_papers(snapshots: Path) -> None:
    opened = open_snapshot(snapshots)
    assert Snapshots(snapshots).status() == {
        "status": "ready",
        "snapshot": opened.build_id,
        "papers": opened.papers,
    }


def test_an_unchanged_file_is_opened_once(snapshot_file: Path) -> None:
    snapshots = Snapshots(snapshot_file)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: id(snapshots.current()), range(64)))
    assert len(found) == 1


def test_a_renamed_file_is_picked_up_and_old_requests_keep_theirs(
    snapshot_file: Path, other_file: Path
) -> None:
    snapshots = Snapshots(snapshot_file)
    old = snapshots.current()
    before = titles(old)
    with old.connection() as db:
        rows = db.execute("SELECT title FROM paper ORDER BY title")
        first = rows.fetchone()
        os.replace(other_file, snapshot_file)
        until(lambda: snapshots.current() is not old)
        assert {title for (title,) in [first, *rows]} == set(before)
    assert titles(old) == before
    assert titles(snapshots.current()) == ["Another title"]
    assert snapshots.current().tag != old.tag


def test_a_link_that_leads_elsewhere_is_followed(
    snapshot_file: Path, other_file: Path, tmp_path: Path
) -> None:
    link = tmp_path / "current.db"
    link.symlink_to(snapshot_file)
    snapshots = Snapshots(link)
    assert snapshots.current().folder == snapshot_file.parent
    (tmp_path / "next").symlink_to(other_file)
    os.replace(tmp_path / "next", link)
    until(lambda: snapshots.current().folder == other_file.parent)


def test_what_is_written_to_the_log_is_picked_up(snapshot_file: Path) -> None:
    snapshots = Snapshots(snapshot_file)
    old = snapshots.current()
    with closing(sqlite3.connect(snapshot_file, isolation_level=None)) as db:
        db.execute("UPDATE paper SET title = 'From the log'")
        until(lambda: titles(snapshots.current()) == ["From the log"])
        assert len(titles(old)) > 1


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_never_replaces_a_good_one(
    snapshot_file: Path, other_file: Path, kind: str
) -> None:
    snapshots = Snapshots(snapshot_file)
    good = snapshots.current()
    BROKEN[kind](other_file)
    os.replace(other_file, snapshot_file)
    until(lambda: "refused" in snapshots.status())
    status = snapshots.status()
    assert status["status"] == "ready"
    assert status["snapshot"] == good.build_id
    assert "/" not in status["refused"]
    assert snapshots.current() is good
    assert len(titles(good)) > 1
    place(other_file)
    os.replace(retitled(other_file, "Good again"), snapshot_file)
    until(lambda: titles(snapshots.current()) == ["Good again"])
    assert "refused" not in snapshots.status()


def test_a_file_that_goes_and_comes_back_is_good_again(snapshot_file: Path) -> None:
    snapshots = Snapshots(snapshot_file)
    good = snapshots.current()
    away = snapshot_file.rename(snapshot_file.with_name("away"))
    assert "no such file" in snapshots.status()["refused"]
    assert snapshots.current() is good
    away.rename(snapshot_file)
    assert "refused" not in snapshots.status()
    assert snapshots.current() is good


def test_a_refused_file_is_not_read_again_and_again(
    snapshot_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.truncate(snapshot_file, 8192)
    snapshots = Snapshots(snapshot_file)
    for _ in range(20):
        with pytest.raises(Unavailable, match="it is truncated"):
            snapshots.current()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_overwritten_in_place_gives_typed_errors_only(
    snapshot_file: Path, kind: str
) -> None:
    snapshots = Snapshots(snapshot_file)
    old = snapshots.current()
    BROKEN[kind](snapshot_file)
    with pytest.raises(Unavailable):
        titles(old)
    with pytest.raises(Unavailable) as caught:
        snapshots.current()
    assert caught.value.details["reason"]
    assert snapshots.status()["status"] == "unavailable"


def test_a_good_file_copied_over_the_old_one_is_waited_for(
    snapshot_file: Path, other_file: Path
) -> None:
    snapshots = Snapshots(snapshot_file)
    snapshots.current()
    snapshot_file.write_bytes(other_file.read_bytes())
    assert titles(snapshots.current()) == ["Another title"]


def test_a_cursor_of_the_next_generation_waits_for_it(
    snapshot_file: Path, other_file: Path
) -> None:
    here, there = Snapshots(snapshot_file), Snapshots(snapshot_file)
    here.current()
    os.replace(other_file, snapshot_file)
    assert there.current().tag == here.current(tag=there.current().tag).tag


def test_a_cursor_of_a_lost_generation_does_not_wait(snapshot_file: Path) -> None:
    snapshots = Snapshots(snapshot_file)
    assert snapshots.current(tag="0123456789") is snapshots.current()


def test_a_retired_generation_closes_when_its_last_request_ends(snapshot_file: Path) -> None:
    snapshots = Snapshots(snapshot_file)
    snapshots.current()
    before = open_files()
    for number in range(3):
        held = [snapshots.current()]
        new = retitled(place(snapshot_file.with_name("new")), str(number))
        os.replace(new, snapshot_file)
        until(lambda: snapshots.current() not in held)
        assert open_files() > before
        held.clear()
        assert open_files() == before


@pytest.mark.slow
def test_fifty_swaps_while_four_threads_ask_give_no_error(snapshot_file: Path) -> None:
    snapshots = Snapshots(retitled(snapshot_file, "0"))
    files = [snapshot_file.with_name(f"{number % 2}.new") for number in range(2)]
    for number, file in enumerate(files):
        retitled(place(file), str(number))
    done = threading.Event()

    def ask() -> tuple[int, set[str]]:
        asked, seen = 0, set()
        while not done.is_set():
            snapshot = snapshots.current()
            with snapshot.connection() as db:
                found = {title for (title,) in db.execute("SELECT title FROM paper")}
                hits = db.execute("SELECT count(*) FROM paper_fts('learning')").fetchone()
            assert len(found) == 1 and hits[0] > 0
            asked, seen = asked + 1, seen | found
        return asked, seen

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask) for _ in range(4)]
        for number in range(50):
            tag = swap(files[number % 2], snapshot_file).tag
            if number % 5 == 0:
                until(lambda: snapshots.current().tag == tag)
        done.set()
        found = [answer.result() for answer in answers]
    assert all(asked > 0 for asked, _ in found)
    assert set().union(*(seen for _, seen in found)) == {"0", "1"}
    assert sorted(tree(snapshot_file.parent)) == ["0.new", "1.new", "snapshot.db"]


def test_a_forked_process_opens_its_own(snapshot_file: Path, other_file: Path) -> None:
    snapshots = Snapshots(snapshot_file)
    parent = snapshots.current()
    before = titles(parent)
    os.replace(other_file, snapshot_file)
    child = os.fork()
    if child == 0:
        try:
            mine = snapshots.current()
            os._exit(0 if mine is not parent and titles(mine) == ["Another title"] else 1)
        except EvidenceError:
            os._exit(2)
        finally:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    assert titles(parent) == before
