"""Makes everything anew that is derived from records, whatever is left of it.

In one transaction: until it is done readers see the store as it was, and a process that dies leaves
it so. Migrations, another fold and `rung stats --reindex` all do this.
"""

import sqlite3
from functools import partial

from service.records.sqlite import files
from service.records.sqlite.indexing import derive
from service.records.sqlite.languages import Sample
from service.records.sqlite.streams import connections_of, manifests_of, open_stream
from service.records.sqlite.transactions import INDEXES, Writer, tune
from service.records.sqlite.vocabulary import forget

SHADOWS = ("data", "idx", "docsize", "config")


def rebuild(writer: Writer) -> None:
    """Builds the full-text tables, the vocabulary, the cells and the counts from the records."""
    db = writer.db
    with files.alone(writer.path), writer.transaction():
        for index in INDEXES:
            _renew(db, index)
        forget(db)
        for table in ("value", "passage", "cell"):
            db.execute(f"DELETE FROM {table}")
        records, sample = 0, Sample()
        for connection in connections_of(writer):
            for manifest in manifests_of(writer, connection):
                stream = open_stream(writer, connection, manifest.name)
                look = partial(sample.take, stream.connection)
                count = derive(writer, stream.id, (stream.manifest, stream.scopes), look=look)
                db.execute("UPDATE stream SET records = ? WHERE id = ?", (count, stream.id))
                records += count
        sample.note(db)
        if records:
            writer.note(records, removed=True)


def _renew(db: sqlite3.Connection, index: str) -> None:
    """Makes a full-text table anew, empty.

    FTS5 cannot drop a table that it cannot open, so the schema loses it first.
    """
    (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    db.execute("PRAGMA writable_schema = ON")
    try:
        db.execute("DELETE FROM sqlite_master WHERE name = ?", (index,))
    finally:
        db.execute("PRAGMA writable_schema = RESET")
    for shadow in SHADOWS:
        db.execute(f"DROP TABLE IF EXISTS {index}_{shadow}")
    db.execute(sql)
    tune(db, index)
