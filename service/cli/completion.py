"""`rung completion`: prints or installs the completion script of a shell."""

from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from service import settings
from service.cli.output import say

NAME = "rung"
VARIABLE = "_RUNG_COMPLETE"


#: The last step for the user of each shell.
STEPS = {
    "bash": "Open a new shell; the package bash-completion loads the file.",
    "zsh": "Put `fpath=({folder} $fpath)` before `compinit` in ~/.zshrc, and open a new shell.",
    "fish": "Open a new shell.",
}


def _place(shell: str, environ: Mapping[str, str]) -> Path:
    """The file that a shell loads completions from."""
    data = Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    if shell == "zsh":
        return data / "zsh/site-functions" / f"_{NAME}"
    if shell == "fish":
        base = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return Path(base) / "fish/completions" / f"{NAME}.fish"
    named = environ.get("BASH_COMPLETION_USER_DIR")
    base = Path(named.split(":")[0]) if named else data / "bash-completion"
    return base / "completions" / NAME


@click.command()
@click.argument("shell", type=click.Choice(list(STEPS)))
@click.option("--install", is_flag=True, help="Write the script to the file that the shell loads.")
@click.option("--dry-run", is_flag=True, help="With --install: print what would be written.")
@click.pass_context
def completion(context: click.Context, shell: str, install: bool, dry_run: bool) -> None:
    """Print or install the completion script for a shell."""
    if dry_run and not install:
        raise click.UsageError("--dry-run requires --install.")
    kind = get_completion_class(shell)
    assert kind is not None, "click completes every shell of STEPS"
    script = kind(context.find_root().command, {}, NAME, VARIABLE).source()
    if not install:
        click.echo(script)
        return
    path = _place(shell, settings.environment())
    if dry_run:
        say(f"Would write {len(script.encode())} bytes to {path}.")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{error.filename or path}: {error.strerror}.") from error
    say(f"Written: {path}. {STEPS[shell].format(folder=path.parent)}")
