"""The languages of connections, as the store keeps them."""

import sqlite3

from service.records.languages import Sample, merged


def note(db: sqlite3.Connection, sample: Sample) -> None:
    """Adds the languages of the texts of a sample to those of their connections."""
    for connection, found in sample.found():
        sql = "SELECT languages FROM connection WHERE id = ?"
        (known,) = db.execute(sql, (connection,)).fetchone()
        if text := merged(known, found):
            db.execute("UPDATE connection SET languages = ? WHERE id = ?", (text, connection))
