"""What an engine provides to the record store: snapshots, and the data types that the two exchange.

Grants, rules, ranking and proof live above this border; SQL, row ids and full-text expressions
live below it. A record has a `seq`, a field of a stream an `ordinal`: numbers an engine hands out,
opaque to everybody else. Every method raises `TimedOut` once the deadline of its snapshot has
passed, and `Unavailable` if the store cannot be read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple, Protocol

from evidence.question import Term
from service.access.port import Tables
from service.records.engine.content import Content
from service.records.engine.change_log import Change, RecordState, StreamChange
from service.records.engine.later import Later
from evidence.manifest import StreamManifest
from service.records.engine.matches import Scoring
from service.records.engine.vectors import VectorReads
from service.records.engine.selections import Cells, Grouped, GroupPage, GroupRow, Selection, Value
from service.records.engine.selections import Scope as Scope

#: Words with one prefix that a search reads.
WORDS_MOST: Final = 5_000
#: The greatest code point, which follows a prefix in the upper bound of its words.
LAST: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A stream as the store has it, before any grant: `fields` maps names to ordinals.

    `searchable` are the fields in the full-text index, `languages` those of their texts.
    """

    id: int
    manifest: StreamManifest
    connector_key: str
    display_name: str | None
    fields: Mapping[str, int]
    searchable: frozenset[str]
    languages: Mapping[str, tuple[str, ...]]


class Big(NamedTuple):
    """Where a large value is: chunk rows, its size in code points and bytes, its JSON type."""

    first: int
    chunks: int
    chars: int
    bytes: int
    type: str


@dataclass(slots=True)
class Stored:
    """One record as the store has it; nothing is cut to a grant yet.

    `stream` is the id of its stream, `chars` the size of the JSON text of `data`.
    """

    seq: int
    stream: int
    record_key: str
    first_emitted_at: str
    data: dict[str, Any]
    big: dict[str, Big]
    changed: dict[str, str]
    chars: int


class Position(NamedTuple):
    """A place in the order of a list: the record before it, and its selection's number."""

    cursor: Any
    record_key: str
    selection: int


class Row(NamedTuple):
    """A record of a list: its seq and its position."""

    seq: int
    position: Position


@dataclass(frozen=True, slots=True)
class Order:
    """How a list is sorted: by the cursor field, or else by record key."""

    by_cursor: bool
    descending: bool


class BlobRow(NamedTuple):
    """A stored blob, and the field of the record that delivered it."""

    key: int
    media_type: str
    size_bytes: int
    sha256: str
    field: str
    seq: int


class Rows(NamedTuple):
    """Rows of the full-text index by columns: `short` of whole values, `passages` of long ones.

    Both have records and ordinals, passages their starts in code points too. `cut` tells whether a
    limit left rows out.
    """

    short: tuple[list[int], list[int]]
    passages: tuple[list[int], list[int], list[int]]
    cut: bool = False

    @property
    def records(self) -> set[int]:
        return {*self.short[0], *self.passages[0]}


#: Terms any of which will do.
Spellings = Sequence[Term]
#: A passage of a long value: record, ordinal of the field, start in code points.
PassageKey = tuple[int, int, int]
#: The size of a value in the index: record, passages of a long one, words of a short one.
Size = tuple[int, int, int]
#: A value in the index: record, ordinal, passages of a long one, folded text of a short one.
ValueText = tuple[int, int, int, str]
#: `Snapshot.load`; it may return more records than those.
Loader = Callable[[Sequence[int], Sequence[PassageKey]], Later[dict[int, Stored]]]


#: (where the commits are counted, how many there were, the epoch of the last one).
Generation = tuple[int, int, str]


class Moved(Exception):
    """The store is not of the generation that its snapshot was to be of. Ask a new one."""


