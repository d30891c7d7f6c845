"""A file that is imported, and what a reader yields: (line number, row), or (line number, message).

A message explains why the row of a line is refused.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from service.importing.text_repair import Repair
from service.records.intake import Row

_DAY = re.compile(r"\d{4}-\d\d-\d\d")

Item = tuple[int, Row | str]


@dataclass(frozen=True, slots=True)
class Reading:
    """The owner's choices for reading files; None means detect."""

    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None


@dataclass(slots=True)
class Source:
    """A file that is being read: its name, its format, and the repairs made to its text.

    `notes` are reports for its owner on how it was read; `comma` is True if its numbers are
    likely to have a decimal comma.
    """

    name: str
    format: str
    file: BinaryIO
    repair: Repair
    reading: Reading = Reading()
    notes: list[str] = field(default_factory=list)
    comma: bool | None = None

    @property
    def folder(self) -> str:
        """The file's name without folder and extension."""
        return Path(self.name).stem

    @property
    def stream(self) -> str:
        """The default stream of rows: the file's name, or its folder's if that is a day."""
        path = Path(self.name)
        return path.parent.name or path.stem if _DAY.fullmatch(path.stem) else path.stem
