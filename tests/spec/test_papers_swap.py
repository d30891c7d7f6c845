"""Snapshots are replaced under two live workers: no restart, no error, no mixture."""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from service.__main__ import rung
from tests.helpers.api import Answer as HttpAnswer
from tests.helpers.caller import Answer
from tests.helpers.papers import (
    ATTENTION,
    RELEASES,
    Library,
    Release,
    Trace,
    ids,
    serving_papers,
)
from tests.helpers.reading import printed_calls
from tests.helpers.snapshots import DATA, changed, place, retitled, tree

pytestmark = pytest.mark.slow

T = TypeVar("T")

AT_ONCE = 8  # requests at a time, so that both workers answer some
ROUNDS = 200
RENAMED = "A title of the newer snapshot"
SEARCH = {"query": "learning", "limit": 5}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Library]:
    """Two workers over a copy of a snapshot; the static files stay in place."""
    snapshot = place(tmp_path / "served" / "snapshot.db")
    static = str(DATA / RELEASES[0] / "static")
    with serving_papers(snapshot, workers=2, RUNG_PAPERS_ASSETS=static) as base_url:
        library = Library(base_url, Release(snapshot.parent))
        until_held(library, by=2)
        yield library


def until_held(library: Library, *, by: int) -> None:
    """Keeps the workers busy until enough of them have opened the snapshot.

    A worker opens the file before it checks it and reads it to its end, so an open file alone does
    not show that the worker serves it.
    """
    name = str(library.release.snapshot)
    for _ in range(ROUNDS):
        assert all(answer.status == 200 for answer in together(library.ready))
        if len(held(name, read=os.stat(name).st_size)) == by:
            return
    raise AssertionError(f"{held(name)} of {by} workers")


def held(name: str, *, read: int = 0) -> set[str]:
    """The processes that have a file with this name open and have read it up to an offset.

    The name of a replaced file ends with `(deleted)`.
    """
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) == name:
                place = (link.parents[1] / "fdinfo" / link.name).read_text().split()[1]
                if int(place) >= read:
                    found.add(link.parts[2])
    return found


def newer(library: Library) -> Path:
    """A snapshot next to the served one, with other titles."""
    return retitled(place(library.release.folder.parent / "newer" / "snapshot.db"), RENAMED)


