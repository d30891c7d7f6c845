"""The sidecar of a store: small tables that change often, so that an import never delays them.

    with sidecar.transaction(writes=False) as rows:
        ((seen,),) = rows("SELECT seen FROM access_clock WHERE id = ?", 1)

For a store file, the sidecar is the SQLite file `<store>.access`. For a store in PostgreSQL, it is
several tables in the same database. Both engines share the SQL of statements, with `?` for values.

Sign-in keeps entries in it: small values with an expiry, an owner and a use count.

    with Entries(sidecar).changing() as kept:
        kept.put("code", code, {"client": "c_1"}, seconds=60, owner="grt_1")
        kept.use("code", code).uses        # 1 for whoever is first, in whichever worker

Their keys are stored as SHA-256, so the file contains no code, token or session. Times are seconds
since 1970.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from evidence.errors import RateLimited, Unavailable
from evidence.work import Deadline
from service import keys
from service.place import Database, Place
from service.records.access_tables import SCRIPTS

#: Runs a statement with its values and returns all rows.
Rows = Callable[..., list[tuple[Any, ...]]]

BUSY_SECONDS: Final = 5
#: Waiting for a lock ends before the statement times out, so that the client is asked to try again.
_LIMITS: Final = (
    f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'",
    f"SET LOCAL statement_timeout = '{2 * BUSY_SECONDS}s'",
)


class Sidecar:
    """The sidecar of one store. Opens nothing until it is used. Safe to share between threads.

    On a read-only disk, and for a `fixed` store, it is off: every transaction
    raises `Unavailable` (`access_off`) with the reason.
    """

    def __init__(self, place: Place, *, fixed: bool = False) -> None:
        self.place, self._fixed = place, fixed
        self._local = threading.local()
        self._pool: Any = None
        self._begin = self._in_file
        if isinstance(place, Database):
            from service.records.postgres.connections import Pool

            self._pool, self._begin = Pool(place.url), self._in_database
        else:
            self.path, self._store = Path(f"{place}.access"), place

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Rows]:
        """One transaction.

        Its writes are durable if it ends without an exception. Without `writes` it reads one
        snapshot and does not wait for writers. Raises `Unavailable` if the sidecar is off, or still
        busy after `BUSY_SECONDS`.
        """
        if self._fixed:
            raise _off("the store is a read-only download")
        with self._begin(writes) as rows:
            yield rows

    @contextmanager
    def _in_database(self, writes: bool) -> Iterator[Rows]:
        from service.records.postgres.connections import explained

        opening = [("BEGIN" if writes else "BEGIN READ ONLY", ()), *((one, ()) for one in _LIMITS)]
        with explained(), self._pool.loan(Deadline.after(BUSY_SECONDS)) as loan:
            loan.run(*opening)
            yield lambda sql, *values: loan.run((sql.replace("?", "%s"), values))[0]
            loan.db.commit()

    @contextmanager
    def _in_file(self, writes: bool) -> Iterator[Rows]:
        try:
            db = self._connection()
            db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield lambda sql, *values: db.execute(sql, values).fetchall()
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        except sqlite3.DatabaseError as error:
            self.close()
            if "locked" in str(error):
                raise Unavailable(
                    f"{self.path.name} has been busy for {BUSY_SECONDS} seconds. Try again.",
                    code="store_unavailable",
                ) from error
            raise _off(f"{self.path.name}: {error}") from error
        except OSError as error:
            raise _off(f"{self.path.name}: {error.strerror}") from error

    def close(self) -> None:
        """Closes this thread's connection to a file, or the pool of a database."""
        kept = getattr(self._local, "kept", None)
        if kept is not None:
            self._local.kept = None
            kept[1].close()
        if self._pool is not None:
            self._pool.close()

    def _connection(self) -> sqlite3.Connection:
        """Returns this thread's connection; reopens it if the file was replaced."""
        if not self.path.exists():
            self._make()
        seen = os.stat(self.path)
        stamp = os.getpid(), seen.st_dev, seen.st_ino
        kept: tuple[Any, sqlite3.Connection] | None = getattr(self._local, "kept", None)
        if kept is None or kept[0] != stamp:
            self._local.kept = kept = stamp, _opened(self.path)
        return kept[1]

    def _make(self) -> None:
        """Creates an empty file with the owner and permissions of the store."""
        store = os.stat(self._store)
        mode = store.st_mode & 0o666
        with suppress(FileExistsError):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            with suppress(OSError):
                os.fchown(file, store.st_uid, store.st_gid)
            os.close(file)


