"""A file that is imported, and what a reader yields: (line number, row), or (line number, message).

A message explains why the row of a line is refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from service.importing.text_repair import Repair
from service.records.intake import Row

Item = tuple[int, Row | str]


@dataclass(slots=True)
class Source:
    """A file that is being read: its name, its format, and the repairs made to its text."""

    name: str
    format: str
    file: BinaryIO
    repair: Repair

    @property
    def folder(self) -> str:
        """The file's name without folder and extension."""
        return Path(self.name).stem
