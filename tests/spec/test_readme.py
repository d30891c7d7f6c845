"""The README shows what a terminal shows."""

import re
import shlex
from pathlib import Path
from threading import Event

import pytest

from service.demo.fill import fill, token_for
from service.meaning import card
from service.meaning.building import build
from service.meaning.model import LocalModel
from service.records.sqlite.writer import open_writer
from tests.helpers import pages
from tests.helpers.alone import INSTALLED_MODEL
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


def asked() -> tuple[str, str, str]:
    """The example at the top of the README, its command, and what the command prints."""
    first, *others = pages.blocks(ROOT / "README.md")
    (shown,) = (block.text for block in others if block.text.startswith("$ rung search"))
    command, _, answer = shown.partition("\n")
    return first.text, command.removeprefix("$ "), answer


def test_the_question_in_other_words_shares_no_word_with_its_answer(shell: Shell) -> None:
    _, command, _ = asked()
    record = shell.ok("fetch", "notes/notes:wifi").output.lower()
    words = re.findall(r"[a-z]+", command.partition(" --")[0])[2:]
    assert not {word for word in words if len(word) > 3} & {*re.findall(r"[a-z]+", record)}


@pytest.mark.slow
def test_the_model_answers_the_question_in_other_words(shell: Shell) -> None:
    if not (INSTALLED_MODEL / card.FILE).exists():
        pytest.skip("no model is installed: run `rung model install`")
    path = Path(shell.environ["RUNG_STORE"])
    build(path, LocalModel(INSTALLED_MODEL), Event(), on_commit=lambda progress: None)
    first, command, answer = asked()
    there = Shell({**shell.environ, "RUNG_MODEL": str(INSTALLED_MODEL)})
    said = there.line(command).output
    assert pages.matches(answer, said) and pages.matches(f"…{first}…", said), said
