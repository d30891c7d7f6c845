"""Completion: in a real bash, and the files it is installed as."""

import shlex
from pathlib import Path

import pytest

from tests.helpers.shell import Shell

SHELLS = {
    "bash": ".local/share/bash-completion/completions/rung",
    "zsh": ".local/share/zsh/site-functions/_rung",
    "fish": ".config/fish/completions/rung.fish",
}

#: What bash does where the tab key is pressed behind these words.
PRESS_TAB = """
COMP_WORDS=({words}); COMP_CWORD={place}; COMPREPLY=()
_rung_completion rung "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def home(tmp_path: Path) -> Shell:
    """Somebody with an empty home."""
    cleared = {"XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "BASH_COMPLETION_USER_DIR": ""}
    return Shell({"HOME": str(tmp_path), **cleared})


def files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("sea",), ["search"]),
        (("export", "fi"), ["field"]),
        (("export", "stream", "notes", "--form"), ["--format"]),
        (("export", "stream", "notes", "--format", ""), ["ndjson", "csv"]),
        (("completion", "z"), ["zsh"]),
    ],
)
def test_bash_completes_what_is_typed(
    home: Shell, tmp_path: Path, words: tuple[str, ...], found: list[str]
) -> None:
    home.ok("completion", "bash", "--install")
    press = PRESS_TAB.format(words=shlex.join(["rung", *words]), place=len(words))
    done = home.bash(f"source {shlex.quote(str(tmp_path / SHELLS['bash']))}\n{press}")
    assert done.stdout.split() == found, done.stderr


def test_bash_takes_rungs_own_function(home: Shell) -> None:
    done = home.bash('eval "$(rung completion bash)"; complete -p rung')
    assert "-F _rung_completion rung" in done.stdout, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_installing_writes_what_is_printed_and_nothing_else(
    home: Shell, tmp_path: Path, shell: str
) -> None:
    dry = home.ok("completion", shell, "--install", "--dry-run")
    assert files(tmp_path) == [] and str(tmp_path / SHELLS[shell]) in dry.stderr
    told = home.ok("completion", shell, "--install")
    assert told.stdout == "" and str(tmp_path / SHELLS[shell]) in told.stderr
    assert files(tmp_path) == [SHELLS[shell]]
    written = (tmp_path / SHELLS[shell]).read_text()
    assert written == home.ok("completion", shell).stdout.removesuffix("\n")
    assert f"_RUNG_COMPLETE={shell}_complete" in written
    home.ok("completion", shell, "--install")  # again, over the file that is there


def test_zsh_is_told_where_to_look(home: Shell, tmp_path: Path) -> None:
    told = home.ok("completion", "zsh", "--install").stderr
    assert f"fpath=({tmp_path / '.local/share/zsh/site-functions'} $fpath)" in told


def test_a_place_that_cannot_be_written_is_said(home: Shell, tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("in the way")
    result = home.run("completion", "bash", "--install")
    assert result.exit_code == 1 and "Not a directory" in result.stderr


def test_a_dry_run_of_nothing_is_a_wrong_call(home: Shell) -> None:
    assert home.run("completion", "bash", "--dry-run").exit_code == 2


def test_a_faulty_configuration_does_not_keep_completion_from_working(
    home: Shell, tmp_path: Path
) -> None:
    faulty = tmp_path / "faulty.toml"
    faulty.write_text("no toml")
    shell = Shell({**home.environ, "RUNG_CONFIG": str(faulty)})
    press = PRESS_TAB.format(words="rung sea", place=1)
    done = shell.bash(f'eval "$(rung completion bash)"\n{press}')
    assert done.stdout == "search\n", done.stderr
