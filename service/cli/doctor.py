"""`rung doctor`: diagnoses the connection to a server, or the setup of this machine."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import orjson

from evidence.errors import EvidenceError
from service import credentials, settings
from service.cli import config
from service.cli.source import NEW_FILE, explicit_names
from service.doctor import local, remote, sources
from service.doctor.findings import Finding, summary

COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red", "skip": "bright_black"}


@click.command()
@click.argument("url", required=False)
@click.option("--token", envvar="RUNG_TOKEN", help="The client token. Also read from RUNG_TOKEN.")
@click.option(
    "--token-file", type=NEW_FILE, help="A file that contains the token. Safer than --token."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(url: str | None, token: str | None, token_file: Path | None, as_json: bool) -> None:
    """Check each step that a client takes and report failures with their fixes.

    With a URL, the command checks the host name, port, certificate, proxy, headers, token,
    protocol and tools, and runs one search. Without a URL, it checks the settings of this
    environment, the store, the papers snapshot, the disk and the sources, and then the server that
    RUNG_URL or the configuration file names.

    The exit code is 1 if a check fails, and otherwise 0.
    """
    if url is None and (token_file or "token" in explicit_names(click.get_current_context())):
        raise click.UsageError("--token and --token-file require the URL of a server.")
    if url is None:
        steps = _local_findings()
    else:
        steps = remote.look(url, _token(token, token_file), datetime.now(UTC))
    findings = list(steps) if as_json else _printed(steps)
    failed = any(finding.verdict == "FAIL" for finding in findings)
    if as_json:
        body = {"failed": failed, "steps": [finding.json() for finding in findings]}
        click.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
    sys.exit(1 if failed else 0)


def _local_findings() -> Iterator[Finding]:
    """Findings for this machine, and for the server that commands read from."""
    environ, fault, file = settings.environment(), "", None
    try:
        values = config.load()
    except config.ConfigError as error:
        fault, url, token = str(error), environ.get("RUNG_URL"), environ.get("RUNG_TOKEN")
    else:
        options = {entry.setting.name: entry.value for entry in values.effective}
        url, token = options["url"], options["token"]
        if url != values.written.get("url") and token == values.written.get("token"):
            token = None  # the token of the file is for the server of the file
        elif token is None and options["token_file"]:
            file = Path(options["token_file"])
    yield from local.look(environ, fault, reads=bool(url))
    with suppress(settings.SettingsError):
        store = settings.load(environ).store
        yield from sources.look(config.path_of(environ), store, environ)
    if url:
        yield from remote.look(url, _token(token, file), datetime.now(UTC))


def _token(text: str | None, file: Path | None) -> str | None:
    try:
        if file is not None:
            return credentials.from_file(file)
        return credentials.from_text(text, "The token") if text else None
    except EvidenceError as error:
        raise click.ClickException(error.text) from error


def _printed(steps: Iterable[Finding]) -> list[Finding]:
    """The findings, each printed as soon as it arrives."""
    findings = []
    for finding in steps:
        findings.append(finding)
        first, *details = finding.lines()
        colour = click.style(first[:5], fg=COLOURS[finding.verdict])
        click.echo("\n".join([colour + first[5:], *details]))
    click.echo(summary(findings))
    return findings
