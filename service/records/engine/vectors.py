"""Text vectors, as a snapshot reads them and as a builder writes them.

A vector belongs to one record, one field (an ordinal) and one window of its text. It has
`dimensions` signed bytes. Vectors of one model are a set; those of different sets are never
compared. A block has an entry for each of up to `BLOCK_ENTRIES` vectors of one field: the seq of
the record and the id of the vector, 8 bytes each, little endian, then the code of the vector. The
entry of a vector that is gone is zero.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import hypot
from typing import Final, NamedTuple, Protocol

from service.records.engine.later import Later
from service.records.engine.selections import Scope

BLOCK_ENTRIES: Final = 256
NUMBER_BYTES: Final = 8
#: Lots are below this.
LOTS: Final = 1 << 62


class VectorSet(NamedTuple):
    """The vectors of one model. `version` grows with each commit of the builder; see `code_of`."""

    id: int
    model: str
    dimensions: int
    version: int
    centre: bytes


class VectorRow(NamedTuple):
    """The vector of a window, which is the code points `start` to `stop` of a field's text."""

    seq: int
    ordinal: int
    start: int
    stop: int
    vector: bytes


class Covered(NamedTuple):
    """How many `records` a stream has, and how many of them are `done`."""

    stream: int
    done: int
    records: int


class TextStream(NamedTuple):
    """A stream, and the ordinals of its fields whose texts have vectors.

    The texts of other fields are embedded after that of the `title`, if there is one.
    """

    id: int
    connection_id: str
    name: str
    fields: Mapping[str, int]
    title: str | None = None


class Document(NamedTuple):
    """The text of a record as it is stored; the fingerprint differs if any of it changes."""

    seq: int
    record_key: str
    data: str
    big: str | None
    fingerprint: bytes


#: {(ordinal, start): (stop, hash of the text)}.
Windows = Mapping[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class WindowedRecord:
    """A record whose vectors are saved: `windows` are its first ones, or with `whole` all.

    `lots` has the fields. With `done`, every window has a vector now.
    """

    seq: int
    stream: int
    fingerprint: bytes
    lots: Mapping[int, int]
    windows: Windows
    whole: bool
    done: bool


class VectorWriting(Protocol):
    """What a builder of vectors needs of a writer. Every method commits by itself.

    The commits change neither the generation of the store nor the changes feed.
    """

    def sets(self) -> list[tuple[int, str]]:
        """The ids and models of all sets."""

    def open_set(self, model: str, dimensions: int, centre: bytes) -> int:
        """The set of a model, created if new."""

    def streams(self) -> list[TextStream]:
        """The streams that have fields for vectors."""

    def lease(self, owner: str, seconds: float, is_gone: Callable[[str], bool]) -> str | None:
        """Keeps other builders out for some seconds; returns the owner that keeps this one out."""

    def progress(self, set_id: int) -> tuple[int, int]:
        """(records with all their vectors, all records of the streams in the set)."""

    def prepare(self, set_id: int, stream: int, fields: Sequence[int]) -> None:
        """Makes all records of a stream missing if others than these fields had vectors."""

    def missing(self, set_id: int, stream: int, *, begun: bool) -> Iterator[tuple[int, int]]:
        """(time, seq) of records without vectors, or `begun` ones that lack further windows.

        Newest first; the time is in microseconds since 1970, `NO_TIME` without one.
        """

    def documents(self, seqs: Sequence[int]) -> list[Document]:
        """Some records, without those that are gone."""

    def windows(self, set_id: int, seqs: Sequence[int]) -> dict[int, Windows]:
        """The windows of some records that have vectors."""

    def same_texts(self, set_id: int, hashes: Sequence[int]) -> dict[int, bytes]:
        """Vectors by the hash of their text."""

    def save(
        self, set_id: int, records: Sequence[WindowedRecord], vectors: Mapping[int, bytes]
    ) -> None:
        """Saves the vectors, by hash, of records that are unchanged, and removes wrong ones."""

    def pack(self, set_id: int) -> None:
        """Puts vectors that are in no block into blocks."""

    def complete(self, set_id: int) -> None:
        """Lets questions use this set, and erases the others."""


class VectorReads(Protocol):
    """The methods of a snapshot for vectors. `fields` are ordinals."""

    def vector_set(self) -> VectorSet | None:
        """The newest complete set, else the first one that has vectors; None if none has."""

    def vectors(
        self, set_id: int, fields: Sequence[int], seqs: Sequence[int]
    ) -> Later[list[VectorRow]]:
        """The vectors of some records."""

    def vector_sample(self, set_id: int, scope: Scope, most: int) -> Later[list[bytes]]:
        """Vectors of the first windows in a scope, at most `most`, those with the least lots.

        A lot is a hash of connection, stream, key and field, so the same records have the same
        sample in every store.
        """

    def vector_blocks(self, set_id: int, fields: Sequence[int]) -> Iterator[bytes]:
        """The blocks of some fields, in a fixed order."""

    def vectors_by_id(self, set_id: int, ids: Sequence[int]) -> Later[list[VectorRow]]:
        """Vectors by the ids in blocks, in any order; those that are gone are left out."""

    def within(self, scope: Scope, seqs: Sequence[int]) -> Later[list[int]]:
        """Those of some records that are in the selections of a scope."""

    def members(self, scope: Scope, most: int) -> Later[list[int] | None]:
        """All records in the selections of a scope; None if there are more than `most`."""

    def vector_coverage(self, set_id: int, streams: Sequence[int]) -> Later[list[Covered]]:
        """How many records of some streams are in the set."""


def share_of(rows: Iterable[Covered]) -> float | None:
    """The share of the records that are done, in whole percent and rounded down; None of none."""
    done, records = (sum(numbers) for numbers in zip((0, 0), *((r.done, r.records) for r in rows)))
    return 100 * done // records / 100 if records else None


def code_of(vector: bytes, centre: bytes) -> bytes:
    """A bit for each component of a vector, 1 above the centre of all texts, first bit highest.

    Texts share most of their direction, so the signs alone would tell them apart badly. `centre`
    has components of unit vectors as floats of 4 bytes; empty, it is zero.
    """
    components = array("b", vector)
    length = hypot(*components)
    middle = array("f", centre) if centre else repeat(0.0)
    bits = "".join(
        "1" if component > length * least else "0" for component, least in zip(components, middle)
    )
    width = -(-len(vector) // 8)
    return int(bits.ljust(width * 8, "0"), 2).to_bytes(width, "big")


def entry_of(seq: int, id: int, vector: bytes, centre: bytes) -> bytes:
    """The entry of a vector in a block."""
    numbers = (number.to_bytes(NUMBER_BYTES, "little") for number in (seq, id))
    return b"".join((*numbers, code_of(vector, centre)))


def centre_of(vectors: Sequence[bytes]) -> bytes:
    """The centre of a few vectors, for `code_of`."""
    units = [(array("b", vector), hypot(*array("b", vector)) or 1.0) for vector in vectors]
    sums = zip(*([component / length for component in unit] for unit, length in units))
    return array("f", [sum(components) / len(units) for components in sums]).tobytes()


def ids_of(entries: bytes, width: int) -> list[int]:
    """The ids of the vectors in a block, whose entries have `width` bytes."""
    starts = range(NUMBER_BYTES, len(entries), width)
    ids = (int.from_bytes(entries[at : at + NUMBER_BYTES], "little") for at in starts)
    return [id for id in ids if id]
