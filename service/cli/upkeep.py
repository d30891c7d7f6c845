"""Owner commands for a store's upkeep: remove, replace, back up, restore, check and copy."""

import sys
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from service.place import Place
from service.cli import import_report, importing
from service.importing.run import replace_stream
from service.cli.source import FILE, NEW_FILE, PlaceType, store_option
from service.cli.output import FileRows, Meter, counted, say
from service.cli.store import active_grants, existing, required, teaching
from service.records import copying
from service.records.engine.health import Depth, Health
from service.records.opening import engine_of
from service.records.writing import StreamCount, Writing

MEGABYTE = 1_000_000
#: Options of `rung import` that `rung replace` does not share: it names the stream, replaces it
#: only if every row was imported, and has its own --manifest.
_NOT_SHARED = (
    *("connection", "connector", "label", "stream", "strict", "written", "dry_run"),
    "manifest",
)


YES = "Do not ask for confirmation."
yes_option = click.option("--yes", is_flag=True, help=YES)


def confirm(text: str, yes: bool) -> None:
    """Shows what will be done, and asks for confirmation on a terminal."""
    say(text)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("Nothing was done. Add --yes to skip the confirmation.")
    click.confirm("Continue?", abort=True, err=True)


@click.command()
@click.argument("name", metavar="CONNECTION[/STREAM]")
@yes_option
@store_option
def remove(name: str, yes: bool, store: Place) -> None:
    """Remove a stream, or a connection with all its streams, in one commit.

    A stream that an active grant covers is emptied but kept, so that readers of its changes see
    the deletions. You can keep serving the store while records are removed.
    """
    with teaching(), existing(store) as writer:
        streams = _streams(writer, name)
        grants = active_grants(writer, store)
        granted = {(row.connection_id, row.stream) for grant in grants for row in grant.streams}
        covered = [stream for stream in streams if (stream.connection_id, stream.stream) in granted]
        said = "; ".join(
            f"{stream.connection_id}/{stream.stream}: {counted(stream.records, 'record')}"
            + (" (the empty stream is kept for its grants)" if stream in covered else "")
            for stream in streams
        )
        confirm(f"This removes the following from {store}: {said}.", yes)
        with writer.staging([(entry.connection_id, entry.stream) for entry in streams]) as stage:
            stage.keep_manifests([(stream.connection_id, stream.stream) for stream in covered])
            stage.publish()
            count = sum(stream.records for stream in streams)
            say(f"{name}: {counted(count, 'record')} removed. {importing.ERASING}")
        writer.finish()


def _replace(
    target: str, paths: tuple[str, ...], infer: bool, yes: bool, store: Place, **options: Any
) -> None:
    """Replace a stream with the rows in PATHS, in one commit.

    Readers see either the old records or the new ones, and the changes feed lists the
    differences. If a row is refused, nothing is replaced. The stream keeps its manifest unless
    --manifest, --key or --infer is given.
    """
    if infer and not engine_of(store).infers_replacements:
        raise click.UsageError("--infer does not work with a database. Use --manifest.")
    with teaching(), existing(store) as writer:
        stream, *further = _streams(writer, target)
        if further or target == stream.connection_id:
            raise click.UsageError(f"Name one stream of {target!r}, as CONNECTION/STREAM.")
        files, old = ", ".join(paths), counted(stream.records, "record")
        confirm(f"This replaces {old} of {target} with the contents of {files}.", yes)
        plan = importing.plan_of(
            {**options, "connection": stream.connection_id, "stream": stream.stream}
        )
        keep = not (infer or options["manifest"] or options["key"])
        with (
            importing.found_files(paths, options) as parser,
            importing.Following(parser, plan, paths) as listener,
        ):
            report, replaced = replace_stream(writer, parser, plan, listener, keep_manifest=keep)
        import_report.of_skipped(report.left_out, detailed=options["detailed"])
        import_report.of_import(report, replaces=True)
        import_report.of_coverage(writer, report)
        if not replaced:
            importing.refuse_if_all_are(report)
            what = "Rows were refused" if report.counts.refused else "There are no rows"
            raise click.ClickException(f"{what}, so nothing was replaced.")


replace = click.Command(
    "replace",
    callback=_replace,
    help=_replace.__doc__,
    params=[
        click.Argument(["target"], metavar="CONNECTION/STREAM"),
        click.Option(
            ["--infer"],
            is_flag=True,
            help="Propose a new manifest. Not available for a store in PostgreSQL.",
        ),
        click.Option(["--yes"], is_flag=True, help=YES),
        click.Option(
            ["--manifest"],
            type=FILE,
            help="A JSON file that describes the stream. Without it, the stream keeps its manifest "
            "unless --key or --infer is given.",
        ),
        *(param for param in importing.import_.params if param.name not in _NOT_SHARED),
    ],
)