def _opened(path: Path) -> sqlite3.Connection:
    """Opens the file and brings its tables up to date."""
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        if _version(db) != len(SCRIPTS):
            db.execute("BEGIN IMMEDIATE")
            for number, script in enumerate(SCRIPTS[_version(db) :], start=_version(db) + 1):
                for statement in script.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        if _version(db) > len(SCRIPTS):
            raise _off(f"{path.name} was written by a newer Rung. Install that version or later")
        return db
    except BaseException:
        db.close()
        raise


def _version(db: sqlite3.Connection) -> int:
    with closing(db.execute("PRAGMA user_version")) as rows:
        return int(rows.fetchone()[0])


def _off(why: str) -> Unavailable:
    return Unavailable(f"Access data cannot be written: {why}.", code="access_off")


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
_ONE: Final = " WHERE kind = ? AND key = ? AND expires_at > ?"
_PRUNE: Final = (
    "DELETE FROM access_entry WHERE kind = ? AND key IN (SELECT key FROM (SELECT key,"
    " ROW_NUMBER() OVER (PARTITION BY uses > 0 ORDER BY used_at DESC, expires_at DESC) AS place"
    " FROM access_entry WHERE kind = ? AND owner = ?) AS ordered WHERE place > ?)"
)


class Entry(NamedTuple):
    """A value with its owner. `uses` counts its uses, `used_at` is the time of the first; before
    that, the time at which the entry was added."""

    body: dict[str, Any]
    owner: str
    uses: int
    used_at: int


class Kept:
    """The entries inside one transaction, without expired ones."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.now = int(datetime.now(UTC).timestamp())

    def put(
        self, kind: str, key: str, body: dict[str, Any], *, seconds: int, owner: str = ""
    ) -> None:
        """Adds an entry, or replaces the body of an existing one. Removes expired entries."""
        self._rows("DELETE FROM access_entry WHERE expires_at <= ?", self.now)
        values = orjson.dumps(body).decode(), self.now, self.now + seconds
        self._rows(_ADD + _REPLACE, kind, _hashed(key), owner, *values)

    def get(self, kind: str, key: str) -> Entry | None:
        """Returns an entry, or None."""
        return _entry(self._rows(_GET + _ONE, kind, _hashed(key), self.now))

    def use(self, kind: str, key: str) -> Entry | None:
        """Counts a use and returns the entry, or None."""
        returning = f"{_ONE} RETURNING body, owner, uses, used_at"
        return _entry(self._rows(_USE + returning, self.now, kind, _hashed(key), self.now))

    def extend(self, kind: str, key: str, *, seconds: int) -> bool:
        """Sets the remaining lifetime of an entry; False if it does not exist."""
        statement = f"UPDATE access_entry SET expires_at = ?{_ONE} RETURNING key"
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
            window = f"{seconds // 60} minutes" if seconds > 60 else "a minute"
            raise RateLimited(
                f"Too many attempts: the limit is {most} in {window}.",
                hint=f"Retry in {wait} seconds.{instead}",
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
        found: dict[str, list[Entry]] = {}
        for row in self._rows(f"{_GET} WHERE kind = ? AND expires_at > ?", kind, self.now):
            found.setdefault(row[1], []).append(Entry(orjson.loads(row[0]), *row[1:]))
        return found


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
