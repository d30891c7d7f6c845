"""`rung papers` at a shell: the texts of the files, the bodies of REST, and calls that run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung
from tests.helpers.papers import (
    ATTENTION,
    DEEP_LEARNING,
    NO_SOURCE,
    RELEASES,
    Library,
    Release,
    in_process,
    known,
)
from tests.helpers.shell import Shell
from tests.helpers.snapshots import DATA, place, retitled

MARKER = "\n[truncated: "
EXIT_CODES = {
    **dict.fromkeys(("invalid_request", "invalid_window"), 2),
    **dict.fromkeys(("paper_not_found", "source_not_available"), 5),
    **dict.fromkeys(("translation_not_available", "template_not_available"), 5),
    "cursor_expired": 1,
}


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release that the commands find by their environment."""
    found = Release(DATA / request.param)
    monkeypatch.setenv("RUNG_PAPERS_DB", str(found.snapshot))
    return found


@pytest.fixture
def rest(release: Release) -> Library:
    """The same release over REST."""
    return in_process(release.folder.name)


def run(*words: str) -> Result:
    return CliRunner().invoke(rung, ["papers", *words])


def ok(*words: str) -> Result:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result


def printed(result: Result, why: str) -> list[list[str]]:
    """The commands a result offers, as words without `rung papers`."""
    lines = (line.strip() for line in (result.stdout + result.stderr).split("\n"))
    found = [line.partition(f"{why}: rung papers ")[2] for line in lines]
    return [shlex.split(command) for command in found if command]


@pytest.mark.parametrize("name", [DEEP_LEARNING, "10.1038/nature14539", "Deep learning"])
def test_source_prints_the_file_and_nothing_else(release: Release, name: str) -> None:
    result = ok("source", name)
    assert result.stdout == release.source(DEEP_LEARNING) and result.stderr == ""


def test_source_prints_translations_too(release: Release) -> None:
    for paper in known().values():
        for lang in paper.translations:
            found = ok("source", paper.paper_id, "--lang", lang).stdout
            assert found == release.translation(paper.paper_id, lang)


def test_source_can_be_piped_by_a_real_shell(release: Release) -> None:
    command = [sys.executable, "-m", "service", "papers", "source", DEEP_LEARNING]
    found = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    assert found.stdout.decode() == release.source(DEEP_LEARNING) and found.stderr == b""


@pytest.mark.parametrize(
    "words",
    [("read", DEEP_LEARNING), ("read", DEEP_LEARNING, "--lang", "zh"), ("summary", ATTENTION)],
)
def test_printed_commands_rebuild_a_text(release: Release, words: tuple[str, ...]) -> None:
    text = {
        "read": release.source(DEEP_LEARNING),
        "summary": release.summary(ATTENTION),
    }[words[0]]
    if "zh" in words:
        text = release.translation(DEEP_LEARNING, "zh")
    result = ok(*words, "--max-chars", str(len(text) // 9 + 1))
    pieces = []
    while following := printed(result, "next"):
        pieces.append(result.stdout.rpartition(MARKER)[0])
        result = ok(*following[0])
    assert "".join(pieces) + result.stdout.removesuffix("\n") == text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("search", "learning", "--limit", "9"), "next_page"),
        (("search", "--limit", "9", "--", "-nothing learning"), "next_page"),
        (("keyword", "e", "--limit", "9"), "next_page"),
        (("facets", "tag", "--limit", "9"), "next_page"),
        (("facets", "venue"), "papers"),
        (("search", "trnsfomer"), "did_you_mean"),
        (("show", ATTENTION), "summary"),
        (("show", ATTENTION), "outline"),
        (("show", ATTENTION), "translation"),
        (("read", ATTENTION, "--outline"), "read"),
        (("read", DEEP_LEARNING, "--query", "backpropagation"), "read"),
    ],
)
def test_every_command_that_is_printed_runs(
    release: Release, words: tuple[str, ...], why: str
) -> None:
    found = printed(ok(*words), why)
    assert found
    for each in found:
        assert ok(*each).stdout.strip()


BODIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("search", "learning", "--limit", "5"), "search?q=learning&limit=5"),
    (("search", "注意力机制"), "search?q=注意力机制"),
    (("keyword", "transformer"), "keywords?keyword=transformer"),
    (("show", ATTENTION), f"papers/{ATTENTION}"),
    (
        ("summary", ATTENTION, "--template", "deep_read"),
        f"papers/{ATTENTION}/summary?template=deep_read",
    ),
    (("read", ATTENTION, "--lang", "zh"), f"papers/{ATTENTION}/source?lang=zh"),
    (("read", ATTENTION, "--query", "attention"), f"papers/{ATTENTION}/source?q=attention"),
    (("read", ATTENTION, "--outline"), f"papers/{ATTENTION}/outline"),
    (("facets", "author", "--limit", "3"), "facets/author?limit=3"),
)


