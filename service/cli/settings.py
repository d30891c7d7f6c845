"""`rung config`: the settings in force, what each means, and an example file."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service import settings
from service.cli import config as file
from service.cli.output import say
from service.settings import explanation
from service.records.sqlite.checkup import Absent, Foreign, Unreadable, recognise

FAULTY = 2


@click.command("config")
@click.option("--explain", is_flag=True, help="Say where each value comes from and what it means.")
@click.option("--example", is_flag=True, help="Print a file of all settings with their defaults.")
@click.option("--check", is_flag=True, help="Print nothing but what is wrong.")
def config(explain: bool, example: bool, check: bool) -> None:
    """Print the settings that `rung serve` and gunicorn would start with; secrets are hidden.

    --explain adds what reading commands take from the environment and the configuration file.
    Exits with 2 where a setting, that file or the store cannot be used, after naming every fault.
    A store that is not there is named: it may come later.
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
    note, fault = _of_store({each.setting.name: each.value for each in found})
    for line in [*explanation.strangers(settings.environment()), *note]:
        say(f"Warning: {line}")
    faults += fault
    for line in faults:
        say(f"Error: {line}")
    sys.exit(FAULTY if faults else 0)


def _of_store(values: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(what to know, what is wrong) of the store that would be served."""
    path: Path = values["store"]
    if values["store_url"]:
        return [], []
    try:
        recognise(path)
    except Absent:
        others = any(values[name] for name in ("upstream_url", "papers_db", "papers_url"))
        told = f"RUNG_STORE: {path} is not there. Nothing is served until it is."
        return ([], []) if others else ([told], [])
    except Foreign as error:
        return [], [f"RUNG_STORE: {path} is no store of Rung: {error}."]
    except Unreadable as error:
        return [f"RUNG_STORE: {path} cannot be served: {error}."], []
    return [], []


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
