"""`rung vectors`: builds the vectors that search by meaning needs."""

import os
import stat
import sys
from functools import partial
from threading import Event, Thread

import click

from evidence.errors import EvidenceError
from service import settings
from service.cli.output import Meter, counted, say
from service.cli.source import store_option
from service.cli.store import required, stop_on_signals, teaching
from service.meaning.building import Progress
from service.meaning.building import build as build_vectors
from service.meaning.opening import required_encoder
from service.place import Place

#: The builder yields to everything that answers requests.
NICENESS = 15


@click.group()
def vectors() -> None:
    """Build the vectors that search by meaning needs."""


@vectors.command()
@click.option(
    "--watch", is_flag=True, help="Build again whenever records change, until interrupted."
)
@store_option
def build(store: Place, watch: bool) -> None:
    """Embed all texts that have no vector yet.

    The command covers the store and the snapshot that RUNG_PAPERS_DB names. You can interrupt the
    build at any time: the next build embeds only the remaining texts. A server builds vectors
    automatically, unless its store is read-only or in PostgreSQL.
    """
    with teaching():
        configuration = settings.load()
        encoder = required_encoder(configuration)
    papers = None
    if configuration.papers_db and not configuration.papers_url:
        from service.meaning.papers import filled_store
        from service.papers.snapshot_library import Papers

        papers = partial(filled_store, Papers(configuration.papers_db), configuration.store.parent)
    location = None if papers and not store.exists() else required(store)
    os.nice(NICENESS)
    stop = stop_on_signals()
    with teaching():
        if watch:
            _stop_with_parent(stop)
            build_vectors(location, encoder, stop, _say_complete, _say_error, papers)
            return
        with Meter("vectors", "vectors a second") as meter:

            def show(progress: Progress) -> None:
                rate = progress.vectors / (meter.seconds() or 1)
                count = f"{progress.records:,} of {progress.total:,} records, {rate:.0f}"
                meter.to(progress.records, progress.total, count)

            build_vectors(location, encoder, stop, show, papers=papers)


def _stop_with_parent(stop: Event) -> None:
    """Ends the builder of a server with it: the server has the other end of standard input."""

    def wait() -> None:
        sys.stdin.buffer.read()
        stop.set()

    if stat.S_ISFIFO(os.fstat(0).st_mode):
        Thread(target=wait, daemon=True).start()


def _say_complete(progress: Progress) -> None:
    if progress.vectors and progress.records == progress.total:
        say(f"vectors: {counted(progress.total, 'record')} up to date")


def _say_error(error: EvidenceError) -> None:
    say(f"vectors: {error.message}")
