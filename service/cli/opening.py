"""Opens the source of a command: a store, a PDPP resource server or a running Rung server.

Reading commands import this only when they run, so that help and completion are fast.
"""

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_bytes
from typing import Any

import click

from evidence.errors import UNKNOWN_TOKEN, Forbidden, InvalidRequest, Unauthenticated
from evidence.limits import BUDGETS
from evidence.work import Each, request_deadline, serial
from service import bootstrap, credentials, settings
from service.addresses import rung_url
from service.bootstrap import Services
from service.place import Place
from service.cli import tokens
from service.cli.output import say
from service.cli.source import NoToken, Source, explicit_names
from service.credentials import TOKEN_VARIABLE
from service.operations.base import Session
from service.sources.remote.server import HttpResourceServer
from service.sources.remote.origin import Origin
from service.sources.remote.remote_authority import RemoteAuthority

#: The file with the demo's token, next to its store.
DEMO_TOKEN = "demo-token"


def open_session(source: Source, *, seconds: float = BUDGETS.upstream_seconds) -> Session:
    """A session on the source; `seconds` is the time for all requests to another server.

    Raises `NoToken`, `InvalidRequest` for an impossible source, and the errors of the source.
    """
    return opener(source)(seconds)


def opener(source: Source) -> Callable[[float], Session]:
    """A function that opens sessions on the source, each with its own time limit.

    Both raise the errors of `open_session`.
    """
    refuse_owners()
    token = read_token(source.token_file, source.token)
    if source.url is not None:
        return _running(rung_url(source.url), token)
    if source.provider_url is not None:
        provider = credentials.provider_url(source.provider_url)
        return provider_opener(provider, token, tokens.root(provider))
    return _store(source.store, token)


def _running(base: str, token: str | None) -> Callable[[float], Session]:
    """A session on a running Rung, by default with the token that `rung login` saved."""
    root = tokens.root(base)
    if token is None and not credentials.cache_file(root, base).exists():
        login = shlex.join(["rung", "login", base])
        signs_in = tokens.has_sign_in(base)
        start = f"Run `{login}`, or ask" if signs_in else "Ask"
        raise _no_token(f"{start} the owner for a token. Put")
    origin, current, key = Origin(base), _current(base, token, root), token_bytes(32)

    def open(seconds: float) -> Session:
        server = HttpResourceServer(origin, current(), request_deadline(seconds))
        return Session(server, base, key, address=base)

    return open


def provider_opener(
    provider: str, token: str | None, root: Path, run_all: Each = serial
) -> Callable[[float], Session]:
    """A session on a PDPP resource server, by default with the token that `pdpp connect` saved."""
    current = _current(provider, token, root)
    authority, key = RemoteAuthority(Origin(provider), reserved=None), token_bytes(32)

    def open(seconds: float) -> Session:
        server = authority.open(current(), request_deadline(seconds))
        return Session(server, fence_key=key, each=run_all)

    return open


def _current(provider: str, token: str | None, root: Path) -> Callable[[], str]:
    """Returns the given token, or the saved one, refreshed when it has expired."""
    if token is not None:
        return lambda: token
    tokens.saved(provider, root)
    warn_of(credentials.cache_file(root, provider))
    return lambda: tokens.saved(provider, root)


def store_opener(store: Place, token: str | None) -> Callable[[float], Session]:
    """A session on a store; it ignores the seconds, because it answers at once."""
    if not store.exists():
        raise InvalidRequest(f"{store} does not exist. Create it with rung import or rung demo.")
    if token is None:
        error = _no_token(f"Create one with {_making(store)} and put")
        demo = store.parent / DEMO_TOKEN
        if demo.exists():
            error.hint = f"{error.hint} The demo's token is in {demo}."
            error.options = ("--token-file", str(demo))
        raise error
    store_services = services(store=store)
    return lambda seconds: store_services.open_session(token)


def _store(store: Place, token: str | None) -> Callable[[float], Session]:
    """The same for a command, whose error explains where to get a token."""
    opened = store_opener(store, token)

    def open(seconds: float) -> Session:
        try:
            return opened(seconds)
        except Unauthenticated as error:
            if error.code == UNKNOWN_TOKEN:
                error.message = f"{store} does not accept this token."
            else:
                error.message = error.message.removesuffix(" Ask for a new one.")
            error.message += f" Create a token with {_making(store)}."
            raise

    return open


def _making(store: Place) -> str:
    """The command that creates a token, with placeholders."""
    create = shlex.join(["rung", "grant", "create", "--store", str(store)])
    return f"`{create} --connection ID --label NAME`"


def _no_token(how: str) -> NoToken:
    hint = f"{how} it into {TOKEN_VARIABLE} or into a file for --token-file."
    return NoToken("A token is required.", hint=hint)


def services(**source: Place) -> Services:
    """The services for one source; others in the environment are ignored."""
    unused = ("upstream_url", "store_url", "papers_db", "papers_url")
    # A shell has no address, and its own processor.
    served = ("rate_limit_address", "rate_limit_failures", "work_seconds")
    alone: dict[str, Any] = {**dict.fromkeys((*unused, *served)), "papers_tokens": (), **source}
    return bootstrap.build(replace(settings.load(), **alone))


def read_token(file: Path | None, text: str | None) -> str | None:
    """The token from a file or from text; None if neither is given."""
    if file is not None:
        token = credentials.from_file(file)
        warn_of(file)
        return token
    if not text:
        return None
    context = click.get_current_context(silent=True)
    explicit = context is not None and "token" in explicit_names(context)
    return credentials.from_text(text, "--token" if explicit else TOKEN_VARIABLE)


def refuse_owners() -> None:
    """Raises `Forbidden` if the environment has an owner's credential."""
    environ = settings.environment()
    for name in settings.OWNER_VARIABLES:
        if environ.get(name):
            raise Forbidden(
                f"{name} is an owner credential, which Rung refuses.",
                hint=f"Unset it, and set {TOKEN_VARIABLE} to a client token.",
            )


def warn_of(path: Path) -> None:
    """Prints a warning to stderr if other users can read a file with a token."""
    warning = credentials.exposure(path)
    if warning:
        note(f"Warning: {warning}")


def note(line: str) -> None:
    """Prints a line to stderr; a closed stderr is ignored."""
    with suppress(OSError):
        say(line)
