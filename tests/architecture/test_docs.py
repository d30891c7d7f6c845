"""The documents say what is there: the tour, the reference, the commands, the links."""

import ast
import itertools
import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from evidence import errors, limits, ranking
from service.__main__ import rung
from service.cli.deferred import loaded
from service.operations import OPERATIONS
from service.records.search import candidates
from service.settings import SETTINGS
from tests.architecture.sources import CODE, PACKAGES, ROOT, files, text, tree

README, TOUR = Path("README.md"), Path("docs/tour.md")
PAGES = [README, Path("CONTRIBUTING.md"), Path("CHANGELOG.md"), *files("docs", ending=".md")]
#: The script of `make docs`.
REFERENCE = runpy.run_path(str(ROOT / "docs/site/reference.py"))["main"]
BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
#: Places of one machine, and nobody's business elsewhere.
FORBIDDEN = ("/" + "work/", "/" + "farm", "/." + "library")


def rows(page: Path, heading: str) -> list[str]:
    """The first cells, where they are code, of the tables under a heading."""
    _, _, section = text(page).partition(f"\n## {heading}\n")
    section = section.partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def test_the_tour_names_each_folder_of_the_tests_and_the_documents_and_no_other() -> None:
    beside = {name.strip("/") for name in rows(TOUR, "Beside the code")}
    assert all((ROOT / name).is_dir() for name in beside), beside
    used = {"/".join(path.parts[:2]) for path in files("docs", "tests", ending="")}
    assert {name for name in used if (ROOT / name).is_dir()} <= beside
    for name in rows(TOUR, "`./`"):
        assert (ROOT / name).is_file(), name


def test_every_module_has_a_docstring() -> None:
    bare = [str(path) for path in files(*PACKAGES) if not ast.get_docstring(tree(path))]
    assert not bare, "the tour needs a docstring"


def test_the_reference_is_up_to_date_and_its_check_finds_a_page_that_differs(
    tmp_path: Path,
) -> None:
    written, example = tmp_path / "reference", tmp_path / "example"
    shutil.copytree(ROOT / "docs/reference", written)
    shutil.copy(ROOT / "rung.env.example", example)
    (written / "tools.md").write_text("# Tools\n", encoding="utf-8")
    words = [str(written), "--example", str(example)]
    check = CliRunner().invoke(REFERENCE, ["--check", *words])
    assert check.exit_code == 1 and "make docs" in check.output
    assert re.findall(r"[\w-]+\.(?:md|json)\b", check.output) == ["tools.md"], check.output
    assert CliRunner().invoke(REFERENCE, words).exit_code == 0
    tools = Path("docs/reference/tools.md")
    assert (written / tools.name).read_text(encoding="utf-8") == text(tools)


def test_the_caps_of_the_ranking_are_those_of_the_code() -> None:
    modules = {"BUDGETS": limits.BUDGETS, "ranking": ranking, "candidates": candidates}
    caps = re.findall(r"\| ([\d,]+) \| `(\w+)\.(\w+)` \|", text(Path("docs/ranking.md")))
    assert len(caps) > 9
    for figure, module, name in caps:
        assert int(figure.replace(",", "")) == getattr(modules[module], name), name


@pytest.mark.parametrize(
    "page, entries",
    [
        ("tools.md", [f"## {operation.name}" for operation in OPERATIONS]),
        ("tools.md", [f"`{name}`" for one in OPERATIONS for name in one.arguments.fields]),
        ("settings.md", [f"| `{setting.variable}` |" for setting in SETTINGS]),
        ("limits.md", [f"| `{name}` |" for name, _, _ in limits.describe(limits.CONTRACT)]),
        ("limits.md", [f"| `{name}` |" for name, _, _ in limits.describe(limits.BUDGETS)]),
        ("errors.md", [f"| `{kind.kind}` |" for kind in errors.KINDS]),
        ("cli.md", [f"## rung {name}" for name in rung.commands]),
    ],
)
def test_everything_that_can_be_asked_set_or_met_has_an_entry(
    page: str, entries: list[str]
) -> None:
    found = text(Path("docs/reference") / page)
    missing = [entry for entry in entries if entry not in found]
    assert entries and not missing, f"docs/reference/{page} has no entry {missing}"


