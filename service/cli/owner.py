"""`rung owner`: creates a link or sets a passphrase to sign in to the owner's pages."""

import sys

import click

from service import settings
from service.access.entries import Entries
from service.access.owner import LINK_SECONDS, Owner
from service.access.sidecar import Sidecar
from service.cli.source import store_option
from service.cli.output import say
from service.cli.store import existing, teaching
from service.place import Place


@click.group()
def owner() -> None:
    """Sign in to the owner's pages (RUNG_SIGN_IN=on)."""


@owner.command()
@click.option(
    "--url",
    envvar="RUNG_URL",
    help="The address of the server. Also read from RUNG_URL; default: RUNG_PUBLIC_URL or PORT.",
)
@store_option
def link(store: Place, url: str | None) -> None:
    """Print a link that signs in one browser. It works once, for ten minutes."""
    with teaching():
        code = _owner(store).new_code()
        base = url or settings.load().base
    say(f"Open this in your browser within {LINK_SECONDS // 60} minutes, or enter the code {code}.")
    click.echo(f"{base.rstrip('/')}/owner/login?code={code}")


@owner.command()
@click.option(
    "--stdin", "from_stdin", is_flag=True, help="Read the passphrase from standard input."
)
@store_option
def passphrase(store: Place, from_stdin: bool) -> None:
    """Set the owner's passphrase and end all sessions."""
    if from_stdin:
        text = sys.stdin.readline().rstrip("\r\n")
    else:
        text = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
    with teaching():
        _owner(store).set_passphrase(text)
    say("The passphrase is set. Sign in at /owner.")


def _owner(store: Place) -> Owner:
    with existing(store):  # brings an older layout up to date
        return Owner(Entries(Sidecar(store)))
