"""The interface between operations and resource servers.

A resource server takes typed requests and returns typed values, limited to one grant.
"""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from evidence.errors import TimedOut, Unavailable
from evidence.handles import RecordRef
from evidence.hits import SearchPage
from evidence.limits import CONTRACT
from evidence.model import GRANULARITIES, Buckets
from evidence.records import FieldRead, Record, RecordPage
from evidence.schema import ConnectorList, Schema, StreamDetails, StreamList
from service.ports.request import Request, optional, page_limit, required
from service.ports.types import CONNECTION_ID, CURSOR, RECORD_ID, STREAM, Choice, ExpandLimit
from service.ports.types import Moment, Names, Number, Text, TypedFilter

Scalar = str | int | float | bool
Filter = dict[str, Scalar | dict[str, Scalar]]
ORDERS: Final = ("asc", "desc")
MODES: Final = ("auto", "words")
METRICS: Final = ("count", "sum", "avg", "min", "max", "count_distinct")


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


class SchemaQuery(Request, operation="schema"):
    stream: str | None = optional(STREAM)
    connection_id: str | None = optional(CONNECTION_ID)
    detail: str = optional(
        Choice(
            "`compact` (default), or `full` for the JSON Schema of one stream.", ("compact", "full")
        ),
        "compact",
    )
    fields_after: str | None = optional(Text("List the fields after this one."))
    cursor: str | None = optional(CURSOR)


class RecordQuery(Request, operation="query_records"):
    """A page of one stream. `changes_since` is `beginning` or a bookmark.

    `whole` asks for the values as REST gives them: up to 1 MiB each.
    """

    stream: str = required(STREAM)
    connection_id: str | None = optional(CONNECTION_ID)
    fields: tuple[str, ...] = optional(
        Names("Return only these fields of each record."), (), paging=True
    )
    filter: Filter = optional(TypedFilter(), {})
    sort: str | None = optional(Text("A sort field from `schema`; `-field` for descending order."))
    order: str | None = optional(
        Choice(
            "`asc` for oldest first, `desc` for newest first; by record id if the stream has no "
            "sort field.",
            ORDERS,
        ),
        rest_only=True,
        accepted=True,
    )
    limit: int = page_limit(CONTRACT.records_default, paging=True, clamped=True)
    cursor: str | None = optional(CURSOR, paging=True)
    count: str = optional(
        Choice("`exact` also counts all matching records.", ("none", "exact")),
        "none",
        paging=True,
        synonyms={"estimated": "exact"},
    )
    window: str = optional(
        Choice("`exact` also returns the time span of all matching records.", ("none", "exact")),
        "none",
        paging=True,
        rest_only=True,
    )
    changes_since: str | None = optional(
        Text(
            "Return changes since `beginning` or an earlier next_changes_since.",
            longest=CONTRACT.handle_chars,
        ),
        paging=True,
    )
    view: str | None = optional(Text("A view from `schema`, instead of `fields`."))
    expand: tuple[str, ...] = optional(
        Names("Include related records; `schema` lists the relations."), (), paging=True
    )
    expand_limit: dict[str, int] = optional(ExpandLimit(), {}, paging=True)
    whole: bool = optional(None, False, paging=True, rest_value=True)


class RecordRead(Request):
    """What to read of one record. `fields` empty means all granted fields.

    `whole` asks for the values as REST gives them: up to 1 MiB each, or, if `fields` names them,
    up to 32 MB together.
    """

    _: KW_ONLY
    fields: tuple[str, ...] = optional(Names("Return only these fields of the record."), ())
    whole: bool = optional(None, False, rest_value=True)
    expand: tuple[str, ...] = optional(
        Names("Include ids of related records; `schema` lists the relations."), ()
    )
    expand_limit: dict[str, int] = optional(ExpandLimit(), {})


class FetchRequest(RecordRead, operation="fetch"):
    """A record by its id, and what to read of it."""

    id: str = required(RECORD_ID)
    connection_id: str | None = optional(CONNECTION_ID)


class AggregateQuery(Request, operation="aggregate"):
    stream: str = required(STREAM)
    metric: str = required(Choice("Metric to compute.", METRICS))
    field: str | None = optional(Text("Field to aggregate; omit it for count."))
    group_by: str | None = optional(Text("Group by the values of this field."))
    group_by_time: str | None = optional(
        Text("Group by this field's time; requires `granularity`.")
    )
    granularity: str | None = optional(Choice("Size of the time buckets.", GRANULARITIES))
    time_zone: str | None = optional(Text("IANA time zone of the buckets, UTC by default."))
    filter: Filter = optional(TypedFilter(), {})
    limit: int | None = optional(
        Number("Number of groups, 10 by default.", 1, CONTRACT.page_items), paging=True
    )
    cursor: str | None = optional(CURSOR, paging=True)
    connection_id: str | None = optional(CONNECTION_ID)


