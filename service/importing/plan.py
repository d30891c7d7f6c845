"""The plan, the progress and the outcome of an import."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evidence.cached import cached_property
from evidence.errors import Unavailable
from evidence.manifest import StreamManifest, parse
from service.importing.inference import Inferred
from service.importing.finding import FileEntry
from service.importing.process.parsing import FileReport
from service.importing.tree import LeftOut
from service.records.engine.scopes import StreamHandle
from service.records.intake import Counts, Row
from service.records.writing.arrivals import Arrival

EXAMPLES = 3


@dataclass(slots=True)
class Misfits:
    """Values of one field that are not of its type: they are kept, but not compared."""

    count: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)

    def note(self, line: int, value: Any) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append((line, str(value)[:40]))


@dataclass(frozen=True)
class Plan:
    """What an import is to do.

    `manifest` is the document of a manifest. `stream` is for rows that name none, `key` the primary
    key of new streams, whose fields get roles only with `roles`. A `strict` import imports nothing
    if a row is refused, a trial (`dry_run`) nothing at all.
    """

    connection_id: str
    connector_key: str | None = None
    label: str | None = None
    stream: str | None = None
    key: tuple[str, ...] = ()
    roles: bool = True
    manifest: Any = None
    strict: bool = False
    dry_run: bool = False

    @cached_property
    def streams(self) -> list[StreamManifest]:
        """The streams of the manifest."""
        return [] if self.manifest is None else parse(self.manifest)

    @property
    def may_be_undone(self) -> bool:
        """Whether nothing may be imported in the end."""
        return self.strict or self.dry_run


class Listener:
    """Follows an import. These methods do nothing."""

    def new_stream(self, inferred: Inferred, rows: list[dict[str, Any]]) -> None:
        """A stream is about to be created; these are its first rows."""

    def repeated(self, new: str, old: str, count: int, rows: int) -> None:
        """`count` of the first rows of a new stream are in an old one; may raise to stop."""

    def row(self) -> None:
        """A row was imported or refused."""

    def file(self, report: FileReport) -> None:
        """A file was imported."""

    def wants(self, file: FileEntry) -> bool:
        """Whether a file of the listing is imported."""
        return True

    def begin(self, file: FileEntry) -> None:
        """A file is imported next."""

    def adapt(self, row: Row) -> Row:
        """A row of the current file as it is to be imported."""
        return row

    def stored(self, rows: Sequence[Arrival]) -> None:
        """These rows are stored in the open transaction; the first file has the origin 1."""

    def shared(self, row: Row) -> None:
        """The current file has a row of a record that an earlier file of the run has."""

    def owned_elsewhere(self, stream: StreamHandle, key: str) -> bool:
        """Whether a record is of another file than the current one."""
        return False

    def replaced(self, counts: Counts) -> None:
        """A stream was replaced; its old records are erased next."""


@dataclass(slots=True)
class Report:
    """The outcome of an import into one connection.

    `undeclared` fields are not in the manifest. `misfits` are values, by stream and field, that
    are not of the field's type. `keyless` streams have rows without any key. `apart` counts rows
    with the id of another record of an earlier file, by stream. `manifests` are those of the
    connection. An import is `undone` if nothing of it is in the store: it was a trial, or was
    strict and a row was refused. `unmerged` is the reason why the indexes are not merged.
    """

    connection_id: str
    counts: Counts
    undeclared: dict[str, set[str]] = field(default_factory=dict)
    misfits: dict[str, dict[str, Misfits]] = field(default_factory=dict)
    keyless: set[str] = field(default_factory=set)
    apart: Counter[str] = field(default_factory=Counter)
    left_out: list[LeftOut] = field(default_factory=list)
    manifests: list[StreamManifest] = field(default_factory=list)
    undone: bool = False
    unmerged: Unavailable | None = None
