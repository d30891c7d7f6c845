"""Text vectors, as a builder writes them to a file, and the faults that a check finds in them."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from service.records.engine.vectors import entry_of, ids_of
from service.records.sql.vector_writing import VectorTables


class SqliteVectors(VectorTables):
    """See `engine.vectors.VectorWriting`."""

    in_list = "{} IN (SELECT value FROM json_each(?))"
    exist = "SELECT 1 FROM sqlite_master WHERE name = 'vector_set'"
    source = "stream s JOIN connection c ON c.id = s.connection WHERE s.name >= char(1)"
    live = "{}.deleted = 0"

    def list_parameter(self, numbers: Iterable[int]) -> str:
        return orjson.dumps(list(numbers)).decode()


_LOST: Final = """
SELECT count(*) FROM vector v LEFT JOIN document d ON d.seq = v.seq
LEFT JOIN record r ON r.seq = v.seq LEFT JOIN scope s ON s.ordinal = v.ordinal
LEFT JOIN vector_set m ON m.id = v.set_id
WHERE d.seq IS NULL OR s.stream IS NOT r.stream OR m.dimensions IS NOT length(v.vector)
"""
_IN_BLOCK: Final = """
SELECT v.slot, v.seq, v.id, v.vector FROM json_each(?) j CROSS JOIN vector v ON v.id = j.value
WHERE v.block = ?
"""
_BLOCKS: Final = """
SELECT b.id, b.width, b.entries, m.centre FROM vector_block b JOIN vector_set m ON m.id = b.set_id
"""
#: Lets a builder compare all vectors with their texts, and put them into new blocks.
RESET: Final = (
    "DELETE FROM vectored",
    "DELETE FROM vector_block",
    "UPDATE vector SET block = NULL, slot = NULL",
)


def vector_faults(db: sqlite3.Connection) -> Iterator[str]:
    """Vectors without a text, and blocks that differ from their vectors."""
    if not db.execute(SqliteVectors.exist).fetchone():
        return
    ((lost,),) = db.execute(_LOST)
    if lost:
        yield f"vectors without a text: {lost}"
    ((packed,),) = db.execute("SELECT count(*) FROM vector WHERE block IS NOT NULL")
    wrong = 0
    for block, width, entries, centre in db.execute(_BLOCKS):
        expected, ids = bytearray(len(entries)), orjson.dumps(ids_of(entries, width)).decode()
        for slot, seq, id, vector in db.execute(_IN_BLOCK, (ids, block)):
            expected[slot * width : (slot + 1) * width] = entry_of(seq, id, vector, centre)
            packed -= 1
        wrong += bytes(expected) != entries
    if wrong or packed:
        yield f"blocks that differ from their vectors: {max(wrong, 1)}"
