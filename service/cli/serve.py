"""`rung serve`: runs the service on this machine, with the same gunicorn as in a deployment."""

import os
import shlex
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from service import settings
from service.place import Place, spelled
from service.cli.source import PATH, store_option
from service.settings import parsing
from service.records.engine.health import Depth
from service.records.opening import engine_of

GUNICORN = ("-m", "gunicorn", "service.app:create_app()", "--config", "python:service.serving")
#: Settings that name something to serve other than a local file.
FETCHED = ("RUNG_STORE_URL", "RUNG_PAPERS_URL")


port_option = click.option(
    "--port",
    type=click.IntRange(0, parsing.PORT_MAX),
    default=8000,
    envvar="PORT",
    show_envvar=True,
    show_default=True,
    help="The port to listen on.",
)


@click.command()
@port_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    envvar="WEB_CONCURRENCY",
    show_envvar=True,
    show_default=True,
    help="The number of worker processes. If you start gunicorn yourself, the default is one per "
    "core.",
)
@store_option
@click.option(
    "--provider-url",
    envvar="RUNG_UPSTREAM_URL",
    help="The URL of a PDPP resource server whose records are served, with or without a store. "
    "Also read from RUNG_UPSTREAM_URL.",
)
@click.option(
    "--papers",
    type=PATH,
    envvar="RUNG_PAPERS_DB",
    help="The path of a papers snapshot to serve, with or without a store. Also read from "
    "RUNG_PAPERS_DB.",
)
def serve(
    port: int, host: str, workers: int, store: Place, provider_url: str | None, papers: Path | None
) -> None:
    """Serve records at /mcp and /v1 and papers at /mcp/papers and /papers/v1, until interrupted."""
    say = _how_to_connect(store, host, port) if port else ""
    run(store, papers, provider_url, host=host, port=port, workers=workers, say=say)


def _how_to_connect(store: Place, host: str, port: int) -> str:
    """Where to open the server, and the commands that give access to its store."""
    address = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    url = f"http://{address}:{port}"
    lines = [f"Open {url}"]
    if store.exists():
        secret = engine_of(store).has_secret_location
        store_words = [] if secret else ["--store", str(store.absolute())]
        create = shlex.join(["rung", "grant", "create", *store_words])
        lines.append(f"Create a token for all records: {create}")
        if settings.environment().get("RUNG_SIGN_IN") == "on":
            link = shlex.join(["rung", "owner", "link", "--url", url, *store_words])
            lines.append(f"Sign in as the owner: {link}")
    return "\n".join(lines)


def run(
    store: Place,
    papers: Path | None,
    provider_url: str | None = None,
    *,
    host: str,
    port: int,
    workers: int,
    say: str = "",
    defaults: Mapping[str, str] | None = None,
) -> None:
    """Prints a message and becomes the server; never returns.

    Refuses to start without data, with a file that is not a store, or on a port in use. `defaults`
    are settings for variables that the environment does not set.
    """
    served = {
        name: spelled(path.absolute())
        for name, path in (("RUNG_STORE", store), ("RUNG_PAPERS_DB", papers))
        if path is not None and path.exists()
    }
    if papers is not None and "RUNG_PAPERS_DB" not in served:
        raise click.ClickException(f"{papers} does not exist. Name a snapshot with --papers.")
    if "RUNG_STORE" in served:
        _check_store(store)
    if provider_url:
        served["RUNG_UPSTREAM_URL"] = provider_url
    environ = settings.environment()
    if not served and not any(environ.get(name) for name in FETCHED):
        advice = "Create it with rung import or rung demo."
        raise click.ClickException(f"{store} does not exist. {advice}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = f"Cannot listen on port {port}: {error.strerror}."
            raise click.ClickException(f"{why} Choose another port with --port or PORT.") from error
    command = [sys.executable, *GUNICORN, "--bind", f"{host}:{port}", "--workers", str(workers)]
    if say:
        click.echo(say)
    sys.stdout.flush()
    changed = {**(defaults or {}), **settings.environment(**served, PORT=str(port))}
    os.execve(sys.executable, command, changed)


def _check_store(store: Place) -> None:
    """Refuses files that are not stores. Other problems are logged by the service."""
    state = engine_of(store).check(Depth.HEADER).state
    if state.problem == "store-foreign":
        why = f"{store} is not a Rung store: {state.message}."
        raise click.ClickException(f"{why} Name a store with --store.")
