"""Writes vectors for a builder; the SQL is the same in every engine. See `VectorWriting`."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, Final, Protocol

import orjson

from evidence.manifest import parse_stored
from service.records.engine.change_log import NO_TIME
from service.records.engine.vectors import (
    BLOCK_ENTRIES,
    Document,
    TextStream,
    WindowedRecord,
    Windows,
    entry_of,
    ids_of,
)

#: Records that are listed, and documents that are compared, at a time.
PAGE_RECORDS, COMPARED = 200, 50
#: Vectors that are put in blocks, and erased, in one transaction.
PACKED, ERASED = 2_000, 1_000
#: A block is packed anew when so many of its vectors are gone.
GONE_MOST: Final = BLOCK_ENTRIES // 2
#: After every time and seq.
_END: Final = (1 << 63) - 1

_ADD_SET: Final = """
INSERT INTO vector_set (model, dimensions, centre) VALUES (?, ?, ?) ON CONFLICT (model) DO NOTHING
"""
_STREAMS: Final = "SELECT s.id, c.connection_id, s.name, s.manifest FROM"
_FIELDS: Final = "SELECT stream, field, ordinal FROM scope WHERE searchable"
#: The key of the builder that works, with the time until which others wait.
_LEASE: Final = "vector_builder"
_TAKE: Final = f"""
INSERT INTO meta (key, value) VALUES ('{_LEASE}', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
_PROGRESS: Final = """
SELECT (SELECT count(*) FROM vectored WHERE set_id = ? AND whole > 0),
  (SELECT coalesce(sum(records), 0) FROM stream
    WHERE id IN (SELECT stream FROM vector_stream WHERE set_id = ?))
"""
_SAVE_FIELDS: Final = """
INSERT INTO vector_stream (set_id, stream, fields) VALUES (?, ?, ?)
ON CONFLICT (set_id, stream) DO UPDATE SET fields = excluded.fields
"""
_MISSING: Final = """
SELECT r.at, r.seq FROM record r WHERE r.stream = ? AND {live} AND {edge}
AND {exists} (SELECT 1 FROM vectored x WHERE x.seq = r.seq AND x.set_id = ?{begun})
ORDER BY r.at DESC, r.seq DESC LIMIT ?
"""
_DOCUMENTS: Final = """
SELECT d.seq, r.record_key, d.data, d.big FROM document d JOIN record r ON r.seq = d.seq WHERE
"""
_ADD: Final = """
INSERT INTO vector (set_id, seq, ordinal, start, stop, hash, lot, vector)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_DONE: Final = """
INSERT INTO vectored (seq, set_id, stream, whole) VALUES (?, ?, ?, ?)
ON CONFLICT (seq, set_id) DO UPDATE SET whole = excluded.whole
"""
_LOOSE: Final = """
SELECT v.ordinal, v.id, v.seq, v.vector FROM vector v WHERE v.set_id = ? AND v.block IS NULL
ORDER BY v.ordinal, v.id LIMIT ?
"""
_LAST_BLOCK: Final = """
SELECT b.id, b.entries FROM vector_block b WHERE b.id =
  (SELECT max(id) FROM vector_block WHERE set_id = ? AND ordinal = ?)
"""
_ADD_BLOCK: Final = """
INSERT INTO vector_block (set_id, ordinal, width, entries) VALUES (?, ?, ?, ?) RETURNING id
"""
_WORN: Final = """
SELECT id, width, entries FROM vector_block WHERE set_id = ? AND gone >= ? LIMIT 64
"""
_COMPLETE: Final = """
UPDATE vector_set SET complete = 1, version = version + 1 WHERE id = ? AND complete = 0
"""
_NEW_VERSION: Final = "UPDATE vector_set SET version = version + 1 WHERE id = ?"


class Writer(Protocol):
    """The methods of a writer that are used here."""

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]: ...

    def run_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None: ...

    def quiet_transaction(self) -> AbstractContextManager[None]:
        """A transaction that changes no record."""


class VectorTables:
    """See `engine.vectors.VectorWriting`."""

    in_list: ClassVar[str]
    live: ClassVar[str]
    #: The tables of visible streams and their connections.
    source: ClassVar[str]
    #: Lock rows `d`, `v` or `b` until the commit; rows that others have locked are left out, so
    #: that this never waits for an import.
    unchanged, locked = "", ""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def list_parameter(self, numbers: Iterable[int]) -> Any:
        """The parameter of `in_list`."""
        raise NotImplementedError

    def sets(self) -> list[tuple[int, str]]:
        return [(row[0], row[1]) for row in self._writer.run("SELECT id, model FROM vector_set")]

    def open_set(self, model: str, dimensions: int, centre: bytes) -> int:
        with self._writer.quiet_transaction():
            self._writer.run(_ADD_SET, model, dimensions, centre)
            ((id,),) = self._writer.run("SELECT id FROM vector_set WHERE model = ?", model)
        return int(id)

    def streams(self) -> list[TextStream]:
        rows = self._writer.run(f"{_STREAMS} {self.source}")
        ordinals = dict[int, dict[str, int]]()
        for stream, name, ordinal in self._writer.run(_FIELDS):
            ordinals.setdefault(stream, {})[name] = ordinal
        return [
            TextStream(id, connection_id, name, fields, parsed.roles.get("primary-title"))
            for id, connection_id, name, manifest in rows
            for own, parsed in [(ordinals.get(id, {}), parse_stored(manifest))]
            if (fields := {n: own[n] for n in parsed.semantic_fields if n in own})
        ]

    def lease(self, owner: str, seconds: float, is_gone: Callable[[str], bool]) -> str | None:
        now = datetime.now(UTC).timestamp()
        with self._writer.quiet_transaction():
            rows = self._writer.run(f"SELECT value FROM meta WHERE key = '{_LEASE}'")
            holder, _, until = str(rows[0][0] if rows else "0").rpartition(" ")
            if holder not in ("", owner) and float(until) > now and not is_gone(holder):
                return holder
            self._writer.run(_TAKE, f"{owner} {now + seconds}")
        return None

    def progress(self, set_id: int) -> tuple[int, int]:
        ((done, total),) = self._writer.run(_PROGRESS, set_id, set_id)
        return int(done), int(total)

    def prepare(self, set_id: int, stream: int, fields: Sequence[int]) -> None:
        noted, key = orjson.dumps(fields).decode(), (set_id, stream)
        where = "WHERE set_id = ? AND stream = ?"
        if self._writer.run(f"SELECT fields FROM vector_stream {where}", *key) != [(noted,)]:
            with self._writer.quiet_transaction():
                self._writer.run(f"DELETE FROM vectored {where}", *key)
                self._writer.run(_SAVE_FIELDS, *key, noted)

    def missing(self, set_id: int, stream: int, *, begun: bool) -> Iterator[tuple[int, int]]:
        exists, of_begun = ("EXISTS", " AND x.whole = 0") if begun else ("NOT EXISTS", "")
        for edge, last in (
            ("(r.at, r.seq) < (?, ?)", (_END, _END)),
            ("r.at IS NULL AND r.seq < ?", (_END,)),
        ):
            sql = _MISSING.format(
                live=self.live.format("r"), edge=edge, exists=exists, begun=of_begun
            )
            while rows := self._writer.run(sql, stream, *last, set_id, PAGE_RECORDS):
                yield from ((NO_TIME if at is None else at, seq) for at, seq in rows)
                last = rows[-1][-len(last) :]

    def documents(self, seqs: Sequence[int]) -> list[Document]:
        return self._documents(seqs, "")

    def _documents(self, seqs: Sequence[int], lock: str) -> list[Document]:
        sql = f"{_DOCUMENTS} {self.in_list.format('d.seq')} {lock}"
        rows = self._writer.run(sql, self.list_parameter(seqs))
        return [
            Document(seq, key, data, big, _fingerprint(data, big)) for seq, key, data, big in rows
        ]

    def windows(self, set_id: int, seqs: Sequence[int]) -> dict[int, Windows]:
        windows = dict[int, dict[tuple[int, int], tuple[int, int]]]()
        for seq, _, *window, stop, hash in self._rows(set_id, seqs):
            windows.setdefault(seq, {})[window[0], window[1]] = stop, hash
        return dict(windows)

    def _rows(self, set_id: int, seqs: Sequence[int]) -> list[tuple[Any, ...]]:
        sql = f"""
SELECT seq, id, ordinal, start, stop, hash FROM vector
WHERE set_id = ? AND {self.in_list.format("seq")}"""
        return self._writer.run(sql, set_id, self.list_parameter(seqs))

    def same_texts(self, set_id: int, hashes: Sequence[int]) -> dict[int, bytes]:
        chosen = self.in_list.format("hash")
        sql = f"SELECT hash, vector FROM vector WHERE set_id = ? AND {chosen}"
        return dict(self._writer.run(sql, set_id, self.list_parameter(hashes)))

    def save(
        self, set_id: int, records: Sequence[WindowedRecord], vectors: Mapping[int, bytes]
    ) -> None:
        with self._writer.quiet_transaction():
            for first in range(0, len(records), COMPARED):
                self._save(set_id, records[first : first + COMPARED], vectors)
            self._writer.run(_NEW_VERSION, set_id)

    def _save(
        self, set_id: int, records: Sequence[WindowedRecord], vectors: Mapping[int, bytes]
    ) -> None:
        documents = self._documents([record.seq for record in records], self.unchanged)
        prints = {document.seq: document.fingerprint for document in documents}
        unchanged = {
            record.seq: record for record in records if prints.get(record.seq) == record.fingerprint
        }
        stored, wrong = set[tuple[int, int, int]](), list[tuple[int]]()
        for seq, id, ordinal, start, *text in self._rows(set_id, list(unchanged)):
            if _is_right(unchanged[seq], (ordinal, start), (text[0], text[1])):
                stored.add((seq, ordinal, start))
            else:
                wrong.append((id,))
        self._writer.run_each("DELETE FROM vector WHERE id = ?", wrong)
        new = [
            (set_id, seq, ordinal, start, stop, hash, record.lots[ordinal], vectors[hash])
            for seq, record in unchanged.items()
            for (ordinal, start), (stop, hash) in record.windows.items()
            if hash in vectors and (seq, ordinal, start) not in stored
        ]
        self._writer.run_each(_ADD, new)
        done = (record for record in unchanged.values() if record.done)
        rows = [(record.seq, set_id, record.stream, int(record.whole)) for record in done]
        self._writer.run_each(_DONE, rows)

    def pack(self, set_id: int) -> None:
        with self._writer.quiet_transaction():
            self._empty_worn_blocks(set_id)
        count = PACKED
        while count == PACKED:
            with self._writer.quiet_transaction():
                rows = self._writer.run(f"{_LOOSE} {self.locked.format('v')}", set_id, PACKED)
                for ordinal, group in groupby(rows, itemgetter(0)):
                    self._fill_blocks(set_id, ordinal, [(row[1], row[2], row[3]) for row in group])
                if rows:
                    self._writer.run(_NEW_VERSION, set_id)
                count = len(rows)

    def _fill_blocks(self, set_id: int, ordinal: int, rows: list[tuple[int, int, bytes]]) -> None:
        """Adds vectors of one field, (id, seq, vector), to its last block and to new ones."""
        last = self._writer.run(f"{_LAST_BLOCK} {self.locked.format('b')}", set_id, ordinal)
        block, entries = last[0] if last else (None, b"")
        ((centre,),) = self._writer.run("SELECT centre FROM vector_set WHERE id = ?", set_id)
        new = [entry_of(seq, id, vector, centre) for id, seq, vector in rows]
        width, places = len(new[0]), list[tuple[int, int, int]]()
        while rows:
            first = len(entries) // width
            if block is None or first == BLOCK_ENTRIES:
                ((block,),) = self._writer.run(_ADD_BLOCK, set_id, ordinal, width, b"")
                first, entries = 0, b""
            room = BLOCK_ENTRIES - first
            entries += b"".join(new[:room])
            chosen, rows, new = rows[:room], rows[room:], new[room:]
            self._writer.run("UPDATE vector_block SET entries = ? WHERE id = ?", entries, block)
            places += [(block, slot, row[0]) for slot, row in enumerate(chosen, start=first)]
        self._writer.run_each("UPDATE vector SET block = ?, slot = ? WHERE id = ?", places)

    def _empty_worn_blocks(self, set_id: int) -> None:
        """Takes the vectors out of blocks that have lost many, and removes the blocks."""
        for block, width, entries in self._writer.run(_WORN, set_id, GONE_MOST):
            ids = ids_of(entries, width)
            chosen, lock = self.in_list.format("v.id"), self.locked.format("v")
            sql = f"SELECT v.id FROM vector v WHERE {chosen} {lock}"
            if len(rows := self._writer.run(sql, self.list_parameter(ids))) == len(ids):
                self._writer.run_each("UPDATE vector SET block = NULL WHERE id = ?", rows)
                self._writer.run("DELETE FROM vector_block WHERE id = ?", block)

    def complete(self, set_id: int) -> None:
        with self._writer.quiet_transaction():
            self._writer.run(_COMPLETE, set_id)
        for (other,) in self._writer.run("SELECT id FROM vector_set WHERE id <> ?", set_id):
            self._erase(other)

    def _erase(self, set_id: int) -> None:
        with self._writer.quiet_transaction():
            self._writer.run("DELETE FROM vector_stream WHERE set_id = ?", set_id)
            self._writer.run("DELETE FROM vector_block WHERE set_id = ?", set_id)
        for table, key in (("vector", "id"), ("vectored", "seq")):
            lock = self.locked.format("v")
            sql = f"SELECT v.{key} FROM {table} v WHERE v.set_id = ? LIMIT ? {lock}"
            rows = [()]
            while rows:
                with self._writer.quiet_transaction():
                    rows = self._writer.run(sql, set_id, ERASED)
                    delete = f"DELETE FROM {table} WHERE {key} = ? AND set_id = ?"
                    self._writer.run_each(delete, [(*row, set_id) for row in rows])
        with self._writer.quiet_transaction():
            self._writer.run("DELETE FROM vector_set WHERE id = ?", set_id)


def _fingerprint(data: str, big: str | None) -> bytes:
    return hashlib.sha256(orjson.dumps((data, big))).digest()


def _is_right(record: WindowedRecord, window: tuple[int, int], text: tuple[int, int]) -> bool:
    """Whether a stored vector is that of a window of a record, as far as its windows tell."""
    if window[0] not in record.lots:
        return False
    return record.windows.get(window, None if record.whole else text) == text
