"""The languages of connections, as the store keeps them."""

import sqlite3

import orjson

from service.records.languages import Sample, merged


def note(db: sqlite3.Connection, sample: Sample) -> None:
    """Adds the languages of the texts of a sample to those of their connections."""
    for connection, found in sample.found():
        (known,) = db.execute(
            "SELECT languages FROM connection WHERE id = ?", (connection,)
        ).fetchone()
        before = orjson.loads(known)
        after = merged(before, found)
        if after != before:
            db.execute(
                "UPDATE connection SET languages = ? WHERE id = ?",
                (orjson.dumps(after).decode(), connection),
            )
