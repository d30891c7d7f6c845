"""`rung config`: the effective settings, their meaning, and an example file."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service import settings
from service.place import Place
from service.cli import config as file
from service.cli.output import say
from service.settings import explanation
from service.records.sqlite.checkup import Absent, Foreign, Unreadable, recognise

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
    use. Exits with 2 after listing all errors if a setting, the file or the store is invalid. A
    missing store is reported but is not an error.
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
    note, fault = _of_store({each.setting.name: each.value for each in effective})
    for line in [*explanation.strangers(settings.environment()), *note]:
        say(f"Warning: {line}")
    faults += fault
    for line in faults:
        say(f"Error: {line}")
    sys.exit(FAULTY if faults else 0)


def _of_store(values: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(warnings, errors) of the store."""
    path: Place = values["store"]
    if values["store_url"] or not isinstance(path, Path):
        return [], []
    try:
        recognise(path)
    except Absent:
        others = any(values[name] for name in ("upstream_url", "papers_db", "papers_url"))
        warning = f"RUNG_STORE: {path} does not exist. Records are served once it does."
        return ([], []) if others else ([warning], [])
    except Foreign as error:
        return [], [f"RUNG_STORE: {path} is not a Rung store: {error}."]
    except Unreadable as error:
        return [f"RUNG_STORE: {path} cannot be served: {error}."], []
    return [], []


def _of_commands() -> tuple[list[str], list[str]]:
    """The effective values of reading commands, and the errors of their configuration file."""
    try:
        values = file.load()
    except file.ConfigError as error:
        return [], str(error).splitlines()
    lines = [f"For commands that read, from {values.path} unless set in the environment:"]
    for each in values.found:
        name = each.key.variable or "no variable"
        lines.append(
            f"{each.key.name} ({name}) = {each.shown}   ({each.origin})\n  {each.key.help}\n  "
            f"for example {each.key.example}"
        )
    return lines, []
