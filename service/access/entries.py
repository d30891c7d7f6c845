"""Sign-in entries in the sidecar: small values with an expiry, an owner and a use count.

    with Entries(sidecar).changing() as kept:
        kept.put("code", code, {"client": "c_1"}, seconds=60, owner="grt_1")
        kept.use("code", code).uses        # 1 for whoever is first, in whichever worker

Their keys are stored as SHA-256, so the sidecar contains no code, token or session. Times are
seconds since 1970.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import orjson

from evidence.errors import RateLimited
from service import keys
from service.access.sidecar import Rows, Sidecar

#: The lifetime, in seconds, of entries that are removed explicitly.
FOREVER: Final = 100 * 365 * 86_400
_COLUMNS: Final = "kind, key, owner, body, uses, used_at, expires_at"
_ADD: Final = f"INSERT INTO access_entry ({_COLUMNS}) VALUES (?, ?, ?, ?, 0, ?, ?)"
_REPLACE: Final = (
    " ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body,"
    " expires_at = excluded.expires_at"
)
_COUNT: Final = (
    f"INSERT INTO access_entry ({_COLUMNS}) VALUES (?, ?, '', '{{}}', 1, 0, ?)"
    " ON CONFLICT (kind, key) DO UPDATE SET uses = access_entry.uses + 1 RETURNING uses"
)
_GET: Final = "SELECT body, owner, uses, used_at FROM access_entry"
_USE: Final = (
    "UPDATE access_entry SET uses = uses + 1,"
    " used_at = CASE WHEN uses = 0 THEN CAST(? AS BIGINT) ELSE used_at END"
)
_BY_KEY: Final = " WHERE kind = ? AND key = ? AND expires_at > ?"
_PRUNE: Final = (
    "DELETE FROM access_entry WHERE kind = ? AND key IN (SELECT key FROM (SELECT key,"
    " ROW_NUMBER() OVER (PARTITION BY uses > 0 ORDER BY used_at DESC, expires_at DESC) AS place"
    " FROM access_entry WHERE kind = ? AND owner = ?) AS ordered WHERE place > ?)"
)

Body = dict[str, Any]


class Entry(NamedTuple):
    """A value with its owner. `uses` counts its uses, `used_at` is the time of the first; before
    that, the time at which the entry was added."""

    body: Body
    owner: str
    uses: int
    used_at: int


class Kept:
    """The entries inside one transaction, without expired ones."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self.time = rows, rows.now
        self.now = int(rows.now.timestamp())

    def put(self, kind: str, key: str, body: Body, *, seconds: int, owner: str = "") -> None:
        """Adds an entry, or replaces the body of an existing one. Removes expired entries."""
        if self._rows.refusal:
            raise self._rows.refusal
        self._rows("DELETE FROM access_entry WHERE expires_at <= ?", self.now)
        values = orjson.dumps(body).decode(), self.now, self.now + seconds
        self._rows(_ADD + _REPLACE, kind, _hashed(key), owner, *values)

    def get(self, kind: str, key: str) -> Entry | None:
        """Returns an entry, or None."""
        return _entry(self._rows(_GET + _BY_KEY, kind, _hashed(key), self.now))

    def use(self, kind: str, key: str) -> Entry | None:
        """Counts a use and returns the entry, or None."""
        returning = f"{_BY_KEY} RETURNING body, owner, uses, used_at"
        return _entry(self._rows(_USE + returning, self.now, kind, _hashed(key), self.now))

    def extend(self, kind: str, key: str, *, seconds: int) -> bool:
        """Sets the remaining lifetime of an entry; False if it does not exist."""
        statement = f"UPDATE access_entry SET expires_at = ?{_BY_KEY} RETURNING key"
        return bool(self._rows(statement, self.now + seconds, kind, _hashed(key), self.now))

    def count(self, kind: str, key: str, *, seconds: int) -> int:
        """Returns the number of calls for a key in the current window, including this one."""
        window = self.now // seconds
        ends = (window + 1) * seconds
        return int(self._rows(_COUNT, kind, _hashed(f"{key} {window}"), ends)[0][0])

    def limit(self, what: str, key: str, most: int, seconds: int, instead: str = "") -> None:
        """Counts a call for a key; raises `RateLimited` after `most` in a window. `instead` is
        advice that needs no waiting."""
        if self.count(f"rate {what}", key, seconds=seconds) > most:
            wait = seconds - self.now % seconds
            window = f"{seconds // 60} minutes" if seconds > 60 else "minute"
            raise RateLimited(
                f"Too many attempts: the limit is {most} per {window}.",
                hint=f"Retry in {wait} s.{instead}",
                retry_after=wait,
            )

    def prune(self, kind: str, owner: str, most: int) -> None:
        """Removes all but the last used entries and the last added unused ones of an owner, `most`
        of each."""
        self._rows(_PRUNE, kind, kind, owner, most)

    def remove(self, kind: str, key: str) -> None:
        """Removes an entry."""
        self._rows("DELETE FROM access_entry WHERE kind = ? AND key = ?", kind, _hashed(key))

    def end(self, kind: str, owner: str) -> None:
        """Removes all entries of a kind and an owner."""
        self._rows("DELETE FROM access_entry WHERE kind = ? AND owner = ?", kind, owner)

    def owned(self, kind: str) -> dict[str, list[Entry]]:
        """All entries of a kind by their owners."""
        entries: dict[str, list[Entry]] = {}
        for row in self._rows(f"{_GET} WHERE kind = ? AND expires_at > ?", kind, self.now):
            entries.setdefault(row[1], []).append(Entry(orjson.loads(row[0]), *row[1:]))
        return entries


class Entries:
    """The entries of one store. Safe to share between threads."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    @contextmanager
    def changing(self) -> Iterator[Kept]:
        """One transaction; see `Sidecar.transaction`."""
        with self._sidecar.transaction() as rows:
            yield Kept(rows)

    @contextmanager
    def reading(self) -> Iterator[Kept]:
        """One transaction that only reads. It does not wait for writers."""
        with self._sidecar.transaction(writes=False) as rows:
            yield Kept(rows)


def _entry(rows: list[tuple[Any, ...]]) -> Entry | None:
    return Entry(orjson.loads(rows[0][0]), *rows[0][1:]) if rows else None


def _hashed(key: str) -> str:
    return keys.hashed(key).hex()