def together(ask: Callable[[], T]) -> list[T]:
    """The answers to enough simultaneous requests to keep both workers busy."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(ask) for _ in range(AT_ONCE)]
    return [future.result() for future in futures]


def until_all(ask: Callable[[], T], wanted: Callable[[T], bool]) -> list[T]:
    """All answers until three rounds in a row are as wanted, from either worker."""
    found: list[T] = []
    in_a_row = 0
    for _ in range(ROUNDS):
        answers = together(ask)
        found += answers
        in_a_row = in_a_row + 1 if all(map(wanted, answers)) else 0
        if in_a_row == 3:
            return found
    raise AssertionError(f"still {found[-1]}")


def titles(answer: Answer) -> set[str]:
    return {hit["title"] for hit in answer.structured["data"]}


def is_new(answer: Answer) -> bool:
    return titles(answer) == {RENAMED}


def test_a_renamed_snapshot_is_served_by_all_workers_without_an_error_or_a_mixture(
    live: Library,
) -> None:
    before = Trace.of(live.release.folder)
    old = titles(live.ok("search_papers", **SEARCH))
    cursor = live.ok("search_papers", **SEARCH).structured["next_cursor"]
    assert Trace.of(live.release.folder) == before
    os.replace(newer(live), live.release.snapshot)
    for answer in until_all(lambda: live.ok("search_papers", **SEARCH), is_new):
        assert titles(answer) in (old, {RENAMED})
    for answer in together(lambda: live.call("search_papers", **SEARCH, cursor=cursor)):
        assert answer.error["code"] == "cursor_expired"
        (again,) = printed_calls(answer.text)
        assert is_new(live.ok(again.tool, **again.args))
    ready = live.ready()
    assert ready.status == 200 and "refused" not in ready.body["papers"]
    assert not held(f"{live.release.snapshot} (deleted)")


def test_swaps_under_load_cost_no_request(live: Library) -> None:
    """Readers of every kind go on while snapshots come and go."""
    first = place(live.release.folder.parent / "first.db")
    second = newer(live)
    asked: list[Callable[[], Any]] = [
        lambda: live.ok("search_papers", **SEARCH),
        lambda: live.ok("get_paper_metadata", paper_id=ATTENTION),
        lambda: live.ok("get_paper_source", paper_id=ATTENTION, query="attention"),
        lambda: live.ok("list_top_facets", category="tag"),
    ]

    def read(kind: int) -> int:
        answers = [asked[kind % len(asked)]() for _ in range(40)]
        if kind % len(asked) == 0:
            assert all(is_new(answer) or RENAMED not in titles(answer) for answer in answers)
        return len(answers)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        reading = [pool.submit(read, kind) for kind in range(AT_ONCE)]
        swaps = 0
        while not all(each.done() for each in reading):
            source = (second, first)[swaps % 2]
            os.replace(
                shutil.copyfile(source, live.release.folder / "next.db"), live.release.snapshot
            )
            swaps += 1
            live.ok("search_papers", **SEARCH)
        assert sum(each.result() for each in reading) == 40 * AT_ONCE
    assert swaps > 1


#: Files that may replace a snapshot by mistake.
GARBAGE: tuple[Callable[[Path], object], ...] = (
    lambda path: path.write_text("This is no snapshot.", encoding="utf-8"),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes((DATA / "papers" / "snapshot.db").read_bytes()[:99_999]),
    lambda path: changed(path, lambda db: db.execute("CREATE TABLE song (title TEXT)")),
)


def test_a_file_that_is_no_snapshot_replaces_nothing_and_readyz_says_why(live: Library) -> None:
    page = live.ok("search_papers", **SEARCH)
    cursor = page.structured["next_cursor"]
    said = set()
    for spoil in GARBAGE:
        bad = live.release.folder / "bad.db"
        spoil(bad)
        os.replace(bad, live.release.snapshot)
        answers = until_all(live.ready, lambda found: _refused(found) not in (None, *said))
        assert all((each.status, each.body["status"]) == (200, "ready") for each in answers)
        reason = _refused(answers[-1])
        assert reason and "/" not in reason and "snapshot.db" not in reason
        assert str(live.release.folder) not in str(answers[-1])
        said.add(reason)
        for answer in together(lambda: live.ok("search_papers", **SEARCH)):
            assert ids(answer) == ids(page)
        assert ids(live.ok("search_papers", **SEARCH, cursor=cursor))
    os.replace(newer(live), live.release.snapshot)
    until_all(lambda: live.ok("search_papers", **SEARCH), is_new)
    assert not any(map(_refused, together(live.ready)))


def _refused(ready: HttpAnswer) -> str | None:
    """Why the file at this path is not served."""
    found: str | None = ready.body["papers"].get("refused")
    return found


def test_a_server_waits_for_its_first_snapshot_and_says_what_is_missing(tmp_path: Path) -> None:
    snapshot = tmp_path / "served" / "snapshot.db"
    snapshot.parent.mkdir()
    static = str(DATA / RELEASES[0] / "static")
    with serving_papers(snapshot, workers=2, RUNG_PAPERS_ASSETS=static) as base_url:
        live = Library(base_url, Release(snapshot.parent))
        for write in (lambda: None, lambda: snapshot.write_bytes(b"no snapshot")):
            write()
            for ready in together(live.ready):
                assert ready.status == 503 and ready.body["papers"]["refused"]
                assert str(tmp_path) not in str(ready)
            answer = live.fails("search_papers", **SEARCH)
            assert answer.error["code"] == "snapshot_unavailable"
            assert str(tmp_path) not in answer.text + str(answer.structured)
        os.replace(place(tmp_path / "good.db"), snapshot)
        until_all(live.ready, lambda found: found.status == 200)
        assert ids(live.ok("search_papers", **SEARCH))


def test_the_command_swaps_under_live_workers_and_leaves_both_files_as_they_are(
    live: Library,
) -> None:
    new = newer(live)
    before = tree(new.parent)
    words = ["papers", "swap", "--db", str(live.release.snapshot), str(new)]
    result = CliRunner().invoke(rung, words)
    assert result.exit_code == 0 and "papers 46" in result.stdout
    until_all(lambda: live.ok("search_papers", **SEARCH), is_new)
    assert tree(new.parent) == before
    assert sorted(tree(live.release.folder)) == ["snapshot.db"]
    bad = live.release.folder.parent / "bad.db"
    bad.write_text("nothing", encoding="utf-8")
    refused = CliRunner().invoke(rung, [*words[:-1], str(bad)])
    assert refused.exit_code == 2 and "snapshot_refused" in refused.stderr
    assert is_new(live.ok("search_papers", **SEARCH))
