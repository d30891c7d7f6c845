"""The interface between operations and upstreams.

A resource server takes typed requests and returns typed values, limited to one grant.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from evidence.errors import TimedOut, Unavailable
from evidence.handles import RecordRef
from evidence.hits import SearchPage
from evidence.model import Buckets
from evidence.records import FieldRead, Record, RecordPage
from evidence.papers import Paper, PaperFacets, PaperFinds, PaperOutline, PaperPage, PaperText
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList

Scalar = str | int | float | bool
Filter = dict[str, Scalar | dict[str, Scalar]]


class Unreached(Unavailable):
    """A server did not answer. `why` is for callers who gave its address."""

    why = ""


class Late(TimedOut):
    """A server did not answer in time."""

    why = "does not answer: timed out"


#: Media types of blobs that a browser may display.
_HARMLESS: Final = frozenset("""
    application/pdf image/avif image/bmp image/gif image/jpeg image/png image/tiff image/webp
    image/x-icon
    """.split())
#: Marks a field of a request that may differ between the pages of one query: see
#: `keys.identity`.
_PAGING: Final = {"paging": True}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The answer of a source.

    `body` is the PDPP body as received, only from remote sources. `reopen` is a cursor for the same
    page, if repeating the request may return another.
    """

    value: T
    body: dict[str, Any] | None = None
    reopen: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaQuery:
    stream: str | None = None
    connection_id: str | None = None
    detail: str = "compact"
    fields_after: str | None = None
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """A page of one stream. `changes_since` is `beginning` or a bookmark.

    `whole` asks for the values as REST gives them: up to 1 MiB each.
    """

    stream: str
    connection_id: str | None = None
    fields: tuple[str, ...] = dataclasses.field(default=(), metadata=_PAGING)
    filter: Filter = dataclasses.field(default_factory=dict)
    sort: str | None = None
    order: str | None = None
    limit: int = dataclasses.field(default=25, metadata=_PAGING)
    cursor: str | None = dataclasses.field(default=None, metadata=_PAGING)
    count: str = dataclasses.field(default="none", metadata=_PAGING)
    window: str = dataclasses.field(default="none", metadata=_PAGING)
    changes_since: str | None = dataclasses.field(default=None, metadata=_PAGING)
    view: str | None = None
    expand: tuple[str, ...] = dataclasses.field(default=(), metadata=_PAGING)
    expand_limit: dict[str, int] = dataclasses.field(default_factory=dict, metadata=_PAGING)
    whole: bool = dataclasses.field(default=False, metadata=_PAGING)


@dataclass(frozen=True, slots=True)
class RecordRead:
    """One record. `fields` empty means all granted fields.

    `whole` asks for the values as REST gives them: up to 1 MiB each, or, if `fields` names them,
    up to 32 MB together.
    """

    ref: RecordRef
    fields: tuple[str, ...] = ()
    whole: bool = False
    expand: tuple[str, ...] = ()
    expand_limit: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    stream: str
    metric: str
    connection_id: str | None = None
    field: str | None = None
    group_by: str | None = None
    group_by_time: str | None = None
    granularity: str | None = None
    time_zone: str | None = None
    filter: Filter = dataclasses.field(default_factory=dict)
    limit: int | None = dataclasses.field(default=None, metadata=_PAGING)
    cursor: str | None = dataclasses.field(default=None, metadata=_PAGING)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A page of hits.

    `cut_tail` ends the first page where scores fall off. `widen` allows further searches with fewer
    words at a remote source that has few hits.
    """

    query: str
    _: dataclasses.KW_ONLY
    words: str = "any"
    streams: tuple[str, ...] = ()
    connection_id: str | None = None
    since: str | None = None
    until: str | None = None
    sort: str = "relevance"
    filter: Filter = dataclasses.field(default_factory=dict)
    cut_tail: bool = dataclasses.field(default=False, metadata=_PAGING)
    widen: bool = dataclasses.field(default=False, metadata=_PAGING)
    limit: int = dataclasses.field(default=10, metadata=_PAGING)
    cursor: str | None = dataclasses.field(default=None, metadata=_PAGING)


#: The arguments of a search that PDPP does not have, with their defaults.
SEARCH_EXTENSIONS: Final = {
    field.name: field.default
    for field in dataclasses.fields(SearchQuery)
    if not field.metadata.get("paging")
    and field.name not in ("query", "streams", "connection_id", "filter")
}


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """A part of a field: by offset in code points, or around the `match`-th match of `query`."""

    offset_chars: int | None = None
    limit_chars: int | None = None
    query: str | None = None
    match: int = 1
    before_chars: int | None = None
    after_chars: int | None = None


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob: metadata, and `chunks(start, stop)` with its bytes, in pieces."""

    blob_id: str
    media_type: str
    size_bytes: int
    sha256: str
    chunks: Callable[[int, int], Iterator[bytes]]

    @property
    def harmless_type(self) -> str | None:
        """The media type if a browser may display the blob, otherwise one that it downloads."""
        plain = self.media_type.partition(";")[0].strip().lower()
        return plain if plain in _HARMLESS else None


