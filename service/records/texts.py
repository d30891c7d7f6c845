"""Texts that are read by ranges: in memory, or in chunk rows that an index finds passages in."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from evidence.pointer import find, searched_text
from evidence.limits import BUDGETS, CONTRACT
from evidence.work import Deadline
from service.records.engine import Big, Snapshot, Spellings, Stored

CHUNK = CONTRACT.chunk_chars
#: A piece runs over its own length by more than the longest query, so that no match is cut.
OVERLAP = CONTRACT.passage_chars - CONTRACT.passage_stride_chars
#: Passages that are read at a time.
PASSAGES_AHEAD: Final = 16


class Piece(NamedTuple):
    """A part of a text at `offset`; it may run over its `own` length, so that no match is cut."""

    offset: int
    text: str
    own: int


class Text(Protocol):
    """A text of `total` code points."""

    total: int

    def read(self, start: int, end: int) -> str: ...

    def pieces(self, groups: Sequence[Spellings]) -> Iterator[Piece]:
        """The pieces that can hold one of every group, in order; all pieces without groups."""


class InlineText:
    """A text that is in memory: one piece."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.total = len(text)

    def read(self, start: int, end: int) -> str:
        return self._text[start:end]

    def pieces(self, groups: Sequence[Spellings]) -> Iterator[Piece]:
        yield Piece(0, self._text, self.total)


class ChunkedText:
    """A large value of a record: a range costs the rows it lies in, a find the passages that match.

    `ordinal` is its field, None if the field is not in the index.
    """

    def __init__(self, snapshot: Snapshot, seq: int, big: Big, ordinal: int | None) -> None:
        self._snapshot, self._seq, self._big, self._ordinal = snapshot, seq, big, ordinal
        self.total = big.chars

    def read(self, start: int, end: int) -> str:
        end = min(end, self.total)
        if start >= end:
            return ""
        first = start // CHUNK
        text = "".join(self._snapshot.chunks(self._big, first, (end - 1) // CHUNK))
        return text[start - first * CHUNK : end - first * CHUNK]

    def pieces(self, groups: Sequence[Spellings]) -> Iterator[Piece]:
        deadline = Deadline.after(BUDGETS.store_seconds)
        found = self._all()
        if groups and self._ordinal is not None:
            found = self._passages(self._ordinal, groups)
        for piece in found:
            deadline.check("looking for text in a very long field")
            yield piece

    def _passages(self, ordinal: int, groups: Sequence[Spellings]) -> Iterator[Piece]:
        starts = sorted(self._snapshot.passages_with(self._seq, ordinal, groups, None))
        for number, start in enumerate(starts):
            if number % PASSAGES_AHEAD == 0:
                self._snapshot.ahead(
                    *(partial(self._passage, one) for one in starts[number:][:PASSAGES_AHEAD])
                )
            text = self._passage(start)
            is_last = start + len(text) == self.total
            yield Piece(start, text, len(text) if is_last else CONTRACT.passage_stride_chars)

    def _passage(self, start: int) -> str:
        return self.read(start, start + CONTRACT.passage_chars)

    def _all(self) -> Iterator[Piece]:
        """Every chunk, each read once."""
        rows = self._snapshot.chunks(self._big)
        here = next(rows, "")
        for number, after in enumerate(rows):
            yield Piece(number * CHUNK, here + after[:OVERLAP], CHUNK)
            here = after
        yield Piece((self._big.chunks - 1) * CHUNK, here, CHUNK)


def text_of(snapshot: Snapshot, record: Stored, name: str, ordinal: int | None) -> Text:
    """The text of a string field of a record."""
    if name in record.big:
        return ChunkedText(snapshot, record.seq, record.big[name], ordinal)
    return InlineText(searched_text(find(record.data, name)))
