"""`rung export`: writes whole fields, records, streams and blobs to files.

An interrupted export leaves `FILE.part`, and the same command resumes it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from evidence import handles
from evidence.errors import EvidenceError, Gone
from evidence.limits import BUDGETS
from service.cli import output
from service.cli.commands import Spelling, report_errors
from service.cli.export import copying
from service.cli.export.reading import RetryingReader, FieldText, blob_of
from service.cli.export.sinks import STDOUT, Sink, State, destination
from service.cli.output import Meter
from service.cli.reading import ENTRIES, RAW
from service.cli.source import Source, source_options
from service.operations.read_record_field import resolve
from service.ports import FieldRequest, RecordQuery

Work = Callable[[Sink, Meter], Any]
#: Describes an export and runs it.
Begin = Callable[[RetryingReader], tuple[State, Work]]

#: Paging arguments, which the export sets itself, and those of related records, which have their
#: own streams.
OMITTED = ("limit", "cursor", "count", "changes_since", "expand", "expand_limit")
FORMATS = ("ndjson", "csv")
GROUP = ("rung",)
QUERY = next(entry for entry in ENTRIES if entry.name == "query")


@dataclass(frozen=True, slots=True)
class Target:
    """The destination, and whether existing data may be replaced."""

    output: str
    force: bool
    restart: bool


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the destination options; the command receives them as `target`."""

    @click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(allow_dash=True),
        help="The file to write, or - for standard output.",
    )
    @click.option("--force", is_flag=True, help="Replace an existing file.")
    @click.option("--restart", is_flag=True, help="Start the export over instead of resuming it.")
    @wraps(command)
    def taking(*, output: str, force: bool, restart: bool, **parameters: Any) -> Any:
        name = "-" if output in STDOUT else output
        return command(target=Target(name, force, restart), **parameters)

    return taking


@click.group()
def export() -> None:
    """Export whole fields, records, streams and blobs to files.

    An interrupted export leaves a file whose name ends in .part. To resume the export, run the same
    command again.
    """


@export.command()
@click.argument("id")
@click.argument("field_path", required=False)
@click.option("--connection-id", help="Use only this connection.")
@target_options
@source_options
def field(
    source: Source, target: Target, id: str, field_path: str | None, connection_id: str | None
) -> None:
    """Export the whole text of a field of any length.

    ID is a record id as printed by other commands. FIELD_PATH is a field name or a JSON Pointer. It
    is required unless ID is a field-window URI. Values that are not strings are written as JSON.
    """

    def begin(reader: RetryingReader) -> tuple[State, Work]:
        reference, _ = resolve(
            FieldRequest(id=id, field_path=field_path, connection_id=connection_id)
        )
        text = FieldText(reader, reference.record, reference.field_path)
        what = {"field": text.path, "record": str(text.ref)}
        return what, partial(copying.text, text)

    _run(source, target, "characters", begin)


@export.command()
@click.argument("id")
@click.option("--connection-id", help="Use only this connection.")
@target_options
@source_options
def record(source: Source, target: Target, id: str, connection_id: str | None) -> None:
    """Export one record, with all its fields, as JSON."""

    def begin(reader: RetryingReader) -> tuple[State, Work]:
        ref = handles.parse(id, connection_id=connection_id)
        return {"record": str(ref)}, partial(copying.record, reader, ref)

    _run(source, target, "bytes", begin)


def stream(source: Source, target: Target, form: str | None, raw: bool, **options: Any) -> None:
    """Export all records of a stream as NDJSON, one record per line, or as CSV.

    Text is never shortened. To export the bytes of a binary field, use `rung export blob`.
    """
    kind = form or ("csv" if target.output.lower().endswith(".csv") else "ndjson")

    def begin(reader: RetryingReader) -> tuple[State, Work]:
        arguments = QUERY.arguments_of(options)
        loaded = RecordQuery.of(QUERY.load(arguments))
        query = replace(loaded, limit=copying.PAGE, whole=True)
        what = {"stream": arguments, "format": kind}
        if kind == "ndjson":
            return what, partial(copying.copy, reader, query, b"", copying.line)
        columns = copying.fields_of(reader, query)
        table = copying.Table(columns, raw)
        does = partial(copying.copy, reader, query, table.head(), table.row)
        return {**what, "fields": columns, "raw": raw}, does

    _run(source, target, "records", begin)
    if kind == "csv" and not raw:
        output.say(
            "Rung wrote an apostrophe before the content of each cell that a spreadsheet would run "
            "as a formula. Add --raw for the exact values, which programs and rung import need."
        )


_query_params = QUERY.params(Spelling(GROUP, ENTRIES).with_commands)
_params = [
    *(param for param in _query_params if param.name not in OMITTED),
    click.Option(
        ["--format", "form"],
        type=click.Choice(FORMATS),
        help="The format of the file. Default: csv if the file's name ends in .csv, otherwise "
        "ndjson.",
    ),
    click.Option(["--raw"], is_flag=True, help=RAW),
]
export.command("stream", params=_params)(target_options(source_options(stream)))


