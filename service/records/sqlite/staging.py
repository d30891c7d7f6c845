"""Prepares hidden streams, and replaces visible streams with them in one short commit.

    with staging(writer, [("mail", "messages")]) as stage:
        stage.keep_manifests()
        ...                    # rows for mail/messages go into a hidden stream
        stage.publish()

A hidden stream has a name that no row can have, and its own ordinals and records, so readers do not
see it. While rows are staged, their changes get versions above those of all other writers.
`publish` continues the log of the old stream in the new one: an unchanged record keeps its
versions, a missing one becomes a deletion. So bookmarks of the old stream stay valid. Then one
commit swaps the names. Leftovers are erased in short transactions; those of a killed process are
erased by the next one that stages.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from evidence.errors import NotFound, Unavailable
from evidence.work import Deadline
from service.records.writing.attachments import take_attachments
from service.records.writing.arrivals import Stored, differing, later_times, time_before
from service.records.intake import Counts
from evidence.manifest import StreamManifest
from service.records.engine.large import LargeValue, Place
from service.records.engine.scopes import Scopes
from service import database_files
from service.records.sqlite.catalog import Catalog
from service.records.writing.streams import declare

#: Leftovers are erased in transactions of this length, so that others can write between them.
HOLD_SECONDS: Final = 0.4
BATCH_RECORDS: Final = 200
#: The range of versions left to other writers meanwhile.
RESERVED_VERSIONS: Final = 1 << 33

_STREAM = """
SELECT s.id FROM stream s JOIN connection c ON c.id = s.connection
WHERE c.connection_id = ? AND s.name = ?
"""
_NEWEST = "SELECT coalesce(max(version), 0) FROM change WHERE stream = ?"
_PAIRS = """
SELECT o.record_key, o.seq, o.deleted, n.seq, CAST(d.data AS BLOB), d.big,
  CAST(e.data AS BLOB), e.big, d.emitted_at, d.changed, e.emitted_at, o.at, n.at
