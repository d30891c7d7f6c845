"""Erases hidden streams: the old state of what was replaced, or what a killed process prepared.

In transactions of half a second, so that others write between them.
"""

from typing import Final

import orjson

from evidence.work import Deadline
from service.records.scopes import Scopes
from service.records.sqlite.changes import Changes

HOLD_SECONDS: Final = 0.4
PIECE_RECORDS: Final = 200

_HIDDEN = "SELECT id, connection FROM stream WHERE name < char(1)"
_RECORDS = """
SELECT r.seq, d.big FROM record r LEFT JOIN document d ON d.seq = r.seq
WHERE r.stream = ? ORDER BY r.record_key LIMIT ?
"""


def erase_hidden(writer: Changes) -> None:
    """Erases all hidden streams with everything that is theirs."""
    for stream, connection in writer.db.execute(_HIDDEN).fetchall():
        fields = "SELECT field, ordinal FROM scope WHERE stream = ?"
        ordinals = dict(writer.db.execute(fields, (stream,)))
        more = True
        while more:
            deadline = Deadline.after(HOLD_SECONDS)
            with writer.transaction():
                while more and not deadline.expired():
                    more = _erase_some(writer, stream, Scopes(ordinals, ordinals))
        _forget(writer, stream, connection)


def _erase_some(writer: Changes, stream: int, scopes: Scopes) -> bool:
    """Erases a piece of a stream; returns whether there was one."""
    db, index = writer.db, writer.index()
    rows = db.execute(_RECORDS, (stream, PIECE_RECORDS)).fetchall()
    for seq, big in rows:
        index.drop(scopes, seq)
        for place in orjson.loads(big).values() if big else ():
            index.drop_value(place)
    index.apply_drops()
    index.apply_adds()
    writer.sweep(writer.release([(seq, None) for seq, _ in rows]))
    for table in ("document", "tombstone", "change", "record"):
        db.executemany(f"DELETE FROM {table} WHERE seq = ?", [(seq,) for seq, _ in rows])
    if rows:
        writer.note(len(rows))
    return bool(rows)


def _forget(writer: Changes, stream: int, connection: int) -> None:
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
