"""`rung store copy`: copies a store to a new file or an empty database."""

from collections import Counter
from contextlib import closing

import click

from service.cli.source import PlaceType
from service.cli.output import say
from service.cli.progress import ROWS_BETWEEN_LOOKS, Meter
from service.cli.store import required, teaching
from service.place import Place
from service.records import copying
from service.records.opening import new_store, open_reader

#: The time limit for reading a store, in seconds: a week.
READ_SECONDS = 604_800


@click.group()
def store() -> None:
    """Copy a store to a file or a database."""


@store.command("copy")
@click.argument("source", type=PlaceType())
@click.argument("target", type=PlaceType())
def copy(source: Place, target: Place) -> None:
    """Copy the store SOURCE to TARGET. Each is a path or the URL of a PostgreSQL database.

    The copy includes all records, changes, blobs, grants and packages, and the secret, so tokens,
    cursors and bookmarks remain valid. Rung reads the copy back and compares it with SOURCE by row
    count and SHA-256 before the copy becomes visible. SOURCE can be served during the copy; changes
    after the start are not copied. TARGET must be a new file or an empty database.
    """
    with teaching(), closing(open_reader(required(source))) as reader:
        with new_store(target) as writer:
            with Meter(
                str(target), "rows copied, indexed or verified"
            ) as meter, writer.transaction():
                done = Counter[str]()

                def on_row(what: str) -> None:
                    done[what] += 1
                    if done[what] % ROWS_BETWEEN_LOOKS == 0:
                        meter.to(done.total(), None)

                with reader.snapshot(READ_SECONDS) as snapshot:
                    given = copying.fill(snapshot, writer, on_row)
                copying.complete(writer, given, on_row)
            writer.finish()
    counts = ", ".join(f"{count} {part}" for part, count in given.counts.items())
    say(f"Rows copied and verified: {counts}. SHA-256 {given.hash.hexdigest()}.")
    say(f"Serve it with: RUNG_STORE={target}")
