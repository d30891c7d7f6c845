"""Every command in the documents runs: page by page, in a shell, in a folder like a newcomer's.

Blocks of ```sh run in order, in one shell per page. A block without a language right after one is
its output on a terminal. What a test machine cannot do (a platform, a client, a server
that runs until it is stopped) is in ```console blocks after a `$`; their `rung` and `make` commands
are checked by `tests/architecture/test_docs.py`.
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from evidence import manifest
from tests.helpers import pages
from tests.helpers.caller import Local
from tests.helpers.pages import Block
from tests.helpers.server import ROOT, serving

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PAGES = [page for page in PAGES if page.parent.name != "reference"]
RUN = [page for page in PAGES if any(block.language == "sh" for block in pages.blocks(page))]
ANSWERED = [page for page in PAGES if any(map(pages.call, pages.blocks(page)))]
#: The files that the README has its reader write, for pages that continue from there.
DIARY = """\
{"id": "b1", "title": "Reading list", "text": "Finish the book.", "at": "2026-03-01T09:00:00Z"}
{"id": "b2", "title": "Shopping", "text": "Bread and lemons.", "at": "2026-03-02T18:30:00Z"}
"""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that `make demo` leaves: the store, its token, the papers."""
    folder = tmp_path_factory.mktemp("template")
    command = [sys.executable, "-m", "service", "demo"]
    subprocess.run(command, cwd=folder, env=shell(), check=True, stdout=subprocess.DEVNULL)
    (folder / "diary.ndjson").write_text(DIARY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def served(template: Path) -> Iterator[str]:
    """Host and port of the demo, as `make demo` serves it."""
    env = {
        "RUNG_STORE": str(template / "var/rung.db"),
        "RUNG_PAPERS_DB": str(template / "var/demo-papers/snapshot.db"),
    }
    with serving("wsgi:app", env) as base:
        yield base.removeprefix("http://")


def shell(**more: str) -> dict[str, str]:
    """An environment in which `rung` is the tests' own, without settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RUNG_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT), **more}


def run(blocks: list[Block], folder: Path, **more: str) -> list[str]:
    """The output of each block on a terminal, all in one shell.

    No process that the shell started survives.
    """
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    master, slave = pty.openpty()
    with TemporaryFile() as trace:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", f"set -x\n{pages.script(blocks)}"],
            cwd=folder,
            env=shell(BASH_XTRACEFD=str(trace.fileno()), TERM="xterm", COLUMNS="110", **more),
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            pass_fds=[trace.fileno()],
            start_new_session=True,
        )
        os.close(slave)
        try:
            shown = read_all(master)
            process.wait()
        finally:
            end_group(process.pid)
        trace.seek(0)
        commands = trace.read().decode()
    assert process.returncode == 0, f"{shown[-4000:]}\n{commands[-1000:]}"
    return pages.printed(shown)


def read_all(terminal: int) -> str:
    """The output to a terminal until its other end is closed."""
    read = bytearray()
    with open(terminal, "rb", buffering=0) as stream:
        try:
            while some := stream.read(65_536):
                read += some
        except OSError:  # on Linux: the other end is closed
            pass
    return read.decode("utf-8")


def end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_command_of_a_page_runs_and_prints_what_the_page_shows(
    page: Path, template: Path, served: str, tmp_path: Path
) -> None:
    found = pages.blocks(page)
    blocks = [block for block in found if block.language == "sh"]
    assert not any(pages.ENDLESS.search(block.text) for block in blocks), "this would run for ever"
    folder = tmp_path / "folder"
    shutil.copytree(template, folder)
    token = (folder / "var/demo-token").read_text().strip()
    there = [block.moved(served) for block in blocks]
    outputs = run(there, folder, HOME=str(tmp_path), TOKEN=token)
    assert len(outputs) == len(blocks)
    for block, output in zip(blocks, outputs):
        assert not pages.FAILED.search(output), f"{block.text}\n{output}"
        said = output.replace(served, pages.SERVED)
        for shown in pages.shown_after(block, found):
            assert pages.matches(shown.text, said), f"{shown.text}\n---\n{said[:6000]}"


@pytest.mark.parametrize("page", ANSWERED, ids=name)
def test_the_answers_a_page_shows_are_those_the_tools_give(page: Path, demo: Local) -> None:
    for block in pages.blocks(page):
        asked = pages.call(block)
        if asked is not None:
            text = demo.ok(asked.tool, **asked.arguments).text
            assert pages.matches(asked.answer, text), f"{asked.answer}\n---\n{text}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_block_with_commands_is_one_that_is_run_or_has_prompts(page: Path) -> None:
    for block in pages.blocks(page):
        assert block.language in pages.LANGUAGES, f"```{block.language}"
        if block.language == "console":
            assert list(block.prompted()), block.text
        elif block.language != "sh":
            assert not pages.COMMAND.search(block.text), block.text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_json_a_page_shows_can_be_read(page: Path) -> None:
    for block in pages.blocks(page):
        if block.language == "json":
            json.loads(block.text)


def test_the_manifest_that_is_explained_is_one_the_importer_takes() -> None:
    found = pages.blocks(ROOT / "docs/manifest.md")
    (shown,) = [block.text for block in found if block.language == "json"]
    streams = manifest.parse(json.loads(shown))
    assert [stream.name for stream in streams] == ["messages", "threads"]


def test_the_harness_sees_what_a_block_prints_and_a_wrong_exit_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\necho one two\nfalse  # exits with 1\n```\n\n```text\none …\n```\n")
    first, second = pages.blocks(page)
    assert run([first], tmp_path) == ["one two\n"]
    assert pages.shown_after(first, [first, second]) == [second]
    assert pages.matches("one …", "one two") and pages.matches("…two", "one two")
    assert not pages.matches("one …", "two one three") and not pages.matches("one", "one two")
    (tmp_path / ".venv").unlink()
    page.write_text("```sh\nfalse  # exits with 2\n```\n")
    with pytest.raises(AssertionError):
        run(pages.blocks(page), tmp_path)
