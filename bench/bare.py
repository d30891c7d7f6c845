"""The bare bulk insert: `python -m bench.bare ROWS.ndjson TARGET.db` prints the seconds it takes.

This is the work that no import can avoid. Rows go into a table, and their texts, folded as Rung
folds them, into the same full-text index, in the order that suits it best, in one transaction. Then
the index is merged. Parsing and folding happen before the clock starts. Nothing is looked up,
checked or logged.
"""

import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from evidence.fold import fold
from service.records.sqlite.ddl import SEQ_BITS, TOKENIZER

TABLES = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA cache_size = -65536;
CREATE TABLE record (seq INTEGER PRIMARY KEY, id TEXT, data TEXT);
CREATE VIRTUAL TABLE fts USING fts5(body, content='', tokenize="{TOKENIZER}");
INSERT INTO fts (fts, rank) VALUES ('hashsize', 67108864);
"""
FIELDS = ("title", "body")


def insert(rows: list[bytes], target: Path) -> float:
    """Inserts the rows; returns the seconds it took."""
    parsed = [orjson.loads(row) for row in rows]
    records = [(seq, each["id"], rows[seq].decode()) for seq, each in enumerate(parsed)]
    texts = list(_texts(parsed))
    db = sqlite3.connect(target, isolation_level=None)
    db.executescript(TABLES)
    begun = time.perf_counter()
    db.execute("BEGIN")
    db.executemany("INSERT INTO record VALUES (?, ?, ?)", records)
    db.executemany("INSERT INTO fts (rowid, body) VALUES (?, ?)", texts)
    db.execute("INSERT INTO fts (fts) VALUES ('optimize')")
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    took = time.perf_counter() - begun
    db.close()
    return took


def _texts(parsed: list[dict[str, str]]) -> Iterator[tuple[int, str]]:
    """Yields (row id, folded text), field after field, by ascending row id."""
    for ordinal, name in enumerate(FIELDS, start=1):
        for seq, each in enumerate(parsed):
            yield ordinal << SEQ_BITS | seq, fold(each[name])


if __name__ == "__main__":
    print(insert(Path(sys.argv[1]).read_bytes().splitlines(), Path(sys.argv[2])))