class SearchQuery(Request, operation="search"):
    """A page of hits.

    `cut_tail` ends the first page where scores fall off. `widen` allows further searches with fewer
    words at a remote source that has few hits.
    """

    query: str = required(
        Text(
            'Words or a question. Operators that every hit must satisfy: "a phrase", prefix*, '
            "-without (excludes a word), from:name, subject:word.",
            longest=CONTRACT.query_chars,
        ),
        rest_name="q",
        standard=True,
    )
    _: KW_ONLY
    words: str = optional(
        Choice(
            "`any` (default): a hit may lack some of the words. `all`: a hit contains every word.",
            ("any", "all"),
        ),
        "any",
    )
    mode: str = optional(
        Choice(
            "`auto` (default) also searches by meaning if there is a model; `words` does not.",
            MODES,
        ),
        "auto",
    )
    streams: tuple[str, ...] = optional(
        Names("Search only these streams."), (), standard=True, narrows=(3,)
    )
    connection_id: str | None = optional(CONNECTION_ID, standard=True, narrows=(4,))
    since: str | None = optional(Moment("Records from this date or date-time on."), narrows=(2,))
    until: str | None = optional(Moment("Records before this date or date-time."), narrows=(2,))
    sort: str = optional(
        Choice("`relevance` (default) or `newest`.", ("relevance", "newest")), "relevance"
    )
    filter: Filter = optional(TypedFilter(), {}, standard=True, narrows=(1, 3))
    limit: int = page_limit(
        CONTRACT.search_default,
        rest_default=CONTRACT.search_rest_default,
        paging=True,
        clamped=True,
    )
    cursor: str | None = optional(CURSOR, paging=True)
    cut_tail: bool = optional(None, False, paging=True, tool_value=True)
    widen: bool = optional(None, False, paging=True, tool_value=True)


class SemanticQuery(SearchQuery, operation="search_semantic"):
    """A page of the hits that are nearest in meaning, whatever words they hold."""

    mode: str = optional(None, "semantic")
    words: str = optional(None, "any")
    sort: str = optional(None, "relevance")


class HybridQuery(SearchQuery, operation="search_hybrid"):
    """The first page of hits by words and meaning."""

    mode: str = optional(None, "hybrid")
    cursor: str | None = optional(None)


class WindowRequest(Request):
    """A part of a field: by offset in code points, or around the `match`-th match of `query`."""

    _: KW_ONLY
    offset_chars: int | None = optional(Number("Offset of the window, 0 by default.", 0))
    limit_chars: int | None = optional(
        Number("Window size, 4,096 by default.", 1, CONTRACT.window_chars_max), clamped=True
    )
    query: str | None = optional(
        Text("Read around the best match for these words.", longest=CONTRACT.query_chars),
        rest_name="q",
    )
    match: int = optional(Number("Which match of `query` to read, 1 by default.", 1), 1)
    before_chars: int | None = optional(
        Number(
            f"Characters before the match, {CONTRACT.match_before_chars} by default.",
            0,
            CONTRACT.context_chars_max,
        )
    )
    after_chars: int | None = optional(
        Number(
            "Characters after the match; by default, all that fit.", 0, CONTRACT.context_chars_max
        )
    )


class FieldRequest(WindowRequest, operation="read_record_field"):
    """A field of a record by its id, and the part of it to read."""

    id: str = required(RECORD_ID)
    field_path: str | None = optional(
        Text("Field name or JSON Pointer, such as /to/0/name.", longest=CONTRACT.path_chars),
        rest_name="field",
        rest_required=True,
    )
    connection_id: str | None = optional(CONNECTION_ID)


#: The arguments that narrow a search, and the attempts to search without them.
NARROWING: Final[dict[str, tuple[int, ...]]] = dict(
    sorted(SearchQuery.marked("narrows").items(), key=lambda entry: entry[1])
)
#: The arguments of a search that PDPP does not have.
SEARCH_EXTENSIONS: Final = SearchQuery.unmarked("standard", "paging")


class ConnectorsRequest(Request, operation="connectors"):
    """The connectors of a grant. `connection_id` has no effect."""

    connection_id: str | None = optional(CONNECTION_ID)


class StreamsRequest(ConnectorsRequest, operation="streams"):
    """The streams of a grant or of one connection."""


class BlobRequest(ConnectorsRequest, operation="blob"):
    """A blob, whose id is in the path."""


class StreamRequest(Request, operation="stream"):
    stream: str = required(STREAM)
    connection_id: str | None = optional(CONNECTION_ID)


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


class ResourceServer(Protocol):
    """One grant, already authorised. Methods raise only `EvidenceError`s."""

    def schema(self, query: SchemaQuery) -> Answer[Schema]: ...

    def streams(self, *, connection_id: str | None = None) -> Answer[StreamList]: ...

    def stream(self, name: str, *, connection_id: str | None = None) -> Answer[StreamDetails]: ...

    def connectors(self) -> Answer[ConnectorList]: ...

    def records(self, query: RecordQuery) -> Answer[RecordPage]: ...

    def record(self, ref: RecordRef, read: RecordRead = RecordRead()) -> Answer[Record]: ...

    def aggregate(self, query: AggregateQuery) -> Answer[Buckets]: ...

    def search(self, query: SearchQuery) -> Answer[SearchPage]: ...

    def field_window(
        self, ref: RecordRef, field_path: str, window: WindowRequest
    ) -> Answer[FieldRead]: ...

    def blob(self, blob_id: str, *, connection_id: str | None = None) -> Blob: ...