@click.command("backup")
@click.argument("file", type=NEW_FILE)
@yes_option
@store_option
def back_up(file: Path, yes: bool, store: Place) -> None:
    """Write a copy of the store, as it is now, to FILE.

    During the backup, you can serve the store and write to it. The copy contains all records,
    grants and packages, and the store's secret key: keep the copy as safe as the store itself. The
    copy does not contain sign-ins, passkeys, the owner's passphrase, mapped users or the counts of
    `rung log`. For a store in PostgreSQL, use pg_dump or `rung store copy` instead.
    """
    with teaching():
        if file.exists():
            confirm(f"This replaces {file}, which is from {_date(file)}.", yes)
        engine_of(store).back_up(file)
    say(f"{file}: {file.stat().st_size / MEGABYTE:.1f} MB. To restore it: rung restore {file}")


@click.command()
@click.argument("file", type=FILE)
@yes_option
@store_option
def restore(file: Path, yes: bool, store: Place) -> None:
    """Replace the store with the backup FILE.

    A running server uses the restored store from its next request on. Grants that you revoked
    after the backup stay revoked if the store that is replaced can still be read. Bookmarks of a
    changes feed (--changes-since) become invalid, except those from before the backup. For a store
    in PostgreSQL, use pg_restore or `rung store copy` instead.
    """
    lost = "Everything that was imported or granted since then is lost."
    with teaching():
        if store.exists():
            confirm(f"This replaces {store} with {file}, which is from {_date(file)}. {lost}", yes)
        engine_of(store).restore(file)
    say(f"{store} was restored from {file}.")


@click.command("check")
@click.option(
    "--repair",
    is_flag=True,
    help="If something is wrong, rebuild the indexes and counts from the records.",
)
@yes_option
@store_option
def check_(repair: bool, yes: bool, store: Place) -> None:
    """Check the store's file, counts and blobs, and compare its full-text index with the records.

    The command upgrades a store with an old schema version, then reads everything without a lock,
    and exits with 1 if something is wrong. In that case, --repair rebuilds the indexes and counts
    in a copy, which then replaces the store. For a store in PostgreSQL, only --repair works: it
    always rebuilds the indexes and counts in place.
    """
    engine = engine_of(store)
    with teaching():
        if engine.checks_contents:
            with existing(store):
                pass  # upgrades an older layout
        elif repair:
            confirm(f"This rebuilds the indexes and counts of {store}.", yes)
            engine.repair()
            return
        health = _report(store, engine.check(Depth.CONTENTS))
        if repair and (health.faults or health.hidden_streams):
            size = health.size_bytes / MEGABYTE
            confirm(f"This replaces {store} with a repaired copy ({size:.0f} MB).", yes)
            engine.repair()
            health = _report(store, engine.check(Depth.CONTENTS))
    if health.faults:
        advice = (
            "The rest cannot be repaired. Restore a backup: rung restore FILE."
            if repair
            else "To repair it, add --repair."
        )
        raise click.ClickException(f"{store} is damaged. {advice}")


def _report(store: Place, health: Health) -> Health:
    for fault in health.faults:
        say(fault)
    if not health.faults:
        say(f"{store} is sound.")
        if number := health.hidden_streams:
            say(
                f"Hidden streams: {number}. They belong to a `rung replace` or `rung remove` that "
                "is running or was interrupted. The next such command erases them, and so does "
                "`rung check --repair`."
            )
    return health


def _streams(writer: Writing, name: str) -> list[StreamCount]:
    """The streams of the connection with this name, or the one stream."""
    counts = writer.counts()
    whole = [f"{stream.connection_id}/{stream.stream}" for stream in counts]
    matches = [stream for stream in counts if stream.connection_id == name]
    matches = matches or [stream for stream, path in zip(counts, whole) if path == name]
    if not matches:
        near = [text for text in whole if text.endswith(f"/{name}")]
        near = near or get_close_matches(name, [entry.connection_id for entry in counts] + whole, 1)
        hint = f"Did you mean {near[0]!r}?" if near else "List the streams: rung stats."
        raise click.ClickException(f"The store has no connection or stream {name!r}. {hint}")
    return matches


def _date(file: Path) -> str:
    return f"{datetime.fromtimestamp(file.stat().st_mtime):%Y-%m-%d %H:%M}"


@click.group("store")
def stores() -> None:
    """Copy a store to a file or a database."""


@stores.command("copy")
@click.argument("source", type=PlaceType())
@click.argument("target", type=PlaceType())
def copy(source: Place, target: Place) -> None:
    """Copy a store. SOURCE and TARGET are each a path or the URL of a PostgreSQL database.

    The copy includes all records, changes, blobs, grants and packages, and the secret key, so
    grant tokens, cursors and bookmarks remain valid. Vectors, sync positions, sign-ins, passkeys,
    the owner's passphrase, mapped users and the counts of `rung log` are not copied. Rung reads the
    copy back and compares it with SOURCE by row count and SHA-256 before the copy becomes visible.
    You can serve SOURCE during the copy, but changes made after the copy began are not included.
    TARGET must be a new file or an empty database.
    """
    with teaching(), Meter(str(target), "rows copied, indexed or verified") as meter:
        rows = FileRows(meter, [None])
        copied = copying.copy(required(source), target, lambda step: rows.row(0))
    counts = ", ".join(f"{number} {part}" for part, number in copied.counts.items())
    say(f"Rows copied and verified: {counts}. SHA-256 {copied.hash.hexdigest()}.")
    say(f"To serve the copy, set RUNG_STORE={target}")
