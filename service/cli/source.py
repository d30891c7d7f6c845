"""Options that select a store or another source: a PDPP resource server or a Rung server.

`source_options` gives a command the options and passes it a `Source`; `opening` opens it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click
import orjson
from click.core import ParameterSource

from evidence.errors import InvalidRequest, Unauthenticated
from service import credentials, place, settings
from service.addresses import rung_url
from service.cli import config
from service.credentials import TOKEN_VARIABLE
from service.place import Place


class PlaceType(click.ParamType[Place]):
    """The click type of the place of a store; see `place`."""

    name = "file"

    def convert(self, value: Any, param: Any, ctx: Any) -> Place:
        try:
            location: Place = place.read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"it {error}.", param, ctx)
        if file := place.file_of(location):
            click.Path(dir_okay=False).convert(file, param, ctx)
        return location


def _default() -> Place:
    """The database that a host provides, or else the file in this folder."""
    provided = settings.environment().get("DATABASE_URL", "")
    return place.read(provided if provided.startswith(place.SCHEMES) else "var/rung.db")


#: Paths in options: any path, an existing file, and a file that may not exist yet.
PATH = click.Path(path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)

store_option = click.option(
    "--store",
    "store",
    type=PlaceType(),
    default=_default,
    envvar="RUNG_STORE",
    show_default="the database in DATABASE_URL, or else var/rung.db",
    help="The path of the store, or the URL of its database. Also read from RUNG_STORE.",
)


def read_json(path: Path) -> Any:
    """The value in a JSON file named by an option."""
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{path} is not JSON: {error}.") from error


#: The sources, and where they may be named, in order of precedence.
NAMES = ("url", "provider_url", "store")
LEVELS = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)


class NoToken(Unauthenticated):
    """No token was given. `options` would supply a known one."""

    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of records. `words` are its command-line options, without the token."""

    store: Place
    url: str | None = None
    provider_url: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    words: tuple[str, ...] = ()

    @property
    def server(self) -> str | None:
        """The normalized URL of the server, without secrets."""
        with suppress(InvalidRequest):
            if self.url is not None:
                return rung_url(self.url)
            if self.provider_url is not None:
                return credentials.provider_url(self.provider_url)
        return None


def explicit_names(context: click.Context) -> set[str]:
    """The parameters that were given on the command line."""
    origin_of = context.get_parameter_source
    return {name for name in context.params if origin_of(name) is ParameterSource.COMMANDLINE}


def overriding(
    context: click.Context, options: Mapping[str, Any], names: Sequence[str]
) -> str | None:
    """The one of these options that overrides the others; None if all have their defaults."""
    origin_of = context.get_parameter_source
    candidates = (
        name for level in LEVELS for name in names if origin_of(name) is level and options[name]
    )
    return next(candidates, None)


def explicit_words(context: click.Context, *names: str) -> tuple[str, ...]:
    """The words of these options that were given on the command line, with their values."""
    explicit, values = explicit_names(context), context.params
    pairs = [
        (f"--{name.replace('_', '-')}", str(values[name])) for name in names if name in explicit
    ]
    return tuple(word for pair in pairs for word in pair)


url_option = click.option(
    "--url", envvar="RUNG_URL", help="The URL of a running Rung server. Default: RUNG_URL."
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the source options; the command receives them as `source`."""

    @url_option
    @click.option(
        "--provider-url",
        envvar="RUNG_UPSTREAM_URL",
        help="The URL of a PDPP resource server to read from. Default: RUNG_UPSTREAM_URL.",
    )
    @store_option
    @click.option(
        "--token",
        envvar=TOKEN_VARIABLE,
        help="The token. Other users of this machine can see your command lines, so prefer "
        f"{TOKEN_VARIABLE}.",
    )
    @click.option("--token-file", type=PATH, help="A file that contains the token.")
    @click.pass_context
    @wraps(command)
    def taking(context: click.Context, /, **parameters: Any) -> Any:
        options = {name: parameters.pop(name) for name in (*NAMES, "token", "token_file")}
        return context.invoke(command, source=_chosen(context, options), **parameters)

    return taking


def _chosen(context: click.Context, options: dict[str, Any]) -> Source:
    """The one source: the command line overrides the environment, and that the configuration."""
    origin_of, explicit = context.get_parameter_source, explicit_names(context)
    if len(explicit & {*NAMES}) > 1:
        raise click.UsageError("Use only one of --url, --provider-url and --store.")
    for name in ("url", "provider_url"):
        if name in explicit and not options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is empty. Give an address.")
    if "token" in explicit and "token_file" in explicit:
        raise click.UsageError("Use only one of --token and --token-file.")
    overrides = overriding(context, options, NAMES)
    chosen = overrides or "store"
    for name in ("token", "token_file"):
        by_file = origin_of(name) is ParameterSource.DEFAULT_MAP
        if by_file and overrides and not config.file_names(context, chosen, options[chosen]):
            options[name] = None
    words = explicit_words(context, *NAMES, "token_file")
    by_file = "token_file" in explicit or options["token"] is None
    options["token" if by_file else "token_file"] = None
    options |= {name: None for name in ("url", "provider_url") if name != chosen}
    return Source(**options, words=words)
