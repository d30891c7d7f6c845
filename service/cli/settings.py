"""`rung config`: the effective settings, their meaning, and an example file."""

import sys
import click

from service import settings
from service.cli import config as file
from service.cli.output import say
from service.settings import explanation

FAULTY = 2


@click.command("config")
@click.option("--explain", is_flag=True, help="Show the origin and meaning of each value.")
@click.option(
    "--example", is_flag=True, help="Print an example file with all settings and their defaults."
)
@click.option("--check", is_flag=True, help="Print only errors.")
def config(explain: bool, example: bool, check: bool) -> None:
    """Show the effective settings of `rung serve` and gunicorn. Secrets are hidden.

    --explain adds the environment variables and the configuration file that reading commands
    use. Exits with 2 after listing all errors if a setting or the file is invalid. `rung doctor`
    checks the store.
    """
    if explain + example + check > 1:
        raise click.UsageError("Use only one of --explain, --example and --check.")
    if example:
        click.echo(explanation.example_file(), nl=False)
        return
    effective, faults = settings.examine()
    of_commands, more = _of_commands()
    faults += more
    if explain:
        click.echo("\n\n".join([*map(explanation.explained, effective), *of_commands]))
    elif not check:
        for each in effective:
            click.echo(explanation.line(each))
    for line in explanation.strangers(settings.environment()):
        say(f"Warning: {line}")
    for line in faults:
        say(f"Error: {line}")
    sys.exit(FAULTY if faults else 0)


def _of_commands() -> tuple[list[str], list[str]]:
    """The effective values of reading commands, and the errors of their configuration file."""
    try:
        values = file.load()
    except file.ConfigError as error:
        return [], str(error).splitlines()
    lines = [f"For commands that read, from {values.path} unless set in the environment:"]
    for each in values.found:
        key, shown = each.setting, explanation.shown(each)
        lines.append(
            f"{key.name} ({key.variable or 'no variable'}) = {shown}   ({each.origin})\n"
            f"  {key.help}\n  for example {key.example}"
        )
    return lines, []
