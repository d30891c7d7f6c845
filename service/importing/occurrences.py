"""Uses temporary files to count rows without an id and to find ids that several files share."""

import sqlite3
from hashlib import sha256
from typing import Final

_COUNT: Final = """
INSERT INTO seen (key, n) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET n = n + 1 RETURNING n
"""


class Occurrences:
    """Counts keys, which are integers of 63 bits.

    With many keys, the counts are in a temporary file.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)  # nobody else can open it
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, n INTEGER NOT NULL)")

    def add(self, key: int) -> int:
        """Counts a key; returns how often it has occurred."""
        ((number,),) = self._file.execute(_COUNT, (key,))
        return int(number)

    def clear(self) -> None:
        """Forgets all keys."""
        self._file.execute("DELETE FROM seen")


_ORIGIN: Final = """
INSERT INTO origin VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET content =
    CASE file WHEN ?2 THEN ?3 ELSE content END RETURNING file, content
"""


class Origins:
    """The first file of a run with each id, and the content of its record, in a temporary file."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("CREATE TABLE origin (key INTEGER PRIMARY KEY, file, content)")

    def first(self, key: str, file: int, content: str) -> bool:
        """Notes a record; returns False if an earlier file has another record with this key."""
        digest = int.from_bytes(sha256(key.encode()).digest()[:8], signed=True)
        ((origin, before),) = self._file.execute(_ORIGIN, (digest, file, content[:16]))
        return bool(origin == file or before == content[:16])
