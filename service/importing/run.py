"""Imports all files from a parser into one connection, or replaces a stream with their rows."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Final

from evidence.errors import InvalidRequest, Unavailable
from service.importing.formats import FORMATS
from service.importing.importer import Import
from service.importing.process.guard import FileHeader, Received
from service.importing.process.parsing import FileReport, Parser
from service.importing.plan import Listener, Plan, Report
from service.importing.stored_rows import StoredRows
from service.importing.tree import LeftOut
from service.place import Place
from service.records.intake import Row
from service.records.opening import engine_of
from service.records.writing import Writing
from service.records.writing.streams import connect, reindexes

NOTHING: Final = "Nothing was imported."
STOPPED: Final = "All complete batches of rows are in the store. Run the same command to continue."
#: This much can be imported in one transaction within a second; more goes into a copy of the store.
AT_ONCE_BYTES: Final = 65_536


class Undone(Exception):
    """The import was a trial, or had to refuse a row; nothing is imported."""


def import_files(
    location: Place, parser: Parser, plan: Plan, listener: Listener = Listener()
) -> Report:
    """Imports the files that the parser has found into a store.

    A large import that may be undone, and one that reindexes records, goes into a copy that then
    replaces the store, if its engine works so. Others can write to the store meanwhile.
    """
    engine, size = engine_of(location), parser.listing.size
    large = size is None or size >= AT_ONCE_BYTES
    with suppress(Undone):
        with engine.open_writer() as writer:
            long = large and plan.may_be_undone
            long = long or reindexes(writer, plan.connection_id, plan.streams)
            if not (long and engine.works_in_a_copy):
                return import_into(writer, parser, plan, listener)
        with engine.replacement() as writer:
            report = import_into(writer, parser, plan, listener, aside=True)
            if report.undone:
                raise Undone
    return report


def replace_stream(
    writer: Writing, parser: Parser, plan: Plan, listener: Listener, *, keep_manifest: bool
) -> tuple[Report, bool]:
    """Replaces the stream of a plan with the rows of files, in one commit.

    Returns the import, and whether the stream was replaced: not if a row was refused or there are
    none.
    """
    replaced = False
    with suppress(Undone), writer.staging([(plan.connection_id, plan.stream or "")]) as stage:
        if keep_manifest:
            stage.keep_manifests()
        report = import_into(writer, parser, plan, listener)
        if report.counts.refused or not report.counts.rows:
            raise Undone
        listener.replaced(stage.publish(report.counts))
        replaced = True
    if replaced:
        writer.finish()
    return report, replaced


def import_into(
    writer: Writing, parser: Parser, plan: Plan, listener: Listener, *, aside: bool = False
) -> Report:
    """Imports the files that the parser has found; one that may be undone is one transaction.

    In a copy `aside`, it is not: the caller discards the copy.
    """
    task = Import(writer, plan, listener)
    report, whole = task.report, plan.may_be_undone and not aside
    with (
        _explained(NOTHING if plan.may_be_undone or aside or writer.staged else STOPPED),
        writer.transaction() if whole else nullcontext(),
    ):
        connect(writer, plan.connection_id, connector_key=plan.connector_key, label=plan.label)
        if plan.manifest is not None:
            task.declare(plan.manifest)
        report.left_out = _import_each(task, parser)
        report.manifests = writer.manifests(plan.connection_id)
        report.undone = plan.dry_run or plan.strict and bool(report.counts.refused)
        if report.undone:
            raise Undone
    if not report.undone:
        try:  # every row is in the store already
            writer.finish()
        except Unavailable as error:
            report.unmerged = error
    return report


@contextmanager
def _explained(consequence: str) -> Iterator[None]:
    """Adds what is in the store to errors, and to the interrupt of a person as a note."""
    try:
        with suppress(Undone):
            yield
    except Unavailable as error:
        error.hint = f"{error.hint or ''} {consequence}".strip()
        raise
    except KeyboardInterrupt as stopped:
        stopped.add_note(f"Stopped. {consequence}")
        raise


def _import_each(task: Import, parser: Parser) -> list[LeftOut]:
    """Imports each file; returns those that are left out.

    If there are several, one that cannot be read is a refused row.
    """
    unique, used, skipped = _Unique(task.listener), set[str](), list[LeftOut]()
    task.files = len(parser.listing.files)
    if not task.writer.staged:
        parser.leave_out(StoredRows(task.batch, task.plan.connection_id))
    for number, file in enumerate(parser.listing.files):
        last = FORMATS[file.format].last
        if not task.listener.wants(file) or last and file.name in used:
            continue
        report = FileReport(file.name)
        refusals, refused, rows = len(task.counts.refusals), task.counts.refused, task.rows
        try:
            header, items = parser.read(number, report)
            task.listener.begin(file)
            task.read(header, unique.filter(items, header))
        except InvalidRequest as error:
            if len(parser.listing.files) == 1:
                raise
            task.counts.refuse(0, error.message)
        report.rows = task.rows - rows
        report.refusals = task.counts.refusals[refusals:]
        report.refused = task.counts.refused - refused
        used |= report.used
        if last and not report.rows:
            report.textless = True
            reason = f"{file.name} has no text. It may be a scan."
            skipped.append((file.name, "documents without text", reason))
        task.listener.file(report)
    task.finish()
    skipped += [entry for entry in parser.listing.left_out if entry[0] not in used]
    again = f"emails that an earlier file also contains ({unique.repeated})."
    return ([("", "", again)] if unique.repeated else []) + skipped


class _Unique:
    """Leaves out records whose id an earlier file of the same tree has."""

    def __init__(self, listener: Listener) -> None:
        self.repeated = 0
        self._listener = listener
        self._ids_by_tree: dict[str, set[int]] = {}

    def filter(self, items: Iterator[Received], header: FileHeader) -> Iterator[Received]:
        """The rows of a file; if its format is `unique`, without those of repeated records."""
        if not header.unique:
            yield from items
            return
        earlier, ids = self._ids_by_tree.setdefault(header.tree, set()), set[int]()
        current, repeated = 0, False
        for record, line, content in items:
            if record != current:
                key = hash(content.data.get("id")) if isinstance(content, Row) else None
                current, repeated = record, key in earlier
                self.repeated += repeated
                ids |= {key} if key is not None else set()
            if not repeated:
                yield record, line, content
            elif isinstance(content, Row):
                self._listener.shared(content)
        earlier |= ids
