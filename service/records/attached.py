"""Blobs that a grant reaches: some visible record of it uses them in a granted field."""

from typing import Any

from evidence.values import BlobRef
from service.records.engine import BlobRow, Snapshot
from service.records.view import StreamView, View


def reachable(snapshot: Snapshot, stream: StreamView, blob_id: str) -> list[BlobRow]:
    """The blobs of this id that visible records of the stream use."""
    found = snapshot.blobs(stream.selection(), blob_id)
    return [row for row in found if row.field in stream.granted]


def resolved(
    snapshot: Snapshot,
    view: View,
    stream: StreamView,
    seq: int,
    field: str,
    value: dict[str, Any],
) -> BlobRef:
    """A reference to a blob, available if its bytes are stored.

    What is stored decides on size and media type: the route answers with these.
    """
    known = {name: one for name, one in value.items() if name not in ("data_base64", "fetch_url")}
    row = snapshot.blob_of(seq, field, value["blob_id"]) or _elsewhere(
        snapshot, view, stream, value
    )
    known.pop("available", None)
    if row is None:
        return BlobRef(known, available=False)
    known |= {"mime_type": row.media_type, "size_bytes": row.size_bytes, "sha256": row.sha256}
    return BlobRef(known)


def _elsewhere(
    snapshot: Snapshot, view: View, stream: StreamView, value: dict[str, Any]
) -> BlobRow | None:
    """The same blob, come with another record of the connection."""
    for other in view.within(stream.connection_id):
        if rows := reachable(snapshot, other, value["blob_id"]):
            return rows[0]
    return None
