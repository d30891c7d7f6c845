"""Imports all files of a parser into one connection."""

from collections.abc import Callable, Iterator

from evidence.errors import InvalidRequest
from service.importing.formats import FORMATS
from service.importing.process.guard import FileHeader, Received
from service.importing.importer import Import
from service.importing.process.parsing import FileReport, Parser
from service.importing.stored_rows import StoredRows
from service.importing.tree import LeftOut
from service.records.intake import Row


def import_files(
    task: Import,
    parser: Parser,
    *,
    on_row: Callable[[], None] = lambda: None,
    on_file: Callable[[FileReport], None] = lambda report: None,
) -> list[LeftOut]:
    """Imports the files that the parser has found; returns those that are left out.

    Calls `on_file` after each. If there are several, one that cannot be read is a refused row.
    """
    unique, used, skipped = _Unique(), set[str](), list[LeftOut]()
    task.files = len(parser.listing.files)
    if not task.writer.staged:
        parser.leave_out(StoredRows(task.batch, task.connection_id))
    for number, file in enumerate(parser.listing.files):
        last = FORMATS[file.format].last
        if last and file.name in used:
            continue
        report = FileReport(file.name)
        refused, rows = len(task.counts.refusals), task.rows
        try:
            header, items = parser.read(number, report)
            task.read(header, unique.filter(items, header), on_row=on_row)
        except InvalidRequest as error:
            if len(parser.listing.files) == 1:
                raise
            task.counts.refuse(0, error.message)
        report.rows = task.rows - rows
        report.refusals = task.counts.refusals[refused:]
        used |= report.used
        if last and not report.rows:
            report.textless = True
            reason = f"{file.name} has no text, as a scan has none."
            skipped.append((file.name, "documents without text", reason))
        on_file(report)
    task.finish()
    skipped += [entry for entry in parser.listing.left_out if entry[0] not in used]
    again = f"{unique.repeated} emails that are already in an earlier file."
    return ([("", "", again)] if unique.repeated else []) + skipped


class _Unique:
    """Leaves out records whose id an earlier file of the same tree has."""

    def __init__(self) -> None:
        self.repeated = 0
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
        earlier |= ids