@dataclass(frozen=True, slots=True)
class MemberStream:
    """One stream of one connection in a member of a package."""

    stream: str
    connection_id: str
    connector_key: str | None = None
    display_name: str | None = None


class ResourceServer(Protocol):
    """One grant, already authorised. Methods raise only `EvidenceError`s."""

    def schema(self, query: SchemaQuery) -> Answer[Schema]: ...

    def streams(self, *, connection_id: str | None = None) -> Answer[StreamList]: ...

    def stream(self, name: str, *, connection_id: str | None = None) -> Answer[StreamDetails]: ...

    def connectors(self) -> Answer[ConnectorList]: ...

    def records(self, query: RecordQuery) -> Answer[RecordPage]: ...

    def record(self, read: RecordRead) -> Answer[Record]: ...

    def aggregate(self, query: AggregateQuery) -> Answer[Buckets]: ...

    def search(self, query: SearchQuery) -> Answer[SearchPage]: ...

    def field_window(
        self, ref: RecordRef, field_path: str, window: WindowRequest
    ) -> Answer[FieldRead]: ...

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> Blob: ...


@dataclass(frozen=True, slots=True)
class PaperSearch:
    """A page of papers by words or by keyword. If given, `cursor` contains the offset."""

    text: str
    limit: int
    offset: int = 0
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class TextRead:
    """The text of a paper to read: a summary by `template`, the source or a translation to `lang`.

    `max_chars` is None for the default of the operation; in `find` and `outline` it is the size of
    the reads that they suggest.
    """

    paper_id: str
    template: str | None = None
    lang: str | None = None
    offset_chars: int = 0
    max_chars: int | None = None


class PaperLibrary(Protocol):
    """The papers of one snapshot generation, from which a request reads everything.

    A `paper_id` may also be a DOI, an arXiv id or an exact title; the answer has the canonical id.
    Raises `NotFound` (`paper_not_found`, `template_not_available`, `source_not_available`,
    `translation_not_available`), `Ambiguous` (`ambiguous_paper`), `Gone` (`cursor_expired`),
    `Unavailable` (`asset_fetch_failed`, `asset_parse_failed`).
    """

    @property
    def fence_key(self) -> bytes: ...

    def search(self, request: PaperSearch) -> PaperPage: ...

    def by_keyword(self, request: PaperSearch) -> PaperPage: ...

    def paper(self, paper_id: str) -> Paper: ...

    def summary(self, read: TextRead) -> PaperText: ...

    def source(self, read: TextRead) -> PaperText: ...

    def find(self, read: TextRead, query: str) -> PaperFinds: ...

    def outline(self, read: TextRead) -> PaperOutline: ...

    def facets(self, category: str, *, limit: int, offset: int) -> PaperFacets: ...
