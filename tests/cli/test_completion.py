"""Completion: in a real bash, and the scripts of the other shells."""

import shlex
from pathlib import Path

import pytest

from service.cli.completion import SHELLS
from tests.helpers.shell import Shell

#: What bash does where the tab key is pressed behind these words.
PRESS_TAB = """
COMP_WORDS=({words}); COMP_CWORD={place}; COMPREPLY=()
_rung_completion rung "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def home(tmp_path: Path) -> Shell:
    """Somebody with an empty home."""
    return Shell({"HOME": str(tmp_path), "XDG_CONFIG_HOME": ""})


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
    home: Shell, words: tuple[str, ...], found: list[str]
) -> None:
    press = PRESS_TAB.format(words=shlex.join(["rung", *words]), place=len(words))
    done = home.bash(f'eval "$(rung completion bash)"\n{press}')
    assert done.stdout.split() == found, done.stderr


def test_bash_takes_rungs_own_function(home: Shell) -> None:
    done = home.bash('eval "$(rung completion bash)"; complete -p rung')
    assert "-F _rung_completion rung" in done.stdout, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_its_script(home: Shell, shell: str) -> None:
    assert f"_RUNG_COMPLETE={shell}_complete" in home.ok("completion", shell).stdout


def test_a_faulty_configuration_does_not_keep_completion_from_working(
    home: Shell, tmp_path: Path
) -> None:
    faulty = tmp_path / "faulty.toml"
    faulty.write_text("no toml")
    shell = Shell({**home.environ, "RUNG_CONFIG": str(faulty)})
    press = PRESS_TAB.format(words="rung sea", place=1)
    done = shell.bash(f'eval "$(rung completion bash)"\n{press}')
    assert done.stdout == "search\n", done.stderr
