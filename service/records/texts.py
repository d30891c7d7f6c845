"""Texts that are read by ranges: in memory, or in chunk rows that an index finds matches in."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from evidence.limits import BUDGETS, CONTRACT
from evidence.query import Query, Term
from evidence.work import Deadline
from service.records.sqlite.snapshot import SqliteSnapshot as Snapshot
from service.records import documents
from service.records.engine import Big
from service.records.proof import CHUNK_OVERLAP_CHARS, chunk_text, chunks_matching
from service.records.sqlite.terms import bound, expression

CHUNK = CONTRACT.chunk_chars


class Piece(NamedTuple):
    """A part of a text at `offset`; it may run over its `own` length, so that no match is cut."""

    offset: int
    text: str
    own: int


class Text(Protocol):
    """A text of `total` code points."""

    total: int

    def read(self, start: int, end: int) -> str: ...

    def pieces(self, query: Query, terms: tuple[Term, ...]) -> Iterator[Piece]:
        """The pieces that can hold all `terms`, in order; all pieces without terms."""
        ...


class InlineText:
    """A text that is in memory: one piece."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.total = len(text)

    def read(self, start: int, end: int) -> str:
        return self._text[start:end]

    def pieces(self, query: Query, terms: tuple[Term, ...]) -> Iterator[Piece]:
        yield Piece(0, self._text, self.total)


class ChunkedText:
    """A text in chunk rows: a range costs the rows it lies in, a find the rows that match."""

    def __init__(self, snapshot: Snapshot, big: Big) -> None:
        self._snapshot = snapshot
        self._big = big
        self.total = big.chars

    def read(self, start: int, end: int) -> str:
        if start >= end:
            return ""
        first = start // CHUNK
        text = documents.read_chunks(self._snapshot, self._big, first, (end - 1) // CHUNK)
        return text[start - first * CHUNK : end - first * CHUNK]

    def pieces(self, query: Query, terms: tuple[Term, ...]) -> Iterator[Piece]:
        overlap = max(CHUNK_OVERLAP_CHARS, 2 * len(query.text))
        deadline = Deadline.after(BUDGETS.store_seconds)
        for piece in self._matching(terms, overlap) if terms else self._all(overlap):
            deadline.check("looking for text in a very long field")
            yield piece

    def _matching(self, terms: tuple[Term, ...], overlap: int) -> Iterator[Piece]:
        found = bound(self._snapshot.db, "fts_chunk", terms, self._holds)
        if found.cut:  # further words of a prefix may stand anywhere
            yield from self._all(overlap)
            return
        for number in list(chunks_matching(self._snapshot, self._big, expression(found.terms))):
            yield Piece(
                number * CHUNK, chunk_text(self._snapshot, self._big, number, overlap), CHUNK
            )

    def _holds(self, term: Term) -> bool:
        return any(True for _ in chunks_matching(self._snapshot, self._big, expression((term,)), 1))

    def _all(self, overlap: int) -> Iterator[Piece]:
        """Every chunk, each read once."""
        rows = self._snapshot.chunks(self._big)
        here = next(rows, "")
        for number, after in enumerate(rows):
            yield Piece(number * CHUNK, here + after[:overlap], CHUNK)
            here = after
        yield Piece((self._big.chunks - 1) * CHUNK, here, CHUNK)
