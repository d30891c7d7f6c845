"""`rung store copy`: a store into a new file or an empty database."""

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

#: Seconds within which a store is read: a week.
READ_SECONDS = 604_800


@click.group()
def store() -> None:
    """Copy a store into a file or a database."""


@store.command("copy")
@click.argument("source", type=PlaceType())
@click.argument("target", type=PlaceType())
def copy(source: Place, target: Place) -> None:
    """Copy the store SOURCE into TARGET: each a path, or the URL of a PostgreSQL database.

    The copy has all records, changes, blobs, grants and packages, and the secret: tokens, cursors
    and bookmarks stay good. It is read back and compared with the source by count and digest before
    it can be seen. SOURCE is served meanwhile; what is written to it after the start is not copied.
    TARGET is a new file or an empty database.
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
