"""The hits of the last search by number, and the times that a person reads."""

import re
from pathlib import Path

import pytest

from tests.helpers.shell import Shell
from tests.helpers.worlds import House


@pytest.fixture
def shell(small_house: House, tmp_path: Path) -> Shell:
    home = {"XDG_CONFIG_HOME": str(tmp_path), "NO_COLOR": "1", "TZ": "Asia/Tokyo"}
    return Shell({**small_house.environment, "RUNG_TOKEN": small_house.grant()[1], **home})


def ids(shown: str) -> list[str]:
    """The ids of the numbered hits on a terminal."""
    return re.findall(r"^\d+ (\S+/\S+)", re.sub("\x1b[^m]*m", "", shown), re.MULTILINE)


def test_a_number_stands_for_a_hit_of_the_last_search(shell: Shell, tmp_path: Path) -> None:
    found = ids(shell.terminal("search", "invoice"))
    assert len(found) > 1
    for number, id in enumerate(found, start=1):
        assert shell.ok("fetch", str(number)).stdout == shell.ok("fetch", id).stdout
    kept = tmp_path / "rung" / "last-search.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    refused = shell.run("read", "999")
    assert refused.exit_code == 2 and "no hit 999" in refused.stderr


def test_a_search_in_a_pipe_leaves_no_ids(shell: Shell, tmp_path: Path) -> None:
    shell.ok("search", "invoice")
    assert not (tmp_path / "rung").exists()


def test_open_prints_the_page_of_a_record(shell: Shell) -> None:
    first = ids(shell.terminal("search", "invoice"))[0]
    printed = shell.ok("open", "1", "--url", "http://127.0.0.1:8000/mcp").stdout.strip()
    assert printed == f"http://127.0.0.1:8000/read/{first}"
    assert shell.run("open", "1", "--provider-url", "http://127.0.0.1:9").exit_code == 2


def test_times_on_a_terminal_are_local(shell: Shell) -> None:
    shown = shell.terminal("search", "invoice")
    assert "+09:00" in shown and not re.search(r"T\d\d:\d\d(:\d\d)?Z", shown.partition("\n")[2])
