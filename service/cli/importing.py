"""`rung import`: imports files into the store, with a preview of the streams and a report."""

import gc
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import orjson

from evidence.errors import InvalidRequest
from evidence.manifest import StreamManifest
from service.place import Place
from service.cli import import_report
from service.cli.source import FILE, NEW_FILE, read_json, store_option, explicit_names
from service.cli.output import FileRows, Meter, say
from service.cli.store import existing, teaching
from service.importing import formats
from service.importing.formats import FORMATS, UNUSABLE
from service.importing.inference import Inferred
from service.importing.process.parsing import FileReport, Parser
from service.importing.plan import Listener, Plan, Report
from service.importing.run import import_files
from service.importing.source import Reading
from service.records.intake import Counts
from service.webhook.delivery import send_waiting

#: Allocations between two garbage collections. An import makes many objects that live as long as
#: their batch.
COLLECT_AFTER = 100_000
SOME_REFUSED = 3
ERASING = "The old records are being erased."


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option(
    "--connection", help="The connection to import into (default: the name of the first path)."
)
@click.option("--connector", help="The kind of source that the records come from, such as gmail.")
@click.option("--label", help="A display name for the connection.")
@click.option("--stream", help="The stream of rows that name no stream (default: the file's name).")
@click.option(
    "--key",
    multiple=True,
    metavar="FIELD",
    help="For a proposed manifest: the field that identifies a record. Repeat --key for several "
    "fields.",
)
@click.option(
    "--manifest",
    type=FILE,
    help="A JSON file that describes the streams. Without it, Rung proposes a manifest for each "
    "new stream and shows a summary.",
)
@click.option(
    "--write-manifest",
    "written",
    type=NEW_FILE,
    help="Write the manifest of the connection's streams to this new file so that you can edit it.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(tuple(FORMATS)),
    help="The format of the files (default: detected).",
)
@click.option("--encoding", help="The encoding of text files (default: detected).")
@click.option("--delimiter", help="The character between the cells of a table (default: detected).")
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether tables have a header row (default: detected).",
)
@click.option("--replace-undecodable", is_flag=True, help="Replace undecodable bytes with U+FFFD.")
@click.option(
    "--no-roles", is_flag=True, help="Do not propose fields for title, text, time or author."
)
@click.option(
    "--list-left-out",
    "detailed",
    is_flag=True,
    help="List each file that is left out, with the reason, instead of only counting these files.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and import nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if any row is refused.")
@store_option
def import_(paths: tuple[str, ...], written: Path | None, store: Place, **options: Any) -> None:
    """Import PATHS: files in the formats that --format lists, folders, and .gz or .zip files.

    The path `-` is standard input, which is read as NDJSON unless --format is given. Importing the
    same file again creates no duplicates. The id of a row is the value of the field that --key or
    the manifest names. If neither names one, the id is the value of a field such as `id`, `_id`,
    `key` or `uuid`, or else a hash of the whole row. A changed row updates the record with its id,
    but if the id is a hash, the row becomes a new record. The exit code is 3 if some rows are
    refused, and 1 if all are, if there are none (except with --dry-run), or if --strict refuses
    the import.
    """
    with (
        teaching(),
        found_files(paths, options) as parser,
        _import_target(store, options["dry_run"]) as target,
    ):
        if options["connection"] is None:
            options["connection"] = formats.connection_name(paths)
            say(
                f"Importing into the connection {options['connection']!r}. To choose another, use "
                "--connection."
            )
        if written is not None and written.exists():
            raise click.ClickException(f"{written} already exists. Choose a new file.")
        plan = plan_of(options)
        with Following(parser, plan, paths) as listener:
            report = import_files(target, parser, plan, listener)
        import_report.of_skipped(report.left_out, detailed=options["detailed"])
        import_report.of_import(report)
        if not report.undone:
            with existing(store) as writer:
                import_report.of_coverage(writer, report)
            send_waiting(store, say)
        if written is not None:
            _write_manifest(report.manifests, written)
    _leave(report, plan)


@contextmanager
def found_files(paths: tuple[str, ...], options: dict[str, Any]) -> Iterator[Parser]:
    """The parser of the files, which it has found; raises an error if there are none."""
    with _parser(paths, options) as parser, _fewer_collections():
        try:
            parser.find()
        except InvalidRequest:
            if options["detailed"]:
                import_report.of_skipped(parser.listing.left_out, detailed=True)
            raise
        yield parser


