"""Where a command reads records from: the store, a PDPP resource server, or a running Rung.

`source_options` gives a command the options and passes it a `Source`; `open_session` opens it.
"""

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from secrets import token_bytes
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from evidence.errors import UNKNOWN_TOKEN, Forbidden, InvalidRequest, Unauthenticated
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service import bootstrap, credentials, settings
from service.bootstrap import Services
from service.cli import config
from service.cli.store import say, store_option
from service.clients import TOKEN_VARIABLE
from service.operations.base import Session
from service.upstreams.http import HttpResourceServer
from service.upstreams.origin import Origin
from service.upstreams.remote_authority import RemoteAuthority

#: What a running Rung answers at; people copy these addresses.
ENDPOINTS = ("/mcp/papers", "/papers/v1", "/mcp", "/v1")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
#: The token `rung demo` keeps beside its store.
DEMO_TOKEN = "demo-token"

#: The sources, and where they may be named; the earlier comes first.
NAMES = ("url", "provider_url", "store")
LEVELS = (
    ParameterSource.COMMANDLINE,
    ParameterSource.ENVIRONMENT,
    ParameterSource.DEFAULT_MAP,
)


class NoToken(Unauthenticated):
    """No token was given. `options` are the words that would do, where one is at hand."""

    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where to read from. `words` are the options that say so on a command line, no token."""

    store: Path
    url: str | None = None
    provider_url: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    words: tuple[str, ...] = ()

    @property
    def server(self) -> str | None:
        """The address of the server that is asked, in one spelling and without secrets."""
        with suppress(InvalidRequest):
            if self.url is not None:
                return rung_url(self.url)
            if self.provider_url is not None:
                return credentials.provider_url(self.provider_url)
        return None


_OPTIONS = (
    click.option(
        "--url", envvar="RUNG_URL", help="A running Rung to read from; RUNG_URL names it too."
    ),
    click.option(
        "--provider-url",
        envvar="RUNG_UPSTREAM_URL",
        help="A PDPP resource server to read from; RUNG_UPSTREAM_URL names it too.",
    ),
    store_option,
    click.option(
        "--token",
        envvar=TOKEN_VARIABLE,
        help=f"The token. Others on this machine may see it here: better in {TOKEN_VARIABLE}.",
    ),
    click.option("--token-file", type=click.Path(path_type=Path), help="A file with the token."),
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that name a source; the command takes it as `source`."""

    @click.pass_context
    @wraps(command)
    def taking(context: click.Context, /, **given: Any) -> Any:
        told = {name: given.pop(name) for name in (*NAMES, "token", "token_file")}
        return context.invoke(command, source=_chosen(context, told), **given)

    found: Callable[..., Any] = taking
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def _chosen(context: click.Context, told: dict[str, Any]) -> Source:
    """One source: the command line comes before the environment, that before configuration."""
    given = context.get_parameter_source
    typed = [name for name in told if given(name) is ParameterSource.COMMANDLINE]
    if len([name for name in typed if name in NAMES]) > 1:
        raise click.UsageError("Give only one of --url, --provider-url and --store.")
    for name in ("url", "provider_url"):
        if name in typed and not told[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is empty. Give an address.")
    if "token" in typed and "token_file" in typed:
        raise click.UsageError("Give only one of --token and --token-file.")
    named = [name for level in LEVELS for name in NAMES if given(name) is level and told[name]]
    chosen = named[0] if named else "store"
    for name in ("token", "token_file"):
        by_file = given(name) is ParameterSource.DEFAULT_MAP
        if by_file and named and not config.is_of(context, chosen, told[chosen]):
            told[name] = None
    words = [
        word
        for name in (*NAMES, "token_file")
        if name in typed
        for word in (f"--{name.replace('_', '-')}", str(told[name]))
    ]
    by_file = "token_file" in typed or told["token"] is None
    return Source(
        store=told["store"],
        url=told["url"] if chosen == "url" else None,
        provider_url=told["provider_url"] if chosen == "provider_url" else None,
        token=None if by_file else told["token"],
        token_file=told["token_file"] if by_file else None,
        words=tuple(words),
    )


def open_session(source: Source, *, seconds: float = BUDGETS.upstream_seconds) -> Session:
    """A session on the source; `seconds` are for all that is asked of another server.

    Raises `NoToken`, `InvalidRequest` for a source that cannot be, and what the source says.
    """
    return opener(source)(seconds)


def opener(source: Source) -> Callable[[float], Session]:
    """Opens sessions on the source, for those who ask often: each has seconds of its own.

    Raises what `open_session` does, here or there.
    """
    refuse_owners()
    token = given_token(source.token_file, source.token)
    if source.url is not None:
        return _running(rung_url(source.url), token)
    if source.provider_url is not None:
        return _provider(source.provider_url, token)
    return _store(source, token)


def _running(base: str, token: str | None) -> Callable[[float], Session]:
    if token is None:
        raise _no_token("Ask the owner for one.")
    origin, known, key = Origin(base), token, token_bytes(32)

    def open(seconds: float) -> Session:
        return Session(HttpResourceServer(origin, known, Deadline.after(seconds)), base, key)

    return open


def _provider(url: str, token: str | None) -> Callable[[float], Session]:
    """A PDPP resource server, with the token `pdpp connect` keeps where none is given."""
    provider = credentials.provider_url(url)
    if token is None:
        root = Path(settings.environment().get("PDPP_CACHE_ROOT", ".pdpp"))
        path = credentials.cache_file(root, provider)
        token = credentials.from_cache(path, provider, datetime.now(UTC))
        warn_of(path)
    authority, known, key = RemoteAuthority(Origin(provider), reserved=None), token, token_bytes(32)

    def open(seconds: float) -> Session:
        return Session(authority.open(known, Deadline.after(seconds)), fence_key=key)

    return open


def _store(source: Source, token: str | None) -> Callable[[float], Session]:
    store = source.store
    check_store(store)
    if token is None:
        raise missing_token(store)
    found = services(store=store)

    def open(seconds: float) -> Session:
        try:
            return found.open_session(token)
        except Unauthenticated as error:
            if error.code == UNKNOWN_TOKEN:
                error.message = f"The token is not known in {store}."
            else:
                error.message = error.message.removesuffix(" Ask for a new one.")
            error.message += f" Make one with {_making(store)}."
            raise

    return open


def _making(store: Path) -> str:
    """The command that makes a token, for somebody to fill in."""
    create = shlex.join(["rung", "grant", "create", "--store", str(store)])
    return f"`{create} --connection ID --label NAME`"


def check_store(store: Path) -> None:
    """Raises `InvalidRequest` where there is no store."""
    if not store.exists():
        raise InvalidRequest(f"{store} is not there. Fill it first: rung import, or rung demo.")


def missing_token(store: Path) -> NoToken:
    """What to do where a store is there and no token was given."""
    make = f"Make one with {_making(store)} "
    demo = store.parent / DEMO_TOKEN
    if not demo.exists():
        return _no_token(f"{make}and")
    error = _no_token(f"{make}and", f" The token of the demo is kept in {demo}.")
    error.options = ("--token-file", str(demo))
    return error


def _no_token(how: str, more: str = "") -> NoToken:
    joint = "put" if how.endswith("and") else "Put"
    return NoToken(
        "There is no token.",
        hint=f"{how} {joint} it into {TOKEN_VARIABLE} or the file of --token-file.{more}",
    )


def rung_url(text: str) -> str:
    """The address of a running Rung, of whichever of its endpoints is given.

    http where a host of this machine is given without a scheme. Raises `InvalidRequest`.
    """
    host = urlsplit(f"//{text}").netloc.rpartition("@")[2]
    if "://" not in text and (host.rpartition(":")[0] or host) in LOCAL_HOSTS:
        text = f"http://{text}"
    found = credentials.provider_url(text)
    return next((found.removesuffix(end) for end in ENDPOINTS if found.endswith(end)), found)


def services(**source: Path) -> Services:
    """The services over one source, whatever else the environment names."""
    others = ("upstream_url", "store_url", "papers_db", "papers_url")
    alone: dict[str, Any] = {**dict.fromkeys(others), "papers_tokens": ()}
    found = replace(settings.load(), **{**alone, **source})
    return bootstrap.build(found)


def given_token(file: Path | None, text: str | None) -> str | None:
    """The token of a file or of a text; None where there is neither."""
    if file is not None:
        token = credentials.from_file(file)
        warn_of(file)
        return token
    if not text:
        return None
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("token") if context else None
    typed = source is ParameterSource.COMMANDLINE
    return credentials.from_text(text, "--token" if typed else TOKEN_VARIABLE)


def refuse_owners() -> None:
    """Raises `Forbidden` where the environment holds an owner's credential."""
    environ = settings.environment()
    for name in settings.OWNER_VARIABLES:
        if environ.get(name):
            raise Forbidden(
                f"{name} holds an owner credential, which is refused.",
                hint=f"Unset it, and put a client token into {TOKEN_VARIABLE}.",
            )


def warn_of(path: Path) -> None:
    """Says so on stderr where others can read a file with a token."""
    warning = credentials.exposure(path)
    if warning:
        note(f"Warning: {warning}")


def note(line: str) -> None:
    """A line for the person, whether or not anybody reads it."""
    with suppress(OSError):
        say(line)
