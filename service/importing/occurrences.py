"""Counts how often rows came, for files of more rows than fit into memory."""

import sqlite3
from typing import Final

_COUNT: Final = """
INSERT INTO seen (key, n) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET n = n + 1 RETURNING n
"""


class Occurrences:
    """Counts of keys, which are integers of 63 bits. Those of many keys are in a temporary file."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)  # nobody else can open it
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, n INTEGER NOT NULL)")

    def add(self, key: int) -> int:
        """Counts a key; returns how often it came."""
        ((number,),) = self._file.execute(_COUNT, (key,))
        return int(number)

    def clear(self) -> None:
        """Forgets all keys."""
        self._file.execute("DELETE FROM seen")