@pytest.mark.parametrize(("words", "target"), BODIES)
def test_json_is_the_body_of_rest(rest: Library, words: tuple[str, ...], target: str) -> None:
    body: dict[str, Any] = orjson.loads(ok(*words, "--json").stdout)
    expected = rest.get(f"/papers/v1/{target}")
    address = body["links"].pop("self")
    assert rest.get(address) == {**body, "links": {**body["links"], "self": address}}
    del expected["links"]["self"]
    assert body == expected


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "nobody at all"), "paper_not_found"),
        (("source", NO_SOURCE), "source_not_available"),
        (("read", NO_SOURCE), "source_not_available"),
        (("source", ATTENTION, "--lang", "fr"), "translation_not_available"),
        (("summary", ATTENTION, "--template", "x"), "template_not_available"),
        (("search", "x" * 501), "invalid_request"),
        (("search", "learning", "--limit", "101"), "invalid_request"),
        (("search", "learning", "--limit", "0"), "invalid_request"),
        (("read", ATTENTION, "--max-chars", "0"), "invalid_request"),
        (("search", "learning", "--cursor", "0123456789.10"), "cursor_expired"),
        (("facets", "publisher"), "invalid_request"),
        (("read", ATTENTION, "--offset-chars", "999999"), "invalid_window"),
    ],
)
@pytest.mark.usefixtures("release")
def test_an_error_goes_to_stderr_with_what_to_do(words: tuple[str, ...], code: str) -> None:
    result = run(*words)
    assert result.exit_code == EXIT_CODES[code] and result.stdout == ""
    first, message, *_ = result.stderr.split("\n")
    assert first.startswith(f"error code={code}") and len(message) > 15
    for each in printed(result, "retry"):
        ok(*each)


def test_help_needs_no_snapshot_and_lists_what_an_argument_takes() -> None:
    told = " ".join(ok("facets", "--help").stdout.split())
    assert "One of: author, venue, keyword, institution, tag" in told
    assert "1 to 100." in told
    result = run("facets", "venue")
    assert result.exit_code == 2 and "--db or RUNG_PAPERS_DB" in result.stderr


@pytest.mark.usefixtures("release")
def test_an_invalid_choice_says_what_to_choose_from() -> None:
    assert "author, venue, keyword" in run("facets", "publisher").stderr


def test_printed_commands_name_the_snapshot_that_was_named(release: Release) -> None:
    found = ok("search", "learning", "--limit", "1", "--db", str(release.snapshot)).stdout
    (command,) = re.findall("next_page: rung papers (.*)", found)
    assert command.endswith(f"--db {release.snapshot}")
    ok(*shlex.split(command))


def test_controls_in_a_paper_do_not_reach_a_terminal(tmp_path: Path) -> None:
    new = retitled(place(tmp_path / "snapshot.db"), "A \x1b[31mred\x1b[0m title")
    shell = Shell({"RUNG_PAPERS_DB": str(new), "TERM": "dumb"})
    for words in (("show", DEEP_LEARNING), ("show", DEEP_LEARNING, "--json")):
        shown = shell.terminal("papers", *words)
        assert "red" in shown and "\x1b" not in shown


def test_a_terminal_gets_a_sentence_and_the_snippets_without_a_fence(release: Release) -> None:
    shell = Shell({"RUNG_PAPERS_DB": str(release.snapshot), "TERM": "dumb"})
    shown = shell.terminals(
        ("papers", "search", "learning", "--limit", "2"),
        ("papers", "facets", "author", "--limit", "3"),
        ("papers", "read", ATTENTION, "--outline"),
    )
    assert re.search(r"^\d+ papers match, .*2 shown\.$", shown, re.MULTILINE)
    assert re.search(r"^\d+ values of author, 3 shown\.$", shown, re.MULTILINE)
    assert re.search(r"^\d+ headings in [\d,]+ characters\.$", shown, re.MULTILINE)
    assert "<<<" not in shown and "metadata: rung papers show" in shown
    plain = shell.terminal("papers", "search", "learning", "--plain")
    assert plain.startswith("search_papers query=learning") and "<<<" in plain


def test_a_snapshot_that_is_not_there_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    result = run("search", "x", "--db", str(tmp_path / "none.db"))
    assert result.exit_code == 1 and "snapshot_unavailable" in result.stderr
    assert "Traceback" not in result.output


def test_a_swap_says_what_is_served_now(tmp_path: Path) -> None:
    served = place(tmp_path / "served" / "snapshot.db")
    new = retitled(place(tmp_path / "new.db", RELEASES[1]), "New")
    assert "Deep learning" in ok("show", DEEP_LEARNING, "--db", str(served)).stdout
    swapped = ok("swap", "--db", str(served), str(new))
    assert "papers 49" in swapped.stdout
    assert 'title: "New"' in ok("show", DEEP_LEARNING, "--db", str(served)).stdout
    for bad in (served, tmp_path / "none.db"):
        result = run("swap", "--db", str(served), str(bad))
        assert result.exit_code == 2 and "snapshot_refused" in result.stderr
        assert result.stdout == ""