def plan_of(options: dict[str, Any]) -> Plan:
    """The plan of an import, from the options of the command."""
    return Plan(
        options["connection"],
        options.get("connector"),
        options.get("label"),
        options["stream"],
        options["key"],
        not options["no_roles"],
        options["manifest"] and (read_json(options["manifest"]) or {}),
        options.get("strict", False),
        options.get("dry_run", False),
    )


class Following(Listener):
    """Shows the progress of an import, each new stream and each file. Use as a context manager."""

    def __init__(self, parser: Parser, plan: Plan, paths: tuple[str, ...]) -> None:
        for line in [*UNUSABLE, parser.listing.recognized]:
            say(line)
        self._words = [*paths, "--connection", plan.connection_id]
        self._target = f"{plan.connection_id}/{plan.stream}"
        self._full = plan.dry_run or sys.stderr.isatty()
        self._meter = Meter(plan.connection_id, "rows")
        self._rows = FileRows(self._meter, [file.size for file in parser.listing.files])
        self._parser = parser

    def __enter__(self) -> "Following":
        self._meter.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._meter.__exit__()
        for note in getattr(error, "__notes__", ()):
            say(note)

    def new_stream(self, inferred: Inferred, rows: list[dict[str, Any]]) -> None:
        import_report.preview(inferred, rows, full=self._full)

    def repeated(self, new: str, old: str, count: int, rows: int) -> None:
        """Asks whether to create the stream; without a terminal, raises an error."""
        problem = (
            f"{count} of the first {rows} rows for the new stream {new!r} are already in {old!r}."
        )
        with self._meter.paused():
            if sys.stdin.isatty() and click.confirm(f"{problem} Create {new!r} anyway?"):
                return
        context, words = click.get_current_context(), self._words
        if "store" in explicit_names(context):
            words = [*words, "--store", str(context.params["store"])]
        into_old, into_new = (
            shlex.join(["rung", "import", *words, "--stream", name]) for name in (old, new)
        )
        raise click.ClickException(
            f"{problem} No row of this stream was imported. To add its rows to {old!r}: "
            f"{into_old}\nTo create {new!r}: {into_new}"
        )

    def row(self) -> None:
        self._rows.row(self._parser.position)

    def file(self, report: FileReport) -> None:
        self._rows.next_file()
        import_report.of_file(report)

    def replaced(self, counts: Counts) -> None:
        say(
            f"{self._target} was replaced: {counts.new} new, {counts.changed} changed, "
            f"{counts.unchanged} unchanged, {counts.deleted} removed. {ERASING}"
        )


def _leave(report: Report, plan: Plan) -> None:
    """Ends with the exit code of the import."""
    counts = report.counts
    if plan.strict and counts.refused:
        raise click.ClickException("Nothing was imported, because a row was refused (--strict).")
    if plan.dry_run:
        say("Nothing was imported (--dry-run).")
    elif not counts.rows:
        raise click.ClickException("Nothing was imported: no record was found.")
    refuse_if_all_are(report)
    if counts.refused:
        raise click.exceptions.Exit(SOME_REFUSED)


def refuse_if_all_are(report: Report) -> None:
    """Raises an error if all rows are refused."""
    counts = report.counts
    if counts.refused and counts.refused == counts.rows:
        raise click.ClickException(f"Nothing was imported. Refused rows: {counts.refused}.")


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


def _parser(paths: tuple[str, ...], options: dict[str, Any]) -> Parser:
    """The parser of the files, with the owner's choices."""
    encoding, delimiter = options["encoding"], options["delimiter"]
    if encoding is not None:
        try:
            "".encode(encoding)
        except LookupError:
            advice = "Use an encoding such as utf-8, utf-16, cp1252 or latin-1."
            raise InvalidRequest(f"--encoding {encoding!r} is unknown. {advice}") from None
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise InvalidRequest("--delimiter must be one character, or the word tab.")
    reading = Reading(encoding, delimiter, options["header"], not options["no_roles"])
    return Parser(paths, options["form"], reading, replace=options["replace_undecodable"])


def _write_manifest(manifests: list[StreamManifest], path: Path) -> None:
    """Writes the manifest of the connection to a new file."""
    streams = [manifest.document for manifest in manifests]
    with path.open("xb") as file:
        file.write(orjson.dumps({"streams": streams}, option=orjson.OPT_INDENT_2) + b"\n")
    say(
        f"The manifest was written to {path}. To change it, edit the file and pass it with "
        "--manifest."
    )
