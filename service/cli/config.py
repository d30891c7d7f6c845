"""Command defaults from a file, and `rung config`, which shows the defaults and all settings.

The file is `~/.config/rung/config.toml`, or the one that RUNG_CONFIG names. An environment variable
overrides its key in the file; the command line overrides both. The token in the file is sent to the
source that the file names, and to no other.

    url = "https://rung.example.com"
    token_file = "token"             # paths are relative to the folder of the file
"""

import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from service import credentials, place as places, settings
from service.cli.deferred import loaded
from service.cli.output import say
from service.clients.writing import content_of
from service.settings import InForce, Setting, explanation, parsing

VARIABLE = "RUNG_CONFIG"


class ConfigError(click.ClickException):
    """All errors in the file, one line each, with an example."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Values:
    """Effective keys; `written` are those of the file. `warning`: others can read its token."""

    path: Path
    effective: tuple[InForce, ...]
    written: Mapping[str, str]
    warning: str = ""


def _token(text: str) -> object:
    try:
        return credentials.from_text(text, "token")
    except EvidenceError:
        raise ValueError("must contain only a bearer token") from None


def _key(name: str, read: Callable[[str], object], *, secret: bool = False) -> Setting:
    """A key with its texts from `settings.toml`."""
    about = {"variable": "", **settings.TEXTS["keys"][name]}
    return Setting(name, default=None, read=read, secret=secret, **about)


KEYS = (
    _key("url", parsing.address),
    _key("provider_url", parsing.address),
    _key("store", places.read),
    _key("papers_db", places.path),
    _key("token", _token, secret=True),
    _key("token_file", places.path),
)
#: Only one of each pair can be set.
EXCLUSIVE = (("url", "provider_url"), ("token", "token_file"))
TOKENS = ("token", "token_file")
#: Only commands that have options for all of these sources use the token in the file.
SOURCES = frozenset({"RUNG_URL", "RUNG_UPSTREAM_URL", "RUNG_STORE"})


def path_of(environ: Mapping[str, str]) -> Path:
    """The path of the file."""
    folder = Path(environ.get("XDG_CONFIG_HOME") or "~/.config")
    path = Path(environ.get(VARIABLE) or folder / "rung" / "config.toml")
    try:
        return path.expanduser()
    except RuntimeError:  # no home folder
        return path


def load(environ: Mapping[str, str] | None = None) -> Values:
    """The values of the environment and the file, with their origins; raises `ConfigError`.

    A missing file is an error only if RUNG_CONFIG names it.
    """
    environ = settings.environment() if environ is None else environ
    path = path_of(environ)
    written = _read(path, required=bool(environ.get(VARIABLE)))
    effective = []
    for key in KEYS:
        value, origin = environ.get(key.variable), key.variable
        if not value:
            value, origin = written.get(key.name), str(path) if key.name in written else "default"
        effective.append(InForce(key, value, origin))
    exposed = credentials.exposure(path) if "token" in written else None
    warning = f"{exposed} The file contains a token." if exposed else ""
    return Values(path, tuple(effective), written, warning)


def apply(context: click.Context) -> None:
    """Makes the file's values the defaults of the called command only.

    A file that cannot be used ends the command with exit code 2.
    """
    values = load()
    if values.warning:
        say(f"Warning: {values.warning}")
    if values.written:
        called, group = str(context.invoked_subcommand), context.command
        assert isinstance(group, click.Group)
        context.default_map = {called: defaults(group.commands[called], values.written)}


def defaults(command: click.Command, written: Mapping[str, str]) -> dict[str, Any]:
    """`written` as the `default_map` of a command and those below it."""
    command = loaded(command)
    variables = {param.name: param.envvar for param in command.params}
    reads = SOURCES <= set(map(str, variables.values()))
    values: dict[str, Any] = {}
    for key in KEYS:
        for name, variable in variables.items() if key.name in written else ():
            if (reads and name == key.name) if key.name in TOKENS else variable == key.variable:
                values[str(name)] = written[key.name]
    if isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            if nested := defaults(subcommand, written):
                values[name] = nested
    return values


def file_names(context: click.Context, name: str, value: object) -> bool:
    """True if the file names this source. The file's token is never sent to another."""
    return str((context.default_map or {}).get(name)) == str(value)


