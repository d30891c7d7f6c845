"""`rung stdio`: MCP over standard input and output, for clients that start their own servers."""

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from evidence import errors
from evidence.errors import EvidenceError, InvalidRequest
from evidence.limits import BUDGETS
from evidence.version import VERSION
from service import credentials, settings
from service.bootstrap import rendering_pool
from service.place import Place
from service.cli import tokens
from service.cli.source import PATH, explicit_names, overriding, store_option
from service.cli.opening import read_token, note, provider_opener, refuse_owners, services
from service.cli.opening import store_opener
from service.credentials import TOKEN_VARIABLE
from service.mcp.surface import PapersSurface, RecordsSurface, Surface
from service.mcp.stdio import serve, take_stdout

#: Exit codes, after sysexits.h.
WRONG_USAGE, NO_PERMISSION, NOT_CONFIGURED = 64, 77, 78


class Command(click.Command):
    """Exits with 64 after a usage error."""

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except click.UsageError as error:
            error.show()
            sys.exit(WRONG_USAGE)


#: A surface with its session opener and its display name.
Served = tuple[Surface, Callable[[], Any], str]


@click.command(cls=Command)
@store_option
@click.option(
    "--provider-url",
    envvar="RUNG_UPSTREAM_URL",
    help="The URL of a PDPP resource server to use instead of a store. Also read from "
    "RUNG_UPSTREAM_URL.",
)
@click.option(
    "--papers", type=PATH, help="A papers snapshot to serve instead of records, without a token."
)
@click.option(
    "--cache-root",
    type=PATH,
    envvar="PDPP_CACHE_ROOT",
    help="The folder with the credentials of `rung login` and `pdpp connect`. Also read from "
    "PDPP_CACHE_ROOT. Default: rung in XDG_DATA_HOME or ~/.local/share, or .pdpp if only .pdpp has "
    "credentials for the server.",
)
@click.option(
    "--token-file",
    type=PATH,
    help="A file that contains the token. Without this option, the command uses the token in "
    "RUNG_TOKEN or else the saved credentials.",
)
@click.pass_context
def stdio(
    context: click.Context,
    store: Place,
    provider_url: str | None,
    papers: Path | None,
    cache_root: Path | None,
    token_file: Path | None,
) -> None:
    """Serve MCP on standard input and output, for clients that start their own server process.

    Standard output carries only protocol messages. The exit code is 0 when the input ends,
    64 after a usage error, 77 if the token is an owner's credential or gives no read access, and
    78 if there is no usable token.
    """
    with _exits(), take_stdout() as out:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(0))
        refuse_owners()
        if len(explicit_names(context) & {"store", "provider_url", "papers"}) > 1:
            raise InvalidRequest("Use only one of --store, --provider-url and --papers.")
        chosen = overriding(context, context.params, ("provider_url", "store"))
        if papers is not None:
            surface, open_session, name = _papers(papers)
        elif provider_url and chosen == "provider_url":
            surface, open_session, name = _provider(provider_url, cache_root, token_file)
        else:
            surface, open_session, name = _store(store, token_file)
        note(f"rung {VERSION} serves {name}. It reads one MCP message per line.")
        serve(surface, open_session, sys.stdin.buffer, out)


def _store(path: Place, token_file: Path | None) -> Served:
    token = read_token(token_file, settings.environment().get(TOKEN_VARIABLE))
    open_session = store_opener(path, token)
    open_session(BUDGETS.start_seconds)
    name = f"the records of {path}"
    return RecordsSurface(), lambda: open_session(BUDGETS.upstream_seconds), name


def _provider(url: str, cache_root: Path | None, token_file: Path | None) -> Served:
    provider = credentials.provider_url(url)
    token = read_token(token_file, settings.environment().get(TOKEN_VARIABLE))
    open_session = provider_opener(
        provider, token, cache_root or tokens.root(provider), rendering_pool()
    )
    try:
        open_session(BUDGETS.start_seconds)
    except (errors.Unavailable, errors.TimedOut, errors.RateLimited) as error:
        note(f"{provider} has not checked the token yet. {error.message}")
    except (errors.Unauthenticated, errors.Forbidden) as error:
        error.hint = f"Get a client token: `{shlex.join(['pdpp', 'connect', provider])}`."
        raise
    name = f"the records of {provider}"
    return RecordsSurface(), lambda: open_session(BUDGETS.upstream_seconds), name


def _papers(path: Path) -> Served:
    if not path.exists():
        raise InvalidRequest(f"{path} does not exist. Name a snapshot with --papers.")
    library = services(papers_db=path)
    assert library.papers is not None, "a snapshot is named"
    status = library.papers.status()
    if status["status"] != "ready":
        raise errors.Unavailable(f"{path} cannot be served: {status['refused']}")
    return PapersSurface(), lambda: library.open_papers(None), f"the papers of {path}"


@contextmanager
def _exits() -> Iterator[None]:
    """Prints errors that prevent serving to stderr, and exits with their code."""
    try:
        yield
    except settings.SettingsError as error:
        _leave(str(error), WRONG_USAGE)
    except OSError as error:
        _leave(f"{error.filename or 'Standard input or output'}: {error.strerror}.", 1)
    except EvidenceError as error:
        _leave(error.text, _code(error))


def _leave(message: str, code: int) -> NoReturn:
    note(f"Error: {message}")
    sys.exit(code)


def _code(error: EvidenceError) -> int:
    """The exit code of an error. An ended grant counts as a missing token, not a forbidden one."""
    if isinstance(error, InvalidRequest):
        return WRONG_USAGE
    if isinstance(error, errors.Forbidden) and error.code == errors.Forbidden.default_code:
        return NO_PERMISSION
    return NOT_CONFIGURED if isinstance(error, (errors.Forbidden, errors.Unauthenticated)) else 1
