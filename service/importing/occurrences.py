"""Counts how often rows came, for files of more rows than fit into memory."""

import sqlite3
from collections import Counter
from typing import Final

#: Keys that are counted in memory; the counts of more are in a temporary file.
IN_MEMORY: Final = 100_000
_COUNT: Final = """
INSERT INTO seen (key, n) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET n = n + excluded.n
"""


class Occurrences:
    """Counts of keys, which are integers of 63 bits."""

    def __init__(self) -> None:
        self._counts = Counter[int]()
        self._file: sqlite3.Connection | None = None

    def add(self, key: int) -> int:
        """Counts a key; returns how often it came."""
        self._counts[key] += 1
        number = self._counts[key]
        if self._file is not None:
            found = self._file.execute("SELECT n FROM seen WHERE key = ?", (key,)).fetchone()
            number += found[0] if found else 0
        if len(self._counts) >= IN_MEMORY:
            self._write()
        return number

    def clear(self) -> None:
        """Forgets all keys."""
        self._counts.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self) -> None:
        if self._file is None:
            self._file = sqlite3.connect("")  # a temporary file that nobody else can open
            self._file.execute("PRAGMA journal_mode = OFF")
            self._file.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        with self._file:
            self._file.executemany(_COUNT, sorted(self._counts.items()))
        self._counts.clear()
