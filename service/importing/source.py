"""Formats, the files they read, and what a reader yields: (line, row), or (line, message).

A message explains why the row of a line is refused. Another package that adds a format imports from
here, and `Row` from `service.records.intake`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from service.importing.text_repair import Repair
from service.importing.tree import Tree
from service.records.intake import Row

#: Names that say nothing of the rows: days, numbers, hashes.
_NAMELESS = re.compile(r"[\W\d_]+|[0-9a-f-]{32,}", re.IGNORECASE)
NAMELESS = "records"
_HASH = re.compile(r"(?<=.)[ _-][0-9a-f]{32}$")

Item = tuple[int, Row | str]


@dataclass(frozen=True, slots=True)
class Reading:
    """The owner's choices for reading files; None means detect."""

    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    roles: bool = True


@dataclass(slots=True)
class Source:
    """A file that is being read: its name, its format, and the repairs made to its text.

    `notes` are reports for its owner on how it was read; `comma` is True if its numbers are
    likely to have a decimal comma. `tree` has the files beside it.
    """

    name: str
    format: str
    file: BinaryIO
    repair: Repair
    reading: Reading = Reading()
    tree: Tree = field(default_factory=lambda: Tree(""))
    notes: list[str] = field(default_factory=list)
    comma: bool | None = None

    @property
    def folder(self) -> str:
        """The file's name without folder and extension."""
        return Path(self.name).stem

    @property
    def stream(self) -> str:
        """The default stream of rows: the file's name, or its folder's if that says nothing."""
        path = Path(self.name)
        names = (titled(path.stem), path.parent.name, Path(self.tree.path).stem)
        return next((name for name in names if name and not _NAMELESS.fullmatch(name)), NAMELESS)


def titled(stem: str) -> str:
    """The name of a file without the hash that some exporters add."""
    return _HASH.sub("", stem)


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, its file extensions, the first bytes of its files, and its reader.

    Files with `any_extension` are known by their first bytes alone. A folder with all files of
    `folder` is read as one, from the first of them. `manifest` declares the streams if they are
    always the same, or returns them for a source; the others are inferred. The values of an
    `untyped` format are all text, whose types are inferred.
    """

    name: str
    extensions: tuple[str, ...]
    begins: re.Pattern[bytes]
    read: Callable[[Source], Iterator[Item]]
    manifest: dict[str, Any] | Callable[[Source], dict[str, Any]] | None = None
    untyped: bool = False
    any_extension: bool = False
    folder: tuple[str, ...] = ()
