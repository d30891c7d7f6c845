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
    assert refused.exit_code == 2 and "hit with the number 999" in refused.stderr


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


def test_a_search_on_a_terminal_begins_with_a_sentence(shell: Shell) -> None:
    shown = shell.terminals(("search", "invoice", "number", "--limit", "1"), ("search", "qqqzzz"))
    lines = [re.sub("\x1b[^m]*m", "", line).strip() for line in shown.splitlines()]
    assert re.fullmatch(r"\d+ records match, \d+ with every word, 1 shown\.", lines[0])
    assert "0 records match." in lines


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("schema",), r"\d+ streams of \d+ connectors\."),
        (("schema", "messages"), r"The stream messages\."),
        (("query", "messages", "--limit", "2"), "2 records of messages, and more follow\\."),
        (
            ("query", "messages", "--limit", "2", "--count", "exact"),
            r"\d+ records of messages, 2 shown\.",
        ),
        (("aggregate", "messages", "count"), r"Records of messages: \d+\."),
        (
            ("aggregate", "messages", "max", "received_at"),
            r"Maximum of received_at in \d+ records of messages: .+",
        ),
        (
            ("aggregate", "messages", "count", "--group-by", "folder", "--limit", "1"),
            r"\d+ records of messages in \d groups by folder, 1 shown\.",
        ),
        (("fetch", "nowhere/messages:1"), r"Error: .+"),
    ],
)
def test_every_answer_on_a_terminal_begins_with_a_sentence(
    shell: Shell, words: tuple[str, ...], first: str
) -> None:
    shown = re.sub("\x1b[^m]*m", "", shell.terminal(*words, columns=200))
    assert re.fullmatch(first, shown.splitlines()[0].strip()), shown


def test_plain_on_a_terminal_is_the_text_of_a_pipe(shell: Shell) -> None:
    for words in (("search", "invoice"), ("query", "notes"), ("schema",), ("fetch", "1")):
        shown = shell.terminal(*words, "--plain").replace("\r\n", "\n")
        piped = shell.ok(*words)
        assert sorted(_comparable(shown)) == sorted(_comparable(piped.stdout + piped.stderr))


def _comparable(text: str) -> list[str]:
    """The lines without the number of a fence, which is random."""
    return re.sub(r"(<<<|>>>)\w+|\w+(?=>>>)", "", text).splitlines()