@export.command()
@click.argument("name", metavar="BLOB_ID|ID")
@click.argument("field_path", required=False)
@click.option("--connection-id", help="Use only this connection.")
@target_options
@source_options
def blob(
    source: Source, target: Target, name: str, field_path: str | None, connection_id: str | None
) -> None:
    """Export the bytes of a binary field.

    Pass the BLOB_ID that other commands print for the field, or the record's ID and the field's
    FIELD_PATH.
    """

    _blob(source, target, name, field_path, connection_id)


def _blob(
    source: Source, target: Target, name: str, field_path: str | None, connection_id: str | None
) -> None:
    def begin(reader: RetryingReader) -> tuple[State, Work]:
        if field_path is None:
            what = {"blob": name, "connection_id": connection_id}
            return what, partial(
                copying.blob, reader, lambda rs: rs.blob(name, connection_id=connection_id)
            )
        ref = handles.parse(name, connection_id=connection_id)
        path = field_path
        what = {"blob": path, "record": str(ref)}
        return what, partial(copying.blob, reader, lambda rs: blob_of(rs, ref, path))

    _run(source, target, "bytes", begin)


@click.command("blob")
@click.argument("blob_id")
@click.option("--connection-id", help="Use only this connection.")
@click.option(
    "-o",
    "--output",
    "path",
    default="-",
    type=click.Path(dir_okay=False),
    help="The file to write. Default: standard output.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the blob's metadata instead of its bytes."
)
@source_options
def print_blob(
    source: Source, blob_id: str, connection_id: str | None, path: str, as_json: bool
) -> None:
    """Print the bytes of a binary field. `rung read` shows the field's BLOB_ID.

    The bytes go to standard output or to the file that --output names. The file appears when it is
    complete, and replaces an existing file of this name.
    """
    from service.cli.opening import open_session

    if not as_json:
        _blob(source, Target(path, force=True, restart=False), blob_id, None, connection_id)
        return
    with report_errors(Spelling(GROUP, ENTRIES, source.words), as_json=True, server=source.server):
        blob = open_session(source).rs.blob(blob_id, connection_id=connection_id)
        about = {"object": "blob", "blob_id": blob.blob_id, "mime_type": blob.media_type}
        output.json({**about, "size_bytes": blob.size_bytes, "sha256": blob.sha256 or None})


def _run(source: Source, target: Target, unit: str, begin: Begin) -> None:
    """Runs an export of records."""
    from service.cli.opening import opener

    spelling = Spelling(GROUP, ENTRIES, source.words)
    with _explained(target, spelling, server=source.server):
        open = opener(source)
        what, does = begin(RetryingReader(lambda: open(BUDGETS.upstream_seconds)))
        location = source.server or str(source.store.absolute())
        _write(target, {**what, "source": location}, unit, does)


def _write(target: Target, what: State, unit: str, does: Work) -> None:
    if target.output == "-" and output.on_terminal():
        raise click.UsageError(
            "Rung does not write binary data to a terminal. Use --output FILE or a pipe."
        )
    name = Path(target.output).name
    with destination(
        target.output, what, force=target.force, restart=target.restart
    ) as sink, Meter(name, unit) as meter:
        begun = sink.size
        if begun:
            output.say(f"{name}: resuming after {begun:,} bytes.")
        try:
            does(sink, meter)
        except EvidenceError as error:
            raise _with_note(error, sink, target, resumed=bool(begun)) from error
    if target.output != "-":
        output.say(f"{target.output}: {sink.size:,} bytes, SHA-256 {sink.digest()}")


def _with_note(error: EvidenceError, sink: Sink, target: Target, *, resumed: bool) -> EvidenceError:
    """The error, with the command that resumes the export."""
    lost = isinstance(error, Gone) or error.details.get("param") == "cursor"
    if lost and resumed:
        return type(error)(
            "The source no longer accepts the position where this export stopped.",
            code=error.code,
            hint="Start over: run the same command with --restart.",
        )
    if sink.state and target.output != "-":
        error.add_note(
            f"{target.output}.part has {sink.size:,} bytes. Run the same command again to "
            "resume."
        )
    return error


@contextmanager
def _explained(target: Target, spelling: Spelling, *, server: str | None = None) -> Iterator[None]:
    """Converts an error that ends an export into a message and an exit code."""
    try:
        with report_errors(spelling, server=server):
            yield
    except BrokenPipeError:
        raise  # the reader closed the pipe
    except OSError as error:
        name = "standard output" if target.output == "-" else target.output
        raise click.ClickException(f"{error.filename or name}: {error.strerror}.") from error
    except KeyboardInterrupt:
        output.say("" if target.output == "-" else "Run the same command again to resume.")
        raise click.Abort() from None
