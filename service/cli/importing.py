"""`rung import`: imports files into the store, with a preview of the streams and a report."""

import gc
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click
import orjson

from evidence.errors import InvalidRequest, Unavailable
from service.place import Place
from service.cli import import_report
from service.cli.source import FILE, NEW_FILE, read_json, store_option, explicit_names
from service.cli.output import FileRows, Meter, say
from service.cli.store import teaching
from service.importing import formats
from service.importing.formats import FORMATS, UNUSABLE
from service.importing.importer import Import, Undone
from service.importing.process.parsing import FileReport, Parser
from service.importing.run import import_files
from service.importing.source import Reading
from service.records.intake import Counts
from evidence.manifest import parse
from service.records.opening import engine_of
from service.records.writing.streams import connect, reindexes
from service.records.writing import Writing

NOTHING = "Nothing was imported."
STOPPED = "Complete batches of rows are in the store. Run the same command to continue."
#: Allocations between two garbage collections. An import makes many objects that live as long as
#: their batch.
COLLECT_AFTER = 100_000
SOME_REFUSED = 3
#: This much can be imported in one transaction within a second; more goes into a copy of the store.
AT_ONCE_BYTES = 65_536


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--connection", help="The connection to import into (default: the file's name).")
@click.option("--connector", help="What kind of source it is, such as gmail.")
@click.option("--label", help="A display name for the connection.")
@click.option("--stream", help="The stream of rows without one (default: the file's name).")
@click.option(
    "--key",
    multiple=True,
    metavar="FIELD",
    help="The field that identifies a record of a new stream; repeat it for several fields.",
)
@click.option(
    "--manifest",
    type=FILE,
    help="A JSON file that describes the streams (default: one is proposed and shown).",
)
@click.option(
    "--write-manifest",
    "written",
    type=NEW_FILE,
    help="Write the manifest of the connection's streams to this new file, to edit it.",
)
@click.option("--format", "form", type=click.Choice(tuple(FORMATS)), help="Default: detected.")
@click.option("--encoding", help="The encoding of text files (default: detected).")
@click.option("--delimiter", help="The character between the cells of a table (default: detected).")
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether tables have a header row (default: detected).",
)
@click.option("--replace-undecodable", is_flag=True, help="Store U+FFFD for undecodable bytes.")
@click.option(
    "--no-roles", is_flag=True, help="Do not propose fields for title, text, time and author."
)
@click.option(
    "--list-left-out",
    "detailed",
    is_flag=True,
    help="List each file that is left out, with its reason (default: count them by kind).",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and import nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if any row is refused.")
@store_option
def import_(
    paths: tuple[str, ...],
    connection: str | None,
    connector: str | None,
    label: str | None,
    stream: str | None,
    key: tuple[str, ...],
    manifest: Path | None,
    written: Path | None,
    form: str | None,
    no_roles: bool,
    detailed: bool,
    dry_run: bool,
    strict: bool,
    store: Place,
    **options: Any,
) -> Counts:
    """Import PATHS: files of any format that --format lists, folders, .gz, .zip; `-` is stdin.

    Importing a file again updates what changed and adds nothing twice. The id of a row is the
    field of --key or of the manifest, or else a field such as `id`, `_id`, `key` or `uuid`, or
    else its content. Exits with 3 if some rows are refused, with 1 if nothing is imported.
    """
    with (
        teaching(),
        _parser(paths, form, options, roles=not no_roles) as parser,
        _fewer_collections(),
        _import_target(store, dry_run) as target,
    ):
        _find(parser, detailed=detailed)
        listing = parser.listing
        if connection is None:
            connection = formats.connection_name(paths)
            say(f"Importing into the connection {connection!r}; --connection names another.")
        if written is not None and written.exists():
            raise click.ClickException(f"{written} already exists. Choose a new file.")
        for line in [*UNUSABLE, listing.recognized]:
            say(line)
        large = (AT_ONCE_BYTES if listing.size is None else listing.size) >= AT_ONCE_BYTES
        aside = large and (strict or dry_run)
        with _writing(target, connection, manifest, aside=aside) as (writer, aside):
            task = Import(writer, connection, stream, not no_roles, key)
            full = dry_run or sys.stderr.isatty()
            words = [*paths, "--connection", connection]
            task.on_repeated = partial(_ask, words)
            task.on_stream = lambda inferred, rows: import_report.preview(inferred, rows, full=full)

            def work() -> None:
                connect(writer, connection, connector_key=connector, label=label)
                if manifest is not None:
                    task.declare(read_json(manifest))
                _import_files(task, parser, detailed=detailed)
                if written is not None:
                    _write_manifest(task, written)

            _run(task, work, strict, dry_run, aside)
    _leave(task, strict, dry_run)
    return task.counts


def _find(parser: Parser, *, detailed: bool) -> None:
    """Finds the files; if there are none, raises an error, `detailed` with the files left out."""
    try:
        parser.find()
    except InvalidRequest:
        if detailed:
            import_report.of_skipped(parser.listing.left_out, detailed=True)
        raise


def _run(task: Import, work: Callable[[], None], strict: bool, dry: bool, aside: bool) -> None:
    """Imports and reports. Raises `Undone` to discard the import.

    A strict or dry import is one transaction, unless it is into a copy aside.
    """
    whole = strict or dry
    with (
        _stoppable(nothing=whole or aside),
        task.writer.transaction() if whole and not aside else nullcontext(),
    ):
        work()
        if undone := dry or strict and bool(task.counts.refused):
            raise Undone
    if not undone:
        try:  # every row is in the store already
            task.writer.finish()
        except Unavailable as error:
            say(f"Warning: every row is imported, but the indexes are not merged. {error.message}")
            say(f"{error.hint} The next import merges them.")
    import_report.report(task)
    if undone:
        raise Undone
    import_report.report_coverage(task.writer, task.connection_id)


def _ask(words: list[str], new: str, old: str, count: int, rows: int) -> None:
    """Asks whether to create a stream with rows of another; without a terminal, raises an error."""
    problem = f"{count} of the first {rows} rows of {new!r}, which is new, are in {old!r}."
    if sys.stdin.isatty() and click.confirm(f"{problem} Create {new!r} anyway?"):
        return
    context = click.get_current_context()
    if "store" in explicit_names(context):
        words = [*words, "--store", str(context.params["store"])]
    into_old, into_new = (
        shlex.join(["rung", "import", *words, "--stream", name]) for name in (old, new)
    )
    raise click.ClickException(
        f"{problem} Nothing of this file was imported. To add its rows to {old!r}: {into_old}\n"
        f"To create {new!r}: {into_new}"
    )


def _leave(task: Import, strict: bool, dry_run: bool) -> None:
    """Ends with the exit code of the import."""
    counts = task.counts
    if strict and counts.refused:
        raise click.ClickException("--strict: nothing was imported.")
    if dry_run:
        say("Nothing was imported: --dry-run.")
    elif not counts.rows and not task.writer.staged:
        raise click.ClickException("Nothing was imported: no record was found.")
    if counts.refused and counts.refused == counts.rows:
        raise click.ClickException(f"Nothing was imported: all {counts.refused} rows are refused.")
    if counts.refused:
        raise click.exceptions.Exit(SOME_REFUSED)


@contextmanager
def _import_target(store: Place, dry_run: bool) -> Iterator[Place]:
    """The store; for a dry run without one, a temporary store."""
    if not dry_run or store.exists():
        yield store
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "rung.db"


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Exempts existing objects from garbage collection, and makes collections less frequent."""
    threshold = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()


@contextmanager
def _stoppable(*, nothing: bool) -> Iterator[None]:
    """Reports what is in the store if a person stops the import; `nothing` if it is discarded."""
    try:
        yield
    except Undone:
        pass
    except Unavailable as error:
        error.hint = f"{error.hint or ''} {NOTHING if nothing else STOPPED}".strip()
        raise
    except KeyboardInterrupt:
        say("Stopped. " + (NOTHING if nothing else STOPPED))
        raise


@contextmanager
def _writing(
    store: Place, connection: str, manifest: Path | None, *, aside: bool
) -> Iterator[tuple[Writing, bool]]:
    """The store, and whether it is a copy that replaces it at the end unless `Undone`.

    It is a copy on request or if records are reindexed, so that others can write to the store
    meanwhile. A database needs no copy. A store that the calling command has opened is used as it
    is.
    """
    shared: Writing | None = click.get_current_context().obj
    with suppress(Undone):
        if shared is not None:
            yield shared, False
            return
        engine = engine_of(store)
        with engine.open_writer() as writer:
            streams = parse(read_json(manifest)) if manifest is not None else []
            long = aside or reindexes(writer, connection, streams)
            if not (long and engine.works_in_a_copy):
                yield writer, False
                return
        with engine.replacement() as writer:
            yield writer, True


def _parser(
    paths: tuple[str, ...], form: str | None, options: dict[str, Any], *, roles: bool
) -> Parser:
    """The parser of the files, with the owner's choices."""
    encoding, delimiter = options["encoding"], options["delimiter"]
    if encoding is not None:
        try:
            "".encode(encoding)
        except LookupError:
            advice = "Use utf-8, utf-16, cp1252, latin-1, …"
            raise InvalidRequest(f"--encoding {encoding!r} is not known. {advice}") from None
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise InvalidRequest("--delimiter is one character, or the word tab.")
    reading = Reading(encoding, delimiter, options["header"], roles)
    return Parser(paths, form, reading, replace=options["replace_undecodable"])


def _import_files(task: Import, parser: Parser, *, detailed: bool) -> None:
    """Imports the files, and reports each."""
    with Meter(task.connection_id, "rows") as meter:
        progress = FileRows(meter, [file.size for file in parser.listing.files])

        def on_file(report: FileReport) -> None:
            progress.next_file()
            import_report.of_file(report)

        ask = task.on_repeated

        def on_repeated(new: str, old: str, count: int, rows: int) -> None:
            with meter.paused():
                ask(new, old, count, rows)

        task.on_repeated = on_repeated
        skipped = import_files(
            task, parser, on_row=lambda: progress.row(parser.position), on_file=on_file
        )
    import_report.of_skipped(skipped, detailed=detailed)


def _write_manifest(task: Import, path: Path) -> None:
    """Writes the manifest of the connection to a new file."""
    streams = [manifest.document for manifest in task.writer.manifests(task.connection_id)]
    with path.open("xb") as file:
        file.write(orjson.dumps({"streams": streams}, option=orjson.OPT_INDENT_2) + b"\n")
    say(f"{path} has the manifest. To change it, edit the file and pass it with --manifest.")
