"""`rung completion`: prints or installs the completion script of a shell."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import click
from click.shell_completion import get_completion_class

from service import settings
from service.cli.output import say

NAME = "rung"
VARIABLE = "_RUNG_COMPLETE"


@dataclass(frozen=True, slots=True)
class Shell:
    """The path where a shell loads completions, and the remaining step for the user."""

    name: str
    place: Callable[[Mapping[str, str]], Path]
    then: str


def _data(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")


def _bash(environ: Mapping[str, str]) -> Path:
    named = environ.get("BASH_COMPLETION_USER_DIR")
    base = Path(named.split(":")[0]) if named else _data(environ) / "bash-completion"
    return base / "completions" / NAME


def _zsh(environ: Mapping[str, str]) -> Path:
    return _data(environ) / "zsh/site-functions" / f"_{NAME}"


def _fish(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "fish/completions" / f"{NAME}.fish"


SHELLS = {
    shell.name: shell
    for shell in (
        Shell("bash", _bash, "Open a new shell; the package bash-completion loads the file."),
        Shell(
            "zsh",
            _zsh,
            "Put `fpath=({folder} $fpath)` before `compinit` in ~/.zshrc, and open a new shell.",
        ),
        Shell("fish", _fish, "Open a new shell."),
    )
}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.option("--install", is_flag=True, help="Write the script to the file that the shell loads.")
@click.option("--dry-run", is_flag=True, help="With --install: print what would be written.")
@click.pass_context
def completion(context: click.Context, shell: str, install: bool, dry_run: bool) -> None:
    """Print or install the completion script for a shell."""
    if dry_run and not install:
        raise click.UsageError("--dry-run requires --install.")
    kind = get_completion_class(shell)
    assert kind is not None, "click completes every shell of SHELLS"
    script = kind(context.find_root().command, {}, NAME, VARIABLE).source()
    if not install:
        click.echo(script)
        return
    found = SHELLS[shell]
    path = found.place(settings.environment())
    if dry_run:
        say(f"Would write {len(script.encode())} bytes to {path}.")
        return
    try:
        _put(path, script)
    except OSError as error:
        raise click.ClickException(f"{error.filename or path}: {error.strerror}.") from error
    say(f"Written: {path}. {found.then.format(folder=path.parent)}")


def _put(path: Path, script: str) -> None:
    """Writes a file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        fresh = Path(file.name)
        try:
            file.write(script)
            file.flush()
            fresh.chmod(0o644)
            os.replace(fresh, path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
