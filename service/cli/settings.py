"""`rung config`: the settings in force, what each means, and an example file."""

import sys

import click

from service import settings
from service.cli import config as file
from service.settings import explanation

FAULTY = 2


@click.command("config")
@click.option("--explain", is_flag=True, help="Say where each value comes from and what it means.")
@click.option("--example", is_flag=True, help="Print a file of all settings with their defaults.")
@click.option("--check", is_flag=True, help="Print nothing but what is wrong.")
def config(explain: bool, example: bool, check: bool) -> None:
    """Print the settings that `rung serve` and gunicorn would start with; secrets are hidden.

    --explain adds what reading commands take from the environment and the configuration file.
    Exits with 2 where a setting or that file cannot be used, after naming every fault.
    """
    if explain + example + check > 1:
        raise click.UsageError("Give only one of --explain, --example and --check.")
    if example:
        click.echo(explanation.example_file(), nl=False)
        return
    found, faults = settings.examine()
    of_commands, more = _of_commands()
    faults += more
    if explain:
        click.echo("\n\n".join([*map(explanation.explained, found), *of_commands]))
    elif not check:
        for each in found:
            click.echo(explanation.line(each))
    for line in explanation.strangers(settings.environment()):
        click.echo(f"Warning: {line}", err=True)
    for line in faults:
        click.echo(f"Error: {line}", err=True)
    sys.exit(FAULTY if faults else 0)


def _of_commands() -> tuple[list[str], list[str]]:
    """What reading commands go by, each explained, and what is wrong with their file."""
    try:
        values = file.load()
    except file.ConfigError as error:
        return [], str(error).splitlines()
    told = [f"Of reading commands, by {values.path} where the environment says nothing:"]
    for each in values.found:
        name = each.key.variable or "no variable"
        told.append(
            f"{each.key.name} ({name}) = {each.shown}   ({each.origin})\n"
            f"  {each.key.help}\n  such as {each.key.example}"
        )
    return told, []
