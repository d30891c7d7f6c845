"""Commands of the owner: bring records into the store, and see what is there."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click
import orjson

from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from service.cli import coverage, output
from service.cli.options import store_option
from service.cli.output import say
from service.cli.progress import Progress
from service.importing.formats import FORMATS, detect
from service.importing.importer import Import, Rejected, run
from service.records.ingest import Counts
from service.records.intake import Refused
from service.records.sqlite.failures import explain_failures
from service.records.sqlite.rebuild import rebuild
from service.records.sqlite.stats import stream_counts
from service.records.sqlite.streams import connect, manifests_of
from service.importing.source import Source
from service.importing.text_repair import Repair
from service.records.sqlite.writer import Writer, explain_locks, open_writer

STOPPED = "Whole batches of rows are in the store; the same command goes on from there."
#: Objects made between two looks for cycles. An import makes many that live as long as their batch.
COLLECT_AFTER = 100_000


@contextmanager
def teaching() -> Iterator[None]:
    """Prints what went wrong and what to do on stderr, and exits with 1."""
    try:
        with explain_failures():
            yield
    except EvidenceError as error:
        said = f"{error.message} {error.hint}" if error.hint else error.message
        raise click.ClickException(said) from error
    except Refused as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'A file'}: {error.strerror}.") from error


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--connection", required=True, help="The id of the connection to import into.")
@click.option("--connector", help="What kind of source it is, such as gmail.")
@click.option("--label", help="What people call the connection.")
@click.option("--stream", help="The stream of rows that name none (default: the file's name).")
@click.option(
    "--key",
    multiple=True,
    metavar="FIELD",
    help="The field whose value is the id of a record, for a new stream; several make one id.",
)
@click.option(
    "--manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What the fields of the streams are, as JSON; otherwise one is proposed and shown.",
)
@click.option(
    "--write-manifest",
    "written",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the manifest of the connection's streams to this new file, to edit it.",
)
@click.option("--format", "form", type=click.Choice(tuple(FORMATS)), help="Default: by extension.")
@click.option("--strict", is_flag=True, help="Import nothing if any row is refused.")
@click.option("--suggest-roles", is_flag=True, help="Let inference propose title, text and time.")
@store_option
def import_(
    files: tuple[str, ...],
    connection: str,
    connector: str | None,
    label: str | None,
    stream: str | None,
    key: tuple[str, ...],
    manifest: Path | None,
    written: Path | None,
    form: str | None,
    strict: bool,
    suggest_roles: bool,
    store: Path,
) -> Counts:
    """Import FILES of any format that --format lists; `-` is standard input.

    Importing a file again updates what changed and adds nothing twice. Where neither --key nor the
    manifest names an id, nor a field `id`, `_id`, `key` or `uuid` is one, rows are told apart by
    their whole content. Rows that are refused are named; it exits with 1 where all are.
    """
    with teaching():
        for name in files:
            _check_file(name, form)
        if written is not None and written.exists():
            raise click.ClickException(f"{written} is there already. Name a new file.")
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    with teaching(), _writing(store) as writer:
        task = Import(writer, connection, stream, suggest_roles, key)

        def work() -> None:
            connect(writer, connection, connector_key=connector, label=label)
            if manifest is not None:
                task.declare(_read_json(manifest))
            try:
                for name in files:
                    _import_file(task, name, form)
            finally:
                if written is None:
                    _show_manifest(task)

        try:
            counts = run(task, work, strict=strict)
        except Rejected as rejected:
            _report(task, rejected.counts)
            raise click.ClickException("--strict: nothing was imported.") from None
        except KeyboardInterrupt:
            say("Stopped. " + ("Nothing was imported." if strict else STOPPED))
            raise
        if written is not None:
            _write_manifest(task, written)
        _report(task, counts)
        coverage.report(writer, connection)
    if counts.refused and counts.refused == counts.rows:
        raise click.ClickException(f"Nothing was imported: all {counts.refused} rows are refused.")
    return counts


@contextmanager
def _writing(store: Path) -> Iterator[Writer]:
    """The store; that of the command that calls this one, if it has opened it."""
    given = click.get_current_context().obj
    if isinstance(given, Writer):
        yield given
        return
    with open_writer(store) as writer:
        yield writer


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


def _show_manifest(task: Import) -> None:
    """The manifest that was proposed, as --manifest takes it."""
    if task.inferred:
        json = _manifest(task.inferred)
        say(f"{_inferred(task)}; to change it, give this with --manifest FILE:\n{json}")


def _write_manifest(task: Import, path: Path) -> None:
    """Writes the manifest of the connection to a file that is not there yet."""
    streams = [found.to_json() for found in manifests_of(task.writer, task.connection_id)]
    with path.open("x", encoding="utf-8") as file:
        file.write(f"{_manifest(streams)}\n")
    said = f"{_inferred(task)}; it is in {path}" if task.inferred else f"{path} has the manifest"
    say(f"{said}. To change it, edit the file and give it with --manifest.")


def _inferred(task: Import) -> str:
    return "Inferred a manifest for " + ", ".join(repr(found["name"]) for found in task.inferred)


def _manifest(streams: list[dict[str, Any]]) -> str:
    return orjson.dumps({"streams": streams}, option=orjson.OPT_INDENT_2).decode()


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
        listed = ", ".join(sorted(fields)[: BUDGETS.names_shown])
        say(
            f"{name}: {len(fields)} fields are not in the manifest and cannot be read: {listed}. "
            "Declare them with --manifest."
        )
    for name in sorted(task.keyless):
        say(
            f"{name}: no id field: rows are told apart by their whole content, so an edited row is "
            "a new one; --key FIELD names one, for a new stream (--stream NAME)."
        )
    words = ("new", "changed", "unchanged", "deleted", "refused")
    summary = ", ".join(f"{getattr(counts, word)} {word}" for word in words)
    repeated = f", {counts.repeated} repeated" if counts.repeated else ""
    say(f"{task.connection_id}: {summary}{repeated}.")
    if 0 < counts.refused < counts.rows:
        say(f"{counts.refused} of {counts.rows} rows were refused and are not in the store.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--reindex", is_flag=True, help="Rebuild the full-text indexes first.")
@store_option
def stats(store: Path, as_json: bool, reindex: bool) -> None:
    """Count the connections, streams and records of the store.

    Any store of an older version is brought up to date. --reindex repairs a damaged index; it takes
    about as long as the imports did, and the store is served meanwhile.
    """
    with teaching(), existing(store) as writer:
        if reindex:
            rebuild(writer)
            writer.finish()
        counts = stream_counts(writer)
    if as_json:
        click.echo(orjson.dumps({"streams": counts}).decode())
        return
    for count in counts:
        name = f"{count.connection_id}/{count.stream}"
        output.text(f"{name}: {count.records} records, {count.deleted} deleted")
    connections = len({count.connection_id for count in counts})
    records = sum(count.records for count in counts)
    click.echo(f"{connections} connections, {len(counts)} streams, {records} records")


@contextmanager
def existing(store: Path) -> Iterator[Writer]:
    """The store, which must be there."""
    if not store.exists():
        raise click.ClickException(
            f"There is no store at {store}. Fill one: rung import, rung demo."
        )
    with open_writer(store) as writer, explain_locks(store):
        yield writer