def test_the_settings_of_the_readme_are_some_of_those_there_are_in_their_order() -> None:
    named = rows(README, "Deploy")
    assert named and named == [one.variable for one in SETTINGS if one.variable in named]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every `make` and `rung` command a page shows, without its prompt."""
    shown = text(page)
    for block in BLOCK.findall(shown):
        for line in block.replace("\\\n", " ").splitlines():
            yield from _commands(re.sub(r"^ *[$#] ", "", line))
    for line in re.findall(r"`([^`\n]+)`", BLOCK.sub("", shown)):
        yield from _commands(line)


def _commands(line: str) -> Iterator[list[str]]:
    """What a line runs: `rung` at its beginning, and behind another program or a `|`."""
    if not re.search(r"\b(make|rung) [a-z]", line) or line.startswith("Usage: "):
        return
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a text of several lines begins here; its command stands before it
        words = line.split()
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        del words[0]
    for place, word in enumerate(words[:-1]):
        name, after = word.rpartition("/")[2], words[place + 1]
        named = re.match("[a-z]", after) and (place == 0 or (after in rung.commands))
        if named and (name == "rung" or (name == "make" and place == 0)):
            rest = itertools.takewhile(
                lambda one: one not in ("|", ">", "&&", "||", "&"), words[place:]
            )
            yield [name, *list(rest)[1:]]


def test_commands_are_found_behind_prompts_and_other_programs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    shown = "$ PORT=1 make demo\n# runuser -u rung -- /x/rung grant list \\\n  --store y\n"
    page.write_text(f"```console\n{shown}```\n`rung stats` and `rung.db`\n", encoding="utf-8")
    assert list(commands(page)) == [
        ["make", "demo"],
        ["rung", "grant", "list", "--store", "y"],
        ["rung", "stats"],
    ]


def test_every_command_a_page_shows_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text(Path("Makefile")), re.MULTILINE))
    for page in PAGES:
        for name, *words in commands(page):
            if name == "make":
                assert set(words) <= targets, f"{page}: make {' '.join(words)}"
            else:
                _check_rung(page, words)


def _check_rung(page: Path, words: list[str]) -> None:
    command: click.Command = rung
    said = f"{page}: rung {' '.join(words)}"
    while isinstance(command, click.Group) and words:
        own = {name for param in command.params for name in param.opts}
        while words and words[0] in own:  # an option of the group, with its value
            words = words[2:]
        if not words:
            return
        assert words[0] in command.commands, said
        command, words = loaded(command.commands[words[0]]), words[1:]
    options = {name for param in command.params for name in param.opts} | {"--help"}
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert given <= options, said


def test_the_readme_shows_the_two_set_up_commands_first() -> None:
    assert list(commands(README))[:2] == [["make", "demo"], ["make", "test"]]


def links() -> Iterator[tuple[Path, str]]:
    """Every link inside the project, with its page."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", text(page))):
            if not target.startswith(("http://", "https://")):
                yield page, target


def test_every_link_inside_the_project_leads_somewhere() -> None:
    for page, target in links():
        name, _, heading = target.partition("#")
        path = ROOT / page.parent / name if name else ROOT / page
        assert path.exists(), f"{page} links to {target}"
        assert not heading or heading in headings(path), f"{page} links to {target}"


def headings(path: Path) -> set[str]:
    """The headings of a page as the end of an address."""
    found = re.findall(r"^#+ (.+)$", BLOCK.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_file_a_page_names_is_there() -> None:
    for page in PAGES:
        for name in re.findall(
            r"`((?:evidence|renderers|service|publish|tests|bench|quality|docs)/[\w./-]+)`",
            text(page),
        ):
            assert (ROOT / name).exists() or "/NAME" in name, f"{page} names {name}"


def test_nothing_tells_of_the_machine_it_was_written_on() -> None:
    endings = (".py", ".md", ".mjs", ".json", ".yml", ".txt", ".cfg", ".toml")
    found = [Path(".ci/run"), Path("Makefile"), Path("Procfile")]
    found += [Path(path.name) for path in ROOT.iterdir() if path.suffix in endings]
    found += [path for ending in endings for path in files(*CODE, ending=ending)]
    for path in found:
        for word in FORBIDDEN:
            assert word not in text(path), f"{path} holds {word}"
