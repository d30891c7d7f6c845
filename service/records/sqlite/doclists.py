"""Reads the FTS5 pages that list each word's rows. SQLite's fts5_index.c describes their format.

A table keeps its index in segments of pages, which merges replace.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import orjson

#: The version of FTS5's format that these functions read, and the row of the list of segments.
FORMAT: Final = 4
STRUCTURE: Final = 10
#: Bits of a row id after the number of its segment, and what a term of a word begins with.
SEGMENT_BITS: Final = 37
WORD: Final = "0"
#: Levels and segments of a table, at most; merges leave far fewer.
LEVELS_MAX, SEGMENTS_MAX = 64, 2_000

_PAGES = """
SELECT t.key, s.key, (SELECT i.pgno FROM {table}_idx i
    WHERE i.segid = s.value AND i.term <= CAST(t.value AS BLOB) ORDER BY i.term DESC LIMIT 1),
  (SELECT i.pgno FROM {table}_idx i
    WHERE i.segid = s.value AND i.term > CAST(t.value AS BLOB) ORDER BY i.term LIMIT 1)
FROM json_each(?) t CROSS JOIN json_each(?) s
"""
_BLOCKS = """
SELECT r.key, d.id, d.block FROM json_each(?) r
CROSS JOIN {table}_data d ON d.id BETWEEN r.value ->> 0 AND r.value ->> 1
"""


class Damaged(ValueError):
    """An index that cannot be read: damaged, or in another format."""


class Segment(NamedTuple):
    """A segment with the numbers of its first and its last page."""

    id: int
    first: int
    last: int


#: The pages of each segment that may list a word, the newest segment first.
Pages = tuple[tuple[bytes, ...], ...]


def pages_of(db: sqlite3.Connection, table: str, words: Sequence[str]) -> list[Pages]:
    """The pages that list each word; raises `Damaged`."""
    segments = _segments(db, table)
    terms = orjson.dumps([WORD + word for word in words]).decode()
    numbers = orjson.dumps([segment.id for segment in segments]).decode()
    rows = db.execute(_PAGES.format(table=table), (terms, numbers)).fetchall()
    runs = [_run(segments[number], begin, end) for _, number, begin, end in rows]
    blocks = [list[bytes]() for _ in runs]
    arrays = orjson.dumps(runs).decode()
    for run, _, block in sorted(db.execute(_BLOCKS.format(table=table), (arrays,))):
        blocks[run].append(block)
    pages = [[()] * len(segments) for _ in words]
    for (word, number, *_), (first, last), run_blocks in zip(rows, runs, blocks):
        if len(run_blocks) != max(0, last - first + 1) or {*map(type, run_blocks)} - {bytes}:
            raise Damaged(f"pages of {table} are missing")
        pages[word][number] = tuple(run_blocks)
    return [tuple(each) for each in pages]


def _run(segment: Segment, begin: int | None, end: int | None) -> tuple[int, int]:
    """The first and the last row of pages; the numbers have a bit for another index."""
    # While a merge goes on, the index of pages still has those that it has removed.
    first = max(segment.first, (begin or 0) >> 1)
    last = min(segment.last, segment.last if end is None else end >> 1)
    base = segment.id << SEGMENT_BITS
    return base + first, base + last


def _segments(db: sqlite3.Connection, table: str) -> list[Segment]:
    """All segments of a table, the newest first."""
    version = db.execute(f"SELECT v FROM {table}_config WHERE k = 'version'").fetchone()
    row = db.execute(f"SELECT block FROM {table}_data WHERE id = ?", (STRUCTURE,)).fetchone()
    if version != (FORMAT,) or row is None or type(row[0]) is not bytes:
        raise Damaged(f"{table} has an unsupported format")
    return list(segments_of(row[0]))


def segments_of(structure: bytes) -> Iterator[Segment]:
    """The segments that the row of a table lists, the newest first; raises `Damaged`."""
    numbers = _numbers(structure[4:])
    levels, total, _ = next(numbers), next(numbers), next(numbers)
    if levels > LEVELS_MAX or total > SEGMENTS_MAX:  # a newer format begins with a large number
        raise Damaged("the index has too many segments")
    for _ in range(levels):
        _, count = next(numbers), next(numbers)
        if (total := total - count) < 0:
            raise Damaged("the index has more segments than its header declares")
        level = [Segment(next(numbers), next(numbers), next(numbers)) for _ in range(count)]
        yield from reversed(level)


def _numbers(data: bytes) -> Iterator[int]:
    """The numbers of a row, seven bits a byte; raises `Damaged` at its end."""
    number = 0
    for byte in data:
        number = number << 7 | byte & 127
        if number >> SEGMENT_BITS:
            break
        if byte < 128:
            yield number
            number = 0
    raise Damaged("the list of segments is truncated")
