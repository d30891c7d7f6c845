"""What an engine provides for filling a store: the data it accepts, and one writer at a time.

Checks, comparison and naming are above this boundary, in `ingest` and `streams`. A writer raises
`Unavailable` if the store cannot be written to.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from service.records.writing.arrivals import Arrival, Change, Stored
from service.records.writing.attachments import Attachment
from service.records.writing.languages import Sample
from service.records.intake import Counts
from service.records.engine.content import Content
from service.records.engine.large import Place
from service.records.engine.vectors import VectorWriting
from evidence.manifest import StreamManifest
from service.access.port import WritableTables
from service.records.engine.scopes import Scopes, StreamHandle

#: Random bytes of the secret of a new store.
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class StreamCount:
    """The live and the deleted records of a stream."""

    connection_id: str
    stream: str
    records: int
    deleted: int


class Staged(Protocol):
    """Pending changes."""

    def keep_manifests(self, targets: Iterable[tuple[str, str]] | None = None) -> None:
        """Keeps the manifests of streams, of all if none are named."""

    def publish(self, arrived: Counts | None = None) -> Counts:
        """Commits; returns the resulting counts of changes. `arrived` counts the rows."""


class Writing(WritableTables, Protocol):
    """A store that is open for writing by one thread."""

    #: {(connection id, stream): the hidden stream that receives its rows}, for staged streams.
    staged: dict[tuple[str, str], str]

    def __enter__(self) -> "Writing": ...

    def __exit__(self, *exception: object) -> None: ...

    def close(self) -> None:
        """Closes the store."""

    def meta(self, key: str) -> Any:
        """The metadata of the store under a key, or None."""

    def set_meta(self, key: str, value: str | int) -> None: ...

    def content(self) -> Content:
        """The rows of the tables, which can be added to, inside a transaction."""

    def vectors(self) -> VectorWriting:
        """The vectors of texts, for their builder."""

    def staging(self, targets: Sequence[tuple[str, str]]) -> AbstractContextManager["Staged"]:
        """Accepts rows for streams, (connection id, name), that are invisible until published.

        Raises `NotFound` for a stream that does not exist.
        """

    def finish(self) -> None:
        """Ends an import: merges the indexes if it is time."""

    def rebuild(self, on_record: Callable[[], None] = ...) -> None:
        """Rebuilds everything derived from records; calls `on_record` after each."""

    # Connections and streams, inside a transaction

    def save_connection(
        self, connection_id: str, connector_key: str | None, label: str | None
    ) -> int:
        """The row of a connection, created if new; a key or label replaces the old one."""

    def find_stream(self, connection_id: str, row_name: str) -> tuple[int, int, str] | None:
        """(stream, connection, manifest) by the name in its row; None if it is not declared."""

    def stream_name(self, stream: int) -> str | None:
        """The name in the row of a stream; None if it is gone."""

    def save_stream(self, connection: int, row_name: str, manifest: StreamManifest) -> None:
        """Creates or changes the row of a stream."""

    def allot(self, stream: int, manifest: StreamManifest) -> Scopes:
        """Assigns an ordinal to every searchable or compared field of a stream; old ones stay."""

    def reindex(self, stream: StreamHandle, replaced: Scopes) -> None:
        """Reindexes the records of a stream, whose old index rows are `replaced`."""

    def counts(self) -> list[StreamCount]:
        """The counts of every stream, by connection and name."""

    # Records, inside a transaction

    def new_seq(self) -> int:
        """A new number for a record."""

    def find(self, arrivals: Sequence[Arrival]) -> Mapping[tuple[int, str], Stored]:
        """The stored records of some rows, by stream and key."""

    def read_large(self, location: Place) -> str:
        """The text of the large value at a place."""

    def whole(self, json: bytes, big: str | None) -> dict[str, Any]:
        """The data of a record with its large values, from its stored columns."""

    def save_digests(self, digests: Sequence[tuple[int, int, int]]) -> None:
        """Stores (digest, connection, record) of rows that are in the store; see `Row.digest`.

        The next change of a record removes its digests.
        """

    def digests(self, connection_id: str) -> Iterator[int]:
        """All digests of a connection, in ascending order."""

    def with_digest(
        self, connection_id: str, digest: int
    ) -> tuple[str, int, str, dict[str, Any]] | None:
        """(stream's name, stream, key, record) of the row of a connection with a digest."""

    def keep(
        self,
        connection: int,
        seq: int,
        attachments: Iterable[Attachment],
        delivered: Iterable[tuple[Any, ...]] = (),
    ) -> None:
        """Stores the bytes that arrived with a record, with a reference from the field of each.

        A field that only names a blob keeps its reference if an earlier version of the record
        `delivered` it: rows of `Statements.references`.
        """

    def apply(self, changes: list[Change], sample: Sample) -> None:
        """Writes the changes; empties the list."""
