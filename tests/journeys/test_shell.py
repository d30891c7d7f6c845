"""Journeys at a shell: from a question to the last character by commands that were printed."""

import json
import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest

from evidence.model import Continuation
from service.__main__ import rung
from service.cli.deferred import loaded
from service.cli.reading import ENTRIES
from tests.helpers import worlds
from tests.helpers.demo import NEEDLE
from tests.helpers.shell import FORM, SPELL, Shell, printed, root_context
from tests.helpers.worlds import SECRET, House
from tests.spec.scenarios import scenario

#: Windows as large as there are, so that a long text takes few processes.
LARGEST = "--limit-chars 16384"


@pytest.fixture(scope="module")
def shell(demo_store: tuple[Path, str]) -> Shell:
    """A shell beside the demo store."""
    path, token = demo_store
    return Shell({"RUNG_STORE": str(path), "RUNG_TOKEN": token, "RUNG_SECRET_KEY": SECRET})


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell beside a store where everything has an odd name."""
    house = worlds.build(worlds.odd_ids(), tmp_path_factory.mktemp("odd"))
    return Shell({**house.environment, "RUNG_TOKEN": house.grant()[1]})


@pytest.mark.slow
@scenario("000/parity/cli-reads-windows", "001/tokens/text-alone-suffices")
def test_a_long_field_is_rebuilt_in_bash_from_one_search_and_printed_commands(
    shell: Shell, demo_store: tuple[Path, str]
) -> None:
    found = shell.bash(f"rung search {NEEDLE}")
    assert found.returncode == 0, found.stderr
    command: str | None = f"{printed(found.stdout)[0]} {LARGEST}"
    text = ""
    while command:
        window = shell.bash(command)
        assert window.returncode == 0, window.stderr
        text += window.stdout
        command = next(iter(printed(window.stderr, "next")), None)
    assert len(text) > 200_000
    assert text == whole(House(demo_store[0]), demo_store[1])


def whole(house: House, token: str) -> str:
    """The field, as the detail route gives it."""
    path = "/v1/streams/notes/records/atlas"
    body = worlds.Api(house.app, token).rest(path, connection_id="notes", fields="text").body
    return str(body["data"]["text"])


def test_a_stream_is_listed_to_its_end_by_printed_commands(shell: Shell) -> None:
    command, seen = "rung query payments --limit 40 --fields id", list[str]()
    while command:
        page = shell.line(command)
        assert page.exit_code == 0, page.stderr
        seen += [line.split()[1] for line in page.stdout.split("\n") if " emitted_at=" in line]
        command = next(iter(printed(page.stdout, "next_page")), "")
    (total,) = shell.ok("aggregate", "payments", "count").stdout.split("value=")[1:]
    assert len(seen) == len(set(seen)) == int(total)


def test_a_count_by_group_leads_to_the_records_of_a_group(shell: Shell) -> None:
    header, *groups = shell.ok(
        *("aggregate", "notes", "count", "--group-by", "language")
    ).stdout.splitlines()
    key, count = groups[0].split()
    assert "groups=" in header
    page = shell.ok("query", "notes", "--filter", f"language={key}", "--count", "exact")
    assert f"count=exact:{count}" in page.stdout.split("\n")[0]


def test_what_the_schema_prints_runs(shell: Shell) -> None:
    (details,) = printed(shell.ok("schema").stdout, "details")
    examples = printed(shell.line(details).stdout, "example")
    assert len(examples) > 2
    for command in examples:
        assert shell.line(command).exit_code == 0, command


def test_records_with_odd_ids_are_read_by_printed_commands(odd: Shell) -> None:
    found = odd.ok("search", "oddity", "--limit", "100").stdout
    (form,) = [line.removeprefix(FORM) for line in found.split("\n") if line.startswith(FORM)]
    commands = [filled(form, id, path) for id, path in shown(found)]
    assert len(commands) == len(worlds.ODD_IDS) and not printed(found)
    read = [odd.line(command) for command in commands]
    assert {window.stdout for window in read} == {
        f"the oddity number{number}" for number in range(1, len(worlds.ODD_IDS) + 1)
    }
    fetched = [odd.ok("fetch", "--", shlex.split(command)[2]) for command in commands[:6]]
    assert all(f"{worlds.ODD_STREAM}" in unquote(one.stderr) for one in fetched)


def shown(found: str) -> list[tuple[str, str]]:
    """(id, field) of every hit of a page, each from the two lines that begin it."""
    hits = re.findall(r"^\d+ (\S+) .*\n  (\".+?\"|\S+) \d+\.\.", found, re.MULTILINE)
    return [(id, json.loads(path) if path[0] == '"' else path) for id, path in hits]


def filled(form: str, id: str, path: str) -> str:
    """The command with an id and a field put in, each quoted as bash has it."""
    given = {"<id of the hit>": id, "<field>": path}
    return shlex.join(given.get(word, word) for word in shlex.split(form))


WORDS = (
    "$(touch pwned) `id` $HOME",
    'it\'s "quoted" \\ back',
    "-friday tag",
    "--help",
    "日記 🎉",
    "two  spaces ",
    "line\nbreak\ttab",
    "\x1b[31mred\x07",
    "\u202egnp.exe\u202c it's",
    "*?[a-z]!~#;&|<>",
)


@pytest.mark.parametrize("place", ["query", "filter", "streams"])
def test_bash_reads_the_words_that_were_meant_whatever_they_hold(shell: Shell, place: str) -> None:
    """`rung` is a function here that prints its words, each with a NUL behind it."""
    given = {
        "query": lambda word: {"query": word},
        "filter": lambda word: {"query": "x", "filter": {word: {"gte": word}}},
        "streams": lambda word: {"query": "x", "streams": [word, "a,b"]},
    }[place]
    commands = [SPELL(Continuation("search", given(word), "")) for word in WORDS]
    assert all(command.isprintable() for command in commands)
    script = "rung() { printf '%s\\0' \"$@\"; printf '\\n\\0'; }\n" + "\n".join(commands)
    said = shell.bash(script)
    assert said.returncode == 0 and said.stderr == ""
    read = [part.strip("\0").split("\0") for part in said.stdout.split("\n\0") if part]
    for word, words in zip(WORDS, read, strict=True):
        assert options(words) == given(word)


def options(words: list[str]) -> dict[str, object]:
    """What the command makes of its words."""
    command = loaded(rung.commands["search"])
    (entry,) = [entry for entry in ENTRIES if entry.name == "search"]
    return entry.arguments_of(command.make_context("search", words[1:], root_context()).params)
