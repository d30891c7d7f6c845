"""Commands of the owner: bring records into the store, and see what is there."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click
import orjson
from sqlite_utils import Database

from evidence.errors import EvidenceError
from service.cli.progress import Progress
from service.upstreams.store.formats import FORMATS, Source, detect
from service.upstreams.store.importer import Import, Rejected, run
from service.upstreams.store.ingest import Counts
from service.upstreams.store.intake import Refused
from service.upstreams.store.streams import connect
from service.upstreams.store.text_repair import Repair
from service.upstreams.store.writer import Writer, explain_locks, open_writer

REPORTED_FIELDS = 20

store_option = click.option(
    "--store",
    "store",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("var/rung.db"),
    envvar="RUNG_STORE",
    show_default=True,
    help="The store's file; RUNG_STORE names it too.",
)


@contextmanager
def teaching() -> Iterator[None]:
    """Prints what went wrong and what to do on stderr, and exits with 1."""
    try:
        yield
    except EvidenceError as error:
        said = f"{error.message} {error.hint}" if error.hint else error.message
        raise click.ClickException(said) from error
    except Refused as error:
        raise click.ClickException(str(error)) from error
    except sqlite3.Error as error:
        advice = "Check the free space and the permissions of its folder."
        raise click.ClickException(f"The store cannot be used: {error}. {advice}") from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'A file'}: {error.strerror}.") from error


def say(message: str) -> None:
    """A message for the person, on stderr."""
    click.echo(message, err=True)


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--connection", required=True, help="The id of the connection to import into.")
@click.option("--connector", help="What kind of source it is, such as gmail.")
@click.option("--label", help="What people call the connection.")
@click.option("--stream", help="The stream of rows that name none (default: the file's name).")
@click.option("--manifest", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by extension.")
@click.option("--strict", is_flag=True, help="Import nothing if any row is refused.")
@click.option("--suggest-roles", is_flag=True, help="Let inference propose title, text and time.")
@store_option
def import_(
    files: tuple[str, ...],
    connection: str,
    connector: str | None,
    label: str | None,
    stream: str | None,
    manifest: Path | None,
    form: str | None,
    strict: bool,
    suggest_roles: bool,
    store: Path,
) -> None:
    """Import NDJSON, JSON, CSV, TSV or mbox FILES; `-` is standard input.

    Importing a file again updates what changed and adds nothing twice. Rows of a stream without a
    primary key are known by a hash of their content.
    """
    with teaching():
        for name in files:
            _check_file(name, form)
    with teaching(), open_writer(store) as writer:
        task = Import(writer, connection, stream, suggest_roles, _show_manifest)

        def work() -> None:
            connect(writer, connection, connector_key=connector, label=label)
            if manifest is not None:
                task.declare(_read_json(manifest))
            for name in files:
                _import_file(task, name, form)

        try:
            counts = run(task, work, strict=strict)
        except Rejected as rejected:
            _report(task, rejected.counts)
            raise click.ClickException("--strict: nothing was imported.") from None
        _report(task, counts)


def _check_file(name: str, form: str | None) -> None:
    """Refuses a file that is not there or of no known format, before anything is written."""
    if form is None:
        detect(name)
    if name != "-":
        open(name, "rb").close()


def _import_file(task: Import, name: str, form: str | None) -> None:
    repair = Repair()
    with _open(name) as file:
        size = None if name == "-" else Path(name).stat().st_size
        progress = Progress(name, file, size)
        task.read(Source(name, form or detect(name), file, repair), on_row=progress.row)
        progress.close()
    if repair.count:
        say(f"{name}: replaced {repair.count} NULs or lone surrogates by U+FFFD.")


@contextmanager
def _open(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    with open(name, "rb") as file:
        yield file


def _show_manifest(document: dict[str, Any]) -> None:
    json = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    say(f"Inferred a manifest for {document['name']!r}; replace it with --manifest:\n{json}")
    if not document["primary_key"]:
        say("No primary key: rows without a key of their own are known by a hash of their content.")


def _read_json(path: Path) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{path} is not JSON: {error}.") from error


def _report(task: Import, counts: Counts) -> None:
    """The summary of an import, and what its owner should know."""
    for line, message in counts.refusals:
        say(f"line {line}: {message}")
    if counts.refused > len(counts.refusals):
        say(f"… and {counts.refused - len(counts.refusals)} more refused rows.")
    for name, fields in sorted(task.undeclared.items()):
        listed = ", ".join(sorted(fields)[:REPORTED_FIELDS])
        say(
            f"{name}: {len(fields)} fields are not in the manifest and cannot be read: {listed}. "
            "Declare them with --manifest."
        )
    words = ("new", "changed", "unchanged", "deleted", "refused")
    summary = ", ".join(f"{getattr(counts, word)} {word}" for word in words)
    repeated = f", {counts.repeated} repeated" if counts.repeated else ""
    say(f"{task.connection_id}: {summary}{repeated}.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def stats(store: Path, as_json: bool) -> None:
    """Count the connections, streams and records of the store."""
    with teaching(), existing(store) as writer:
        rows = list(Database(writer.db, use_counts_table=False).query(_STATS))
    if as_json:
        click.echo(orjson.dumps({"streams": rows}).decode())
        return
    for row in rows:
        click.echo("{connection_id}/{stream}: {records} records, {deleted} deleted".format(**row))
    connections = len({row["connection_id"] for row in rows})
    records = sum(row["records"] for row in rows)
    click.echo(f"{connections} connections, {len(rows)} streams, {records} records")


_STATS = """
SELECT connection_id, stream.name AS stream,
  count(*) FILTER (WHERE deleted = 0) AS records,
  count(*) FILTER (WHERE deleted = 1) AS deleted
FROM stream JOIN connection ON connection.id = stream.connection
LEFT JOIN record ON record.stream = stream.id
GROUP BY stream.id ORDER BY connection_id, stream.name
"""


@contextmanager
def existing(store: Path) -> Iterator[Writer]:
    """The store, which must be there."""
    if not store.exists():
        raise click.ClickException(
            f"There is no store at {store}. Fill one: rung import, rung demo."
        )
    with open_writer(store) as writer, explain_locks(store):
        yield writer