FROM record o LEFT JOIN record n ON n.stream = ? AND n.record_key = o.record_key
LEFT JOIN document d ON d.seq = o.seq LEFT JOIN document e ON e.seq = n.seq
WHERE o.stream = ? AND o.record_key > ? ORDER BY o.record_key LIMIT ?
"""
_BURY = """
INSERT INTO record (seq, stream, record_key, at, cursor, thread, place, deleted)
SELECT ?, ?, record_key, at, cursor, thread, place, 1 FROM record WHERE seq = ?
"""
_BURIED = """
INSERT INTO tombstone (seq, deleted_at)
SELECT ?, coalesce((SELECT deleted_at FROM tombstone WHERE seq = ?), ?)
"""
_FOLLOW = """
INSERT INTO change (stream, version, seq, fields, was_at, left_at)
SELECT ?, c.version, p.value ->> 1, c.fields, c.was_at, c.left_at
FROM json_each(?) p CROSS JOIN change c ON c.seq = p.value ->> 0
"""
#: Keeps the vectors of records that are the same in both streams.
_VECTORS = """
INSERT OR IGNORE INTO vector (set_id, seq, ordinal, start, stop, hash, lot, vector)
SELECT v.set_id, p.value ->> 1, n.ordinal, v.start, v.stop, v.hash, v.lot, v.vector
FROM json_each(?) p CROSS JOIN vector v ON v.seq = p.value ->> 0
JOIN scope o ON o.ordinal = v.ordinal JOIN scope n ON n.stream = ? AND n.field = o.field
"""
_LOG = """
INSERT INTO change (stream, version, seq, fields, was_at, left_at) VALUES (?, ?, ?, ?, ?, ?)
"""
_TIMES = "UPDATE document SET emitted_at = ?, changed = ? WHERE seq = ?"
_HIDDEN = "SELECT id, connection FROM stream WHERE name < char(1)"
_RECORDS = """
SELECT r.seq, d.big FROM record r LEFT JOIN document d ON d.seq = r.seq
WHERE r.stream = ? ORDER BY r.record_key LIMIT ?
"""


@dataclass(slots=True)
class _Pair:
    """A stream and the hidden one that replaces it; None if nothing does."""

    old: int
    new: int | None
    newest: int


@dataclass(slots=True)
class Stage:
    """The pending changes of `staging`."""

    writer: Catalog
    manifests: dict[tuple[str, str], StreamManifest]
    counts: Counts = field(default_factory=Counts)

    def keep_manifests(self, targets: Iterable[tuple[str, str]] | None = None) -> None:
        """Declares new streams like the old ones, by default all."""
        for target in self.manifests if targets is None else targets:
            declare(self.writer, target[0], [self.manifests[target]])

    def publish(self, arrived: Counts | None = None) -> Counts:
        """Publishes the staged streams; returns the resulting counts of changes.

        A stream that was not declared again is removed. Raises `Unavailable`, having changed
        nothing, if another process wrote to a stream meanwhile.
        """
        db = self.writer.db
        pairs = [self._pair(target) for target in self.manifests]
        for pair in pairs:
            if pair.new is not None:
                self._continue_log(pair.old, pair.new)
        with self.writer.transaction():
            for pair in pairs:
                if db.execute(_NEWEST, (pair.old,)).fetchone()[0] != pair.newest:
                    raise Unavailable(
                        "Records were written to the stream while the command was running. Run "
                        "the command again."
                    )
            self.writer.staged = {}
            names = [name for _, name in self.manifests]
            rename = "UPDATE stream SET name = ? WHERE id = ?"
            db.executemany(rename, [(f"\0old {pair.old}", pair.old) for pair in pairs])
            db.executemany(rename, [(name, pair.new) for name, pair in zip(names, pairs)])
        return self.counts

    def _pair(self, target: tuple[str, str]) -> _Pair:
        db = self.writer.db
        (old,) = db.execute(_STREAM, target).fetchone()
        new = db.execute(_STREAM, (target[0], self.writer.staged[target])).fetchone()
        (newest,) = db.execute(_NEWEST, (old,)).fetchone()
        return _Pair(old, new and new[0], newest)

    def _continue_log(self, old: int, new: int) -> None:
        """Copies the log of the old stream to the new one, followed by the changes."""
        last, follows, same = "", True, 0
        while follows:
            deadline = Deadline.after(HOLD_SECONDS)
            with self.writer.transaction():
                while follows and not deadline.expired():
                    rows = self.writer.db.execute(_PAIRS, (new, old, last, BATCH_RECORDS))
                    if follows := bool(batch := rows.fetchall()):
                        last = batch[-1][0]
                        same += self._follow(new, batch)
        live = "SELECT records FROM stream WHERE id = ?"
        self.counts.new += self.writer.db.execute(live, (new,)).fetchone()[0] - same

    def _follow(self, stream: int, batch: Sequence[Any]) -> int:
        """Continues the logs of some records; returns how many are in both streams."""
        db, now = self.writer.db, datetime.now(UTC).isoformat(timespec="seconds")
        now = now.replace("+00:00", "Z")
        fresh: list[tuple[int, str | None, int, str | None]] = []
        follow, times, relog, buried, same = [], [], [], [], []
        for _, seq, deleted, twin, data, big, new_data, new_big, first, changed, *moved in batch:
            emitted_at, was_at, at = moved
            before = time_before(was_at)
            if twin is None:
                twin = self.writer.take("next_seq")
                buried.append((twin, seq))
                if not deleted:
                    fresh.append((twin, None, before, now))
                    self.counts.deleted += 1
            elif not deleted and new_data is not None:
                relog.append((twin,))
                old = Stored(seq, deleted, data, big, first, changed, was_at)
                if fields := self._compare(old, new_data, new_big):
                    departed_at = emitted_at if was_at != at else None
                    fresh.append((twin, orjson.dumps(sorted(fields)).decode(), before, departed_at))
                    changed = later_times(changed, fields, emitted_at)
                    self.counts.changed += 1
                else:
                    self.counts.unchanged += 1
                    same.append((seq, twin))
                times.append((first, changed, twin))
                self._keep_references(seq, twin, new_data)
            follow.append((seq, twin))
        db.executemany("DELETE FROM change WHERE seq = ?", relog)
        db.executemany(_BURY, [(new, stream, old) for new, old in buried])
        db.executemany(_BURIED, [(new, old, now) for new, old in buried])
        db.execute(_VECTORS, (orjson.dumps(same).decode(), stream))
        db.execute(_FOLLOW, (stream, orjson.dumps(follow).decode()))
        version = self.writer.take("next_version", len(fresh))
        db.executemany(_LOG, [(stream, n, *entry) for n, entry in enumerate(fresh, start=version)])
        db.executemany(_TIMES, times)
        return len(relog)

    def _keep_references(self, old: int, new: int, data: bytes) -> None:
        """Gives a record the references of its old version to blobs that it only names."""
        if delivered := self.writer.run(self.writer.statements.references, old):
            self.writer.keep(0, new, take_attachments(orjson.loads(data)), delivered)

    def _compare(self, old: Stored, data: bytes, big: str | None) -> set[str]:
        """The names of the top-level fields that differ between a stored record and a new one."""
        if (old.json, old.big) == (data, None):
            return set()
        places: dict[str, Place] = orjson.loads(big) if big else {}
        read = self.writer.read_large
        large = {name: LargeValue(read(at), at[3], at[4]) for name, at in places.items()}
        return differing(old, orjson.loads(data), large, read)


@contextmanager
def staging(writer: Catalog, targets: Sequence[tuple[str, str]]) -> Iterator[Stage]:
    """Directs rows for some streams, (connection id, name), into hidden ones until published.

    Raises `NotFound` for a stream that does not exist, `Unavailable` if another process is staging.
    Leftovers are erased at the end.
    """
    with database_files.alone(writer.path):
        erase_hidden(writer)
        manifests = {target: _manifest(writer, *target) for target in targets}
        (version,) = writer.db.execute(
            "SELECT coalesce((SELECT value FROM meta WHERE key = 'next_version'), 1)"
        ).fetchone()
        writer.staged_version = version + RESERVED_VERSIONS
        writer.staged = {target: f"\0new {number}" for number, target in enumerate(targets)}
        try:
            yield Stage(writer, manifests)
        finally:
            writer.staged = {}
            erase_hidden(writer)


def _manifest(writer: Catalog, connection_id: str, name: str) -> StreamManifest:
    for manifest in writer.manifests(connection_id):
        if manifest.name == name:
            return manifest
    raise NotFound(f"The store has no stream {connection_id}/{name}. List the streams: rung stats.")


def erase_hidden(writer: Catalog) -> None:
    """Erases all hidden streams with all their data."""
    for stream, connection in writer.db.execute(_HIDDEN).fetchall():
        fields = "SELECT field, ordinal FROM scope WHERE stream = ?"
        ordinals = dict(writer.db.execute(fields, (stream,)))
        follows = True
        while follows:
            deadline = Deadline.after(HOLD_SECONDS)
            with writer.transaction():
                while follows and not deadline.expired():
                    follows = _erase_some(writer, stream, Scopes(ordinals, ordinals))
        _forget(writer, stream, connection)


def _erase_some(writer: Catalog, stream: int, scopes: Scopes) -> bool:
    """Erases a piece of a stream; returns whether there was one."""
    db, index = writer.db, writer.index()
    rows = db.execute(_RECORDS, (stream, BATCH_RECORDS)).fetchall()
    for seq, big in rows:
        index.drop(scopes, seq)
        for location in orjson.loads(big).values() if big else ():
            index.drop_value(location)
    index.apply_drops()
    index.apply_adds()
    writer.sweep(writer.release([(seq, None) for seq, _ in rows]))
    for table in ("document", "tombstone", "change", "record"):
        db.executemany(f"DELETE FROM {table} WHERE seq = ?", [(seq,) for seq, _ in rows])
    if rows:
        writer.note(len(rows))
    return bool(rows)


def _forget(writer: Catalog, stream: int, connection: int) -> None:
    """Removes a stream without records, and its connection if that was the last stream."""
    with writer.transaction():
        writer.db.execute("DELETE FROM scope WHERE stream = ?", (stream,))
        writer.db.execute("DELETE FROM stream WHERE id = ?", (stream,))
        writer.db.execute(
            "DELETE FROM connection WHERE id = ? AND NOT EXISTS"
            " (SELECT 1 FROM stream WHERE connection = connection.id)"
            " AND NOT EXISTS (SELECT 1 FROM blob WHERE connection = connection.id)",
            (connection,),
        )
