"""What a command imports: a person waits for every module, before the first answer too."""

import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from service.__main__ import COMMANDS, rung
from service.cli.reading import ENTRIES
from tests.helpers.caller import Local
from tests.helpers.stdio import ROOT, environment
from tests.helpers.worlds import House

#: Libraries that no command at a shell needs: for servers, for other servers, for a terminal.
SERVING = {"flask", "werkzeug", "jinja2", "gunicorn", "prometheus_client", "limits"}
ASKING = {"requests", "urllib3", "tomlkit"}
PRINTING = {"rich", "sqlite_utils"}
#: What only a command that opens a store needs, and what only one of operations does.
OPENING = {"sqlite3", "cryptography"}
DECLARING = {"marshmallow", "apispec"}
UNUSED = SERVING | ASKING | PRINTING
#: Where our own code stands that a search in the store has nothing to do with.
ELSEWHERE = ("service.papers", "service.demo", "service.doctor", "service.mcp")


def imported(*words: str, **variables: str) -> list[str]:
    """The modules that a command imports, as Python names them."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "service", *words],
        env=environment(**variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout, done.stderr
    return re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", done.stderr, re.MULTILINE)


def libraries(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def pressed_tab(words: str) -> Mapping[str, str]:
    """What bash tells `rung` where the tab key is pressed behind these words."""
    place = str(len(words.split(" ")) - 1)
    return {"_RUNG_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": place}


@pytest.mark.parametrize(
    ("words", "variables", "most"),
    [
        (("--version",), {}, 130),
        (("--help",), {}, 140),
        (("completion", "bash"), {}, 180),
        ((), pressed_tab("rung sea"), 140),
    ],
)
def test_what_is_no_question_imports_no_command(
    words: tuple[str, ...], variables: Mapping[str, str], most: int
) -> None:
    modules = imported(*words, **variables)
    assert not libraries(modules) & (UNUSED | OPENING | DECLARING)
    assert not [
        name
        for name in modules
        if name.startswith(("service.records", "service.sources", "service.papers", "renderers"))
    ]
    assert len(modules) <= most, modules


@pytest.mark.parametrize("words", ["rung search --", "rung papers search --"])
def test_completing_options_opens_nothing(words: str) -> None:
    modules = imported(**pressed_tab(words))
    assert not libraries(modules) & (UNUSED | OPENING)
    assert len(modules) <= 310, modules


def test_a_search_in_the_store_imports_what_it_uses(small_house: House, small: Local) -> None:
    variables = {**small_house.environment, "RUNG_TOKEN": str(small.api.token)}
    modules = imported("search", "contract", **variables)
    assert "sqlite3" in modules
    assert not libraries(modules) & UNUSED
    assert not [name for name in modules if name.startswith(ELSEWHERE)]
    assert len(modules) <= 444, modules


def test_the_list_of_commands_says_what_the_commands_are() -> None:
    """Their lines stand in the list, which is printed without them."""
    assert list(rung.commands) == [command.name for command in COMMANDS]
    for command in COMMANDS:
        assert command.load().name == command.name
        assert command.short_help and command.short_help.endswith(".")
    titles = {entry.name: f"{entry.operation.title}." for entry in ENTRIES}
    assert titles.items() <= {one.name: one.short_help for one in COMMANDS}.items()
