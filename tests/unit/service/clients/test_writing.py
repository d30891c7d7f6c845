"""Files are replaced whole, and not at all where somebody else was faster."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
import orjson
import pytest

from evidence.limits import BUDGETS
from service.cli.connect import Target, rewrite
from service.clients.table import client_of
from service.clients.servers import add
from service.clients.writing import Changed, FileState

NOW = datetime(2026, 11, 21, 12, 30, 5, tzinfo=UTC)
ENTRY = {"url": "https://rung.example.com/mcp"}


def target(path: Path) -> Target:
    client = client_of("cursor")
    assert client.config is not None
    return Target(client, client.config, path, "rung")


def test_a_file_that_changed_since_it_was_read_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    for now in (b"{}", None):
        path.write_bytes(b"old")
        held = FileState.of(path)
        path.unlink() if now is None else path.write_bytes(now)
        with pytest.raises(Changed):
            held.replace(b"new", NOW, private=False)
        assert [one.name for one in tmp_path.iterdir()] == ([] if now is None else ["mcp.json"])
        assert now is None or path.read_bytes() == now


def test_a_file_that_came_since_there_was_none_stays(tmp_path: Path) -> None:
    held = FileState.of(tmp_path / "mcp.json")
    (tmp_path / "mcp.json").write_bytes(b"theirs")
    with pytest.raises(Changed):
        held.replace(b"ours", NOW, private=False)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"theirs"]


def test_what_somebody_wrote_meanwhile_is_read_again_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    wanted = target(path)
    asked = []

    def change(text: str, held: FileState) -> str:
        if not asked:
            path.write_text('{"mcpServers": {"theirs": {}}}')
        asked.append(text)
        return add(wanted.config, text, "rung", ENTRY)

    assert rewrite(wanted, change)
    assert len(asked) == 2
    assert '"theirs"' in path.read_text() and '"rung"' in path.read_text()
    assert len(list(tmp_path.iterdir())) == 2  # the file and one backup


def test_a_file_that_changes_all_the_time_is_given_up_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("0")

    def change(text: str, held: FileState) -> str:
        path.write_text(str(int(text) + 1))
        return "mine"

    with pytest.raises(click.ClickException, match="Close Cursor"):
        rewrite(target(path), change)
    assert path.read_text().isdigit() and len(list(tmp_path.iterdir())) == 1


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    whole = {b"a" * 400_000, b"b" * 400_000}
    path.write_bytes(min(whole))
    seen, done = set(), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(20):
        FileState.of(path).replace(sorted(whole)[number % 2], NOW, private=False)
    done.set()
    reader.join()
    assert seen and seen <= whole


def test_a_backup_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    taken = tmp_path / "mcp.json.rung-backup-20261121T123005Z"
    taken.write_text("earlier")
    backup = FileState.of(path).replace(b"new", NOW, private=True)
    assert backup == tmp_path / "mcp.json.rung-backup-20261121T123005Z-2"
    assert taken.read_text() == "earlier" and backup.read_text() == "{}"
    assert FileState.of(path).earlier() == [b"{}", b"earlier"]


def test_servers_that_are_added_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    names = [f"server-{number}" for number in range(8)]

    def put(number: int, path: Path) -> None:
        wanted = replace(target(path), name=names[number])
        together.wait()
        rewrite(wanted, lambda text, held: add(wanted.config, text, wanted.name, ENTRY))

    for each in range(5):
        path, together = tmp_path / f"{each}" / "mcp.json", threading.Barrier(len(names))
        with ThreadPoolExecutor(len(names)) as pool:
            for done in [pool.submit(put, number, path) for number in range(len(names))]:
                done.result()
        assert sorted(orjson.loads(path.read_bytes())["mcpServers"]) == names


@pytest.mark.parametrize("kind", ["pipe", "folder", "huge"])
def test_what_is_no_ordinary_file_is_refused_unread(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(BUDGETS.client_file_bytes + 1)
    with pytest.raises(OSError, match="regular file|larger than") as refused:
        FileState.of(path)
    assert refused.value.filename == str(path)
    (tmp_path / "other.json.rung-backup-1").symlink_to(path)
    assert FileState.of(tmp_path / "other.json").earlier() == []