def _read(path: Path, *, required: bool) -> dict[str, str]:
    """The values of the file."""
    text = _text(path)
    if text is None:
        if required:
            raise ConfigError(
                f"{VARIABLE} names {path}, which does not exist. Create the file, or unset the "
                "variable."
            )
        return {}
    try:
        table = tomllib.loads(text)
    except ValueError as error:
        problem, _, where = str(error).partition(" (at ")
        match = re.match(r"line (\d+)", where)
        line = int(match[1]) if match else max(1, len(text.splitlines()))
        raise ConfigError(f"{path}, line {line}: {problem}. {_LINE}") from None
    except RecursionError:
        raise ConfigError(f"{path}: a value is nested too deeply. {_LINE}") from None
    keys = {key.name: key for key in KEYS}
    values, faults = dict[str, str](), list[str]()
    for name, value in table.items():
        try:
            values[name] = _value(keys, name, value, path)
        except ValueError as error:
            faults.append(str(error))
    for first, second in EXCLUSIVE:
        if first in table and second in table:
            faults.append(f"{first} and {second} conflict. Remove one.")
    if faults:
        raise ConfigError("\n".join(f"{path}: {why}" for why in faults))
    return values


def _text(path: Path) -> str | None:
    """The text of the file, or None."""
    if str(path).startswith("~"):
        return None
    if str(path) == os.devnull:  # the usual way to disable the file
        return ""
    try:
        content = content_of(path, BUDGETS.config_file_bytes)
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None


def _value(keys: Mapping[str, Setting], name: str, value: Any, path: Path) -> str:
    """The text of one key; raises `ValueError` with a complete error message."""
    key = keys.get(name)
    if key is None:
        near = get_close_matches(name.lower().replace("-", "_"), keys, n=1)
        advice = f"Did you mean {near[0]}?" if near else f"Valid keys: {', '.join(keys)}."
        raise ValueError(f"Unknown key {name}. {advice}")
    such = f'for example {key.name} = "{key.example}"'
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a quoted string, {such}.")
    try:
        parsed = key.read(value)
        is_path = key.read in (places.read, places.path) and places.file_of(parsed) is not None
        return str(path.parent / parsed) if is_path else value
    except ValueError as error:
        raise ValueError(f"{name} {error}, {such}.") from None


_EXAMPLE = f'{KEYS[0].name} = "{KEYS[0].example}"'
_LINE = f'Each line must have the form KEY = "VALUE", such as {_EXAMPLE}.'


@click.command("config")
@click.option("--explain", is_flag=True, help="Also show the origin and meaning of each value.")
@click.option(
    "--example", is_flag=True, help="Print an example file with all settings and their defaults."
)
@click.option("--check", is_flag=True, help="Also open the store; print only warnings and errors.")
def config(explain: bool, example: bool, check: bool) -> None:
    """Show the effective settings of a server that you start with gunicorn. Secrets are hidden.

    `rung serve` also reads the configuration file, and starts one worker by default. --explain also
    shows what commands that read records take from the environment and the configuration file. If a
    setting or the file is invalid, or --check cannot open the store, the command lists all errors
    and exits with code 2.
    """
    if explain + example + check > 1:
        raise click.UsageError("Use only one of --explain, --example and --check.")
    if example:
        click.echo(explanation.example_file(), nl=False)
        return
    effective, faults = settings.examine()
    of_commands, file_faults = _of_commands()
    faults += file_faults
    missing = False
    if check and not faults:
        missing, of_store = _store_faults(effective)
        faults += of_store
    if explain:
        click.echo("\n\n".join([*map(explanation.explained, effective), *of_commands]))
    elif not check:
        for entry in effective:
            click.echo(explanation.line(entry))
    for line in explanation.strangers(settings.environment()):
        say(f"Warning: {line}")
    if missing:
        say("Warning: There is no store yet. Create one with rung import or rung demo.")
    for line in faults:
        say(f"Error: {line}")
    sys.exit(ConfigError.exit_code if faults else 0)


def _store_faults(effective: list[InForce]) -> tuple[bool, list[str]]:
    """(whether there is no store yet, as before a first import; the faults of a store)."""
    from service.doctor.local import store_finding

    finding = store_finding({entry.setting.name: entry.value for entry in effective})
    if finding is None or finding.verdict != "FAIL":
        return finding is None, []
    return False, [f"{finding.message.rstrip('.')}. {finding.change}"]


def _of_commands() -> tuple[list[str], list[str]]:
    """The effective values of reading commands, and the errors of their configuration file."""
    try:
        values = load()
    except ConfigError as error:
        return [], str(error).splitlines()
    lines = [f"Settings of commands that read records; the environment overrides {values.path}:"]
    for entry in values.effective:
        key, text = entry.setting, explanation.shown(entry)
        lines.append(
            f"{key.name} ({key.variable or 'no variable'}) = {text}   ({entry.origin})\n"
            f"  {key.help}\n  for example {key.example}"
        )
    return lines, []
