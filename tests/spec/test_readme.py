"""The README shows what a terminal shows."""

import re
import shlex

import pytest

from service.demo.fill import fill, token_for
from service.records.sqlite.writer import open_writer
from tests.helpers import pages
from tests.helpers.server import ROOT
from tests.helpers.shell import Shell

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("readme")
    with open_writer(folder / "rung.db") as writer:
        token = token_for(writer, fill(writer), folder / "token")
    return Shell({"RUNG_STORE": str(folder / "rung.db"), "RUNG_TOKEN": token})


def shown() -> list[tuple[str, str]]:
    """Each command whose answer the README shows: the block right after it, without a language."""
    found = pages.blocks(ROOT / "README.md")
    pairs = zip(found, found[1:])
    return [
        (before.text.splitlines()[-1], after.text)
        for before, after in pairs
        if before.language == "sh"
        and not after.language
        and not after.page[before.end : after.start].strip()
    ]


def test_the_readme_shows_what_a_terminal_shows(shell: Shell) -> None:
    assert len(shown()) >= 2
    for command, answer in shown():
        name, *words = shlex.split(command)
        assert name == "rung", command
        said = _COLOUR.sub("", shell.terminal(*words, columns=110)).replace("\r\n", "\n")
        assert pages.matches(answer, said), f"{answer}\n---\n{said}"
