"""Imports all files of a parser into one connection."""

from collections.abc import Callable, Iterator

from evidence.errors import InvalidRequest
from service.importing.guard import FileHeader, Received
from service.importing.importer import Import
from service.importing.parsing import FileReport, Parser
from service.records.intake import Row


def import_files(
    task: Import,
    parser: Parser,
    *,
    on_row: Callable[[], None] = lambda: None,
    on_file: Callable[[FileReport], None] = lambda report: None,
) -> list[str]:
    """Imports the files that the parser has found; returns the reasons why others are left out.

    Calls `on_file` after each. If there are several, one that cannot be read is a refused row.
    """
    unique, used = _Unique(), set[str]()
    task.files = len(parser.listing.files)
    for number, file in enumerate(parser.listing.files):
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
        on_file(report)
    task.finish()
    again = [f"{unique.repeated} emails that are already in an earlier file."]
    return (again if unique.repeated else []) + parser.listing.reasons(used)


class _Unique:
    """Leaves out records whose id an earlier file of the same tree has."""

    def __init__(self) -> None:
        self.repeated = 0
        self._seen: dict[str, set[int]] = {}

    def filter(self, items: Iterator[Received], header: FileHeader) -> Iterator[Received]:
        """The rows of a file; if its format is `unique`, without those of repeated records."""
        if not header.unique:
            yield from items
            return
        seen, ids = self._seen.setdefault(header.tree, set()), set[int]()
        current, repeated = 0, False
        for record, line, content in items:
            if record != current:
                key = hash(content.data.get("id")) if isinstance(content, Row) else None
                current, repeated = record, key in seen
                self.repeated += repeated
                ids |= {key} if key is not None else set()
            if not repeated:
                yield record, line, content
        seen |= ids
