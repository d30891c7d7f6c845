"""Blobs that a grant reaches: some visible record of it uses them in a granted field."""

import sqlite3
from typing import Any, NamedTuple

from evidence import routes
from service.records.view import StreamView, View, limits


class Row(NamedTuple):
    """A stored blob."""

    key: int
    media_type: str
    size_bytes: int
    sha256: str


def reachable(db: sqlite3.Connection, stream: StreamView, blob_id: str) -> list[Row]:
    """The blobs of this id that visible records of the stream use."""
    clause, values = limits(stream)
    rows = db.execute(
        "SELECT DISTINCT b.id, b.media_type, b.size_bytes, b.sha256, u.field FROM blob b "
        "JOIN blob_use u ON u.blob = b.id JOIN record r ON r.seq = u.seq "
        f"WHERE b.blob_id = ? AND r.stream = ? AND r.deleted = 0 AND {clause}",
        (blob_id, stream.id, *values),
    ).fetchall()
    return [Row(*row[:4]) for row in rows if row[4] in stream.granted]


def of_field(db: sqlite3.Connection, seq: int, field: str, blob_id: str) -> Row | None:
    """The blob of this id that a field of a record uses itself."""
    row = db.execute(
        "SELECT b.id, b.media_type, b.size_bytes, b.sha256 FROM blob b JOIN blob_use u "
        "ON u.blob = b.id WHERE u.seq = ? AND u.field = ? AND b.blob_id = ?",
        (seq, field, blob_id),
    ).fetchone()
    return Row(*row) if row else None


def linked(
    db: sqlite3.Connection,
    view: View,
    stream: StreamView,
    seq: int,
    field: str,
    value: dict[str, Any],
) -> dict[str, Any]:
    """A blob reference with the route of its bytes, or `available: false` if there are none.

    What is stored decides on size and media type: the route answers with these.
    """
    known = {name: one for name, one in value.items() if name not in ("data_base64", "fetch_url")}
    row = of_field(db, seq, field, value["blob_id"]) or _elsewhere(db, view, stream, value)
    if row is None:
        return {**known, "available": False}
    known.pop("available", None)
    known |= {"mime_type": row.media_type, "size_bytes": row.size_bytes, "sha256": row.sha256}
    return {**known, "fetch_url": routes.blob(value["blob_id"], stream.connection_id)}


def _elsewhere(
    db: sqlite3.Connection, view: View, stream: StreamView, value: dict[str, Any]
) -> Row | None:
    """The same blob, come with another record of the connection."""
    for other in view.within(stream.connection_id):
        if rows := reachable(db, other, value["blob_id"]):
            return rows[0]
    return None
