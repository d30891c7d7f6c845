"""Copies a whole store to another one, on the same or a different engine, and verifies the copy.

The copy includes connections, manifests, records, deletions, large values, the change log with its
versions, blobs, grants, packages and the secret, so tokens, cursors and bookmarks remain valid.
Everything derived from records is rebuilt. The source is read in one snapshot. The target is
written in one transaction: until it commits, readers of the target see an empty store.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final

import orjson

from evidence.errors import InvalidRequest, Unavailable
from service import place
from service.records.engine.content import Content, Row
from service.records.engine import Snapshot
from service.records.engine.large import Place
from service.records.opening import engine_of, open_reader
from service.records.writing import Writing

#: The keys of the store's own data that are copied.
NOTES: Final = ("secret", "history")
#: The parts in the order in which they are written, and the rows of a batch.
PARTS: Final = (
    *("connection", "stream", "record", "chunk", "change", "commit_log"),
    *("blob", "blob_part", "blob_use", "grant", "package", "member"),
)
BATCH_ROWS: Final = 500
LARGE_ROWS: Final = {"chunk": 100, "blob_part": 16}
#: The time limit for reading a store, in seconds: a week.
READ_SECONDS: Final = 604_800
#: The columns with the number of a connection, and of a stream.
_CONNECTION: Final = dict(stream=1, record=1, chunk=2, change=3, blob=1, blob_part=2, blob_use=3)
_STREAM: Final = {"record": 2, "change": 0}


class Walk:
    """Reads all rows of a store, part by part; counts and hashes them.

    Connections and streams are numbered by name, large values in the order of their records, so
    that stores with the same content have the same rows.
    """

    def __init__(self, content: Content, on_row: Callable[[], None]) -> None:
        self.counts = Counter[str]()
        self.hash = hashlib.sha256()
        self._content, self._on_row = content, on_row
        self._connections, self._streams = dict[int, int](), dict[int, int]()

    def rows(self, part: str) -> Iterator[Row]:
        """Yields the rows of a part. Parts must be read in the order of `PARTS`."""
        for row in self._rows(part):
            self.counts[part] += 1
            self.hash.update(orjson.dumps((part, row), default=_digest))
            self._on_row()
            yield row

    def _rows(self, part: str) -> Iterator[Row]:
        rows = self._content.rows(part)
        if part == "connection":
            return _ranked(sorted(rows, key=lambda row: row[1:2]), self._connections)
        rows = self._renumbered(part, rows) if part != "chunk" else rows
        if part == "stream":
            return _ranked(sorted(rows, key=lambda row: row[1:3]), self._streams)
        if part == "record":
            return self._records(rows)
        return self._chunks(rows) if part == "chunk" else rows

    def _renumbered(self, part: str, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            new = list(row)
            for columns, numbers in (_CONNECTION, self._connections), (_STREAM, self._streams):
                if part in columns:
                    new[columns[part]] = numbers[row[columns[part]]]
            yield tuple(new)

    def _records(self, rows: Iterator[Row]) -> Iterator[Row]:
        first = 1
        for *row, big in rows:
            places: dict[str, Place] = orjson.loads(big) if big else {}
            for name, (_, chunks, *rest) in places.items():
                places[name] = (first, chunks, *rest)  # type: ignore[assignment]
                first += chunks
            yield *row, orjson.dumps(places).decode() if big else None

    def _chunks(self, rows: Iterator[Row]) -> Iterator[Row]:
        first = 1
        for connection, big in rows:
            for value, chunks, *_ in orjson.loads(big).values():
                for no, text in enumerate(self._content.chunks(value, chunks)):
                    yield first, no, self._connections[connection], text
                first += chunks


def copy(source: place.Place, target: place.Place, on_row: Callable[[str], None]) -> Walk:
    """Copies a store to a new one, which becomes visible once it is verified.

    Calls `on_row` with the step for each row.
    """
    with closing(open_reader(source)) as reader, engine_of(target).new_store() as writer:
        with writer.transaction():
            with reader.snapshot(READ_SECONDS) as snapshot:
                copied = fill(snapshot, writer, on_row)
            complete(writer, copied, on_row)
        writer.finish()
    return copied


def fill(source: Snapshot, writer: Writing, on_row: Callable[[str], None]) -> Walk:
    """Copies all rows of a store to another one, inside a transaction of its writer.

    Calls `on_row` with the step for each row. Raises `InvalidRequest` if the target is not empty.
    """
    target = writer.content()
    if any(next(target.rows(part), None) for part in ("connection", "grant", "package")):
        raise InvalidRequest("The target is not empty. Copy into a new file or an empty database.")
    for key in NOTES:
        if value := source.meta(key):
            writer.set_meta(key, value)
    content = source.content()
    walk = Walk(content, lambda: on_row("copied"))
    for part in PARTS:
        rows = walk.rows(part)
        while batch := list(islice(rows, LARGE_ROWS.get(part, BATCH_ROWS))):
            target.put(part, batch)
    target.settle(content.version())
    return walk


def complete(writer: Writing, original: Walk, on_row: Callable[[str], None]) -> None:
    """Rebuilds derived data in the same transaction; raises `Unavailable` if the copy differs."""
    writer.rebuild(lambda: on_row("indexed"))
    arrived = Walk(writer.content(), lambda: on_row("verified"))
    for part in PARTS:
        for _ in arrived.rows(part):
            pass
    if (original.counts, original.hash.digest()) != (arrived.counts, arrived.hash.digest()):
        raise Unavailable("The copy differs from the source and was discarded. Try again.")


def _ranked(rows: Sequence[Row], numbers: dict[int, int]) -> Iterator[Row]:
    """Numbers sorted rows from 1; adds {old number: new number} to `numbers`."""
    for number, row in enumerate(rows, start=1):
        numbers[row[0]] = number
        yield number, *row[1:]


def _digest(value: Any) -> str:
    return hashlib.sha256(value).hexdigest()
