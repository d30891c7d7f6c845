"""Skips parsing a record if the store already contains the rows from the same bytes.

Each row of such a record has a digest of the bytes and of everything else that determines its
content, including the code. The store deletes the digest when the row changes. The parsing process
receives the digests at the start of the import, which reads the rows of a skipped record from the
store. If a row has changed since then, that record and all later ones are parsed.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from service.importing.source import Raw, Source
from service.records.intake import Row

#: The libraries whose results are stored.
_LIBRARIES: Final = ("charset-normalizer", "inscriptis", "lxml", "pypdf", "webencodings")
_DIGEST_BYTES: Final = 8


class Unchanged(NamedTuple):
    """The digests of all rows of a record, and the size of its bytes."""

    digests: list[int]
    size: int


class Digests:
    """The digests of a store, in ascending order, in the memory that they take as integers."""

    def __init__(self, content: bytes) -> None:
        self._sorted, self.size = array("q", content), len(content)

    def of_rows(self, record: bytes) -> list[int]:
        """The digests of all rows of a record; empty if not all of them are stored."""
        digests = list[int]()
        while not self._has(last := row_digest(record, len(digests), last=True)):
            digests.append(row_digest(record, len(digests), last=False))
            if not self._has(digests[-1]):
                return []
        return [*digests, last]

    def _has(self, digest: int) -> bool:
        index = bisect_left(self._sorted, digest)
        return index < len(self._sorted) and self._sorted[index] == digest


def record_digest(context: str, source: Source, raw: Raw) -> bytes:
    """A hash of all that the rows of a record depend on."""
    choices = (context, _code(), source.format, source.reading, source.repair.replace, raw.context)
    digest = blake2b(orjson.dumps(choices, default=repr))
    digest.update(raw.content)
    return digest.digest()


def row_digest(record: bytes, number: int, *, last: bool) -> int:
    """The digest of a row of a record, 64 bits with a sign."""
    row = blake2b(record + b"%d %d" % (number, last), digest_size=_DIGEST_BYTES)
    return int.from_bytes(row.digest(), signed=True)


def with_digests(rows: Iterator[Row | str], record: bytes, source: Source) -> Iterator[Row | str]:
    """The rows of a record with their digests.

    The last one has none if a row is refused or something is reported that only parsing can tell.
    """
    before, row, number, complete = source.reported, None, -1, True
    for number, following in enumerate(rows):
        if row is not None:
            yield row
        row = following
        if isinstance(row, Row):
            row = row._replace(digest=row_digest(record, number, last=False))
        else:
            complete = False
    if isinstance(row, Row):
        complete = complete and source.reported == before
        row = row._replace(digest=row_digest(record, number, last=True) if complete else None)
    if row is not None:
        yield row


def parsing_files() -> list[Path]:
    """The modules that decide what a mail becomes."""
    folders = (Path(__file__).parent, Path(sys.modules["evidence"].__path__[0]))
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


@cache
def _code() -> str:
    """A hash of the code that parses, and of the versions of the libraries that it uses."""
    code = blake2b(sys.version.encode())
    for path in parsing_files():
        code.update(path.read_bytes())
    for name in _LIBRARIES:
        try:
            code.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            pass
    return code.hexdigest()
