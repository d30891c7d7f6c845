"""`rung serve`: the service on this machine, by the same gunicorn that a host runs."""

import os
import socket
import sys
from pathlib import Path

import click

from service import settings
from service.cli.store import store_option

GUNICORN = ("-m", "gunicorn", "service.app:create_app()", "--config", "python:service.serving")
#: Name what is served where no file is here.
FETCHED = ("RUNG_STORE_URL", "RUNG_PAPERS_URL")


@click.command()
@click.option("--port", type=int, default=8000, envvar="PORT", show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--workers", type=int, default=1, envvar="WEB_CONCURRENCY", show_default=True)
@store_option
@click.option(
    "--provider-url",
    envvar="RUNG_UPSTREAM_URL",
    help="A PDPP resource server, served beside the store or alone; RUNG_UPSTREAM_URL names it "
    "too.",
)
@click.option(
    "--papers",
    type=click.Path(path_type=Path),
    envvar="RUNG_PAPERS_DB",
    help="A snapshot of papers, served beside the store or alone.",
)
def serve(
    port: int, host: str, workers: int, store: Path, provider_url: str | None, papers: Path | None
) -> None:
    """Serve until interrupted: records at /mcp and /v1, papers at /mcp/papers and /papers/v1."""
    run(store, papers, provider_url, host=host, port=port, workers=workers)


def run(
    store: Path,
    papers: Path | None,
    provider_url: str | None = None,
    *,
    host: str,
    port: int,
    workers: int,
    say: str = "",
) -> None:
    """Says something and becomes the server; never returns.

    Refuses where there is nothing to serve, and a port that is taken.
    """
    served = {
        name: str(path.absolute())
        for name, path in (("RUNG_STORE", store), ("RUNG_PAPERS_DB", papers))
        if path is not None and path.exists()
    }
    if papers is not None and "RUNG_PAPERS_DB" not in served:
        raise click.ClickException(f"{papers} is not there. Name a snapshot with --papers.")
    if provider_url:
        served["RUNG_UPSTREAM_URL"] = provider_url
    environ = settings.environment()
    if not served and not any(environ.get(name) for name in FETCHED):
        raise click.ClickException(
            f"{store} is not there. Fill it first: rung import, or rung demo."
        )
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise click.ClickException(
                f"Port {port} cannot be used: {error.strerror}. Choose another with --port or PORT."
            ) from error
    command = [sys.executable, *GUNICORN, "--bind", f"{host}:{port}", "--workers", str(workers)]
    if say:
        click.echo(say)
    sys.stdout.flush()
    changed = settings.environment(**served, PORT=str(port))
    os.execve(sys.executable, command, changed)