class Snapshot(Tables, VectorReads, Protocol):
    """One consistent view of the store.

    A method that returns a `Later` reads nothing yet. See `engine.later`.
    """

    #: Ranks all matches of a question; None if the engine cannot do that by itself.
    scoring: Scoring | None

    def content(self) -> Content:
        """The rows of the tables, to copy the store."""

    def generation(self, expected: Generation | None = None) -> Generation:
        """Equal only for the same contents.

        An engine that is far away may return the expected one without asking. Its next call, or
        the end of the snapshot, then raises `Moved` if it is another.
        """

    def meta(self, key: str) -> Any:
        """What the store notes about itself under a key; None if nothing."""

    def stream(self, connection_id: str, name: str) -> StreamRow | None:
        """A stream by its names."""

    def names(self) -> list[tuple[str, str]]:
        """(connection id, stream) of all streams, sorted."""

    def confine(self, connection_ids: Iterable[str] | None) -> None:
        """Limits the request to some connections, None for all; PostgreSQL enforces this too."""

    # Records

    def find(self, selection: Selection, record_key: str) -> Later[Stored | None]:
        """A record by its key."""

    def page(
        self, selections: Sequence[Selection], order: Order, after: Position | None, limit: int
    ) -> list[Row]:
        """At most `limit` records behind a position, all selections merged in one order.

        Equal records are in the order of their selections.
        """

    def count(self, selection: Selection) -> Later[int]:
        """The number of records."""

    def span(self, selection: Selection) -> Later[tuple[int, int | None, int | None]]:
        """(number of records, earliest event time, latest event time)."""

    def load(
        self, seqs: Iterable[int], passages: Sequence[PassageKey] = ()
    ) -> Later[dict[int, Stored]]:
        """Records by their seq; those that are deleted or not there are left out.

        A far engine also asks for the chunks of the passages, which will be read.
        """

    def loader(self, seqs: Sequence[int], passages: Sequence[PassageKey]) -> Loader:
        """`load` for some of these records; the caller may need only a few of them.

        A far engine asks for all of them now if they are few, with the chunks of the passages.
        """

    def each(self, seqs: Iterable[int]) -> Iterator[Stored]:
        """The same in the order of `seqs`, each read when it is asked for."""

    def related(
        self, selection: Selection, ordinal: int, keys: Sequence[Value], order: Order, limit: int
    ) -> list[int]:
        """The seqs of records whose value of a field is one of `keys`, at most `limit`."""

    # Large values

    def chunks(self, big: Big, first: int = 0, last: int | None = None) -> Iterator[str]:
        """The chunks `first` to `last`, counted from 0 and inclusive, of a large value."""

    def text(self, big: Big, first: int, last: int) -> Later[str]:
        """The text of a few chunks; a far engine keeps them."""

    # Search

    def statistics(self, streams: Sequence[int], fields: Sequence[int]) -> Later[tuple[int, int]]:
        """(live records of the streams, words in these fields of theirs)."""

    def words_like(
        self, fields: Sequence[int], prefixes: Sequence[str], most: int = WORDS_MOST
    ) -> Later[list[str]]:
        """The words of some fields with one of some prefixes, at most `most` for each prefix.

        Words of other fields may be among them, as long as none of these is left out for them.
        """

    def word_counts(self, fields: Sequence[int], words: Iterable[str]) -> Later[dict[str, int]]:
        """How many values of some fields hold each word; those that none holds are left out."""

    def words_by_key(
        self, fields: Sequence[int], keys: Iterable[int], most: int
    ) -> Later[list[str]]:
        """The words of some fields with one of some keys (see vocabulary.py), `most` at most."""

    def rows(
        self, scope: Scope, groups: Sequence[Spellings], limit: int, *, newest: bool = False
    ) -> Later[Rows]:
        """Index rows that hold one of every group, at most `limit` short ones and passages each.

        Without groups, with `newest`: any rows.

        With `newest` the fields share the limit, and each gives the rows of its newest records.
        """

    def sizes(self, values: Sequence[tuple[int, int]]) -> Later[list[Size]]:
        """The sizes of some values, which are given by record and ordinal.

        A value that is not in the index may be left out, or have the size 0.
        """

    def holding(self, scope: Scope, spellings: Spellings, seqs: Iterable[int]) -> Later[Rows]:
        """All rows of some records, in the fields of a scope, that hold one of the terms."""

    def passages_with(
        self, seq: int, ordinal: int, groups: Sequence[Spellings], limit: int | None
    ) -> Later[list[int]]:
        """The starts, in code points, of passages of a long value that hold one of every group."""

    def texts(self, fields: Sequence[int], seqs: Sequence[int]) -> Later[list[ValueText]]:
        """The values of some records in some fields, whose ordinals ascend."""

    def passages(self, places: Sequence[PassageKey]) -> Later[dict[PassageKey, str]]:
        """The folded texts of passages, without words that their ends may cut.

        They are passages of values that `texts` gives, whose promise is read before.
        """

    def neighbours(self, scope: Scope, seqs: Sequence[int]) -> Later[dict[int, dict[int, int]]]:
        """{record: {neighbour: distance}}: one and two records before and after in its thread.

        Places are those in the whole thread, without the tests of the scope. Only records that pass
        the tests are returned.
        """

    # Values of fields, for aggregates. A value that several fields have may come once for each.

    def total(self, fields: Sequence[Cells], *, is_decimal: bool) -> Later[tuple[Decimal, int]]:
        """(exact sum, number of values) of number fields, or of fields with keys of decimals."""

    def extreme(self, fields: Sequence[Cells], *, greatest: bool) -> Later[list[tuple[Value, int]]]:
        """(value, seq) of the least or greatest value of each field, or of all; ties go by seq."""

    def distinct(self, fields: Sequence[Grouped]) -> Later[int]:
        """The number of different values of some fields."""

    def groups(
        self, fields: Sequence[Grouped], metric: str, after: GroupRow | None, limit: int
    ) -> GroupPage:
        """The groups after a group, largest figure first, then by kind and value.

        Groups without a figure come last.
        """

    def units(
        self,
        fields: Sequence[Cells],
        offsets: Sequence[tuple[int, int]],
        width: int,
        granularity: str,
        after: int,
        limit: int,
    ) -> GroupPage:
        """The buckets of local time after one, in their order.

        `offsets` are (begin, microseconds to add from then on), at least one. A unit has `width`
        microseconds: a minute, an hour or a day; buckets of days begin as `granularity` does. The
        value of a group is its first unit, its figure the last unit that has records.
        """

    def next_value(self, ordinals: Sequence[int], least: int) -> int | None:
        """The least value of some fields, over the whole store, that is `least` or more."""

    # Changes

    def changes(self, stream: int, after: int) -> Iterator[Change]:
        """The change log of a stream behind a version, ascending."""

    def later_changes(self, seq: int, after: int) -> Iterator[Change]:
        """What changed in one record after a version."""

    def last_change(self, stream: int) -> str | None:
        """When a record of a stream was last added, changed or deleted."""

    def changed_streams(self, after: int) -> list[StreamChange]:
        """The streams with changes behind a version."""

    def epoch(self, version: int) -> str | None:
        """The epoch of the commit that has a version, or None. It differs if others had it before.

        That happens if an older backup is restored, or if a server that lacks the last commits
        becomes the primary.
        """

    def state(self, seq: int) -> RecordState:
        """A record, deleted or not, as it is now."""

    # Blobs

    def blobs(self, selection: Selection, blob_id: str) -> list[BlobRow]:
        """The blobs with this SHA-256, else those with this name, that the records delivered."""

    def blob_of(self, seq: int, field: str, blob_id: str, sha256: str | None) -> BlobRow | None:
        """The blob that this field of this record delivered under a name, with a given hash."""

    def blob_part(self, blob: BlobRow, number: int) -> bytes | None:
        """A piece of a blob, counted from 0; None if a key now belongs to another blob."""

    def blob_content(self, blob: BlobRow) -> bytes:
        """All bytes of a blob."""
