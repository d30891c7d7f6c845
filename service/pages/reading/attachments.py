"""Attachments on the reading pages: their names, previews of images, and their bytes."""

from dataclasses import dataclass, replace
from typing import Final

from flask import Response, request

from evidence.errors import EvidenceError, NotFound
from evidence.text import clip
from evidence.values import BlobRef, Bytes
from service.operations.base import Session
from service.pages.reading import shown
from service.pages.reading.visits import Visits
from service.ports import Blob

#: Attachments that are checked for images, and the largest image that a page loads.
PREVIEWS: Final = 6
PREVIEW_BYTES: Final = 8_000_000
NAME_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class File:
    """An attachment. `blob` is its id and connection, None if its bytes cannot be read."""

    name: str
    about: str
    blob: tuple[str, str | None] | None
    is_image: bool = False

    @property
    def href(self) -> str | None:
        return shown.blob(*self.blob) if self.blob else None

    @property
    def preview(self) -> str | None:
        return shown.blob(*self.blob, preview=1) if self.blob and self.is_image else None


def file_of(attachment: Bytes, title: str) -> File:
    """The attachment in a field of a record; without a title, it has the name of the file."""
    reference = attachment.known
    size = " ".join(map(str, reference.size)) if reference.size else ""
    about = ", ".join(filter(None, (clip(reference.media_type or "", NAME_CHARS), size)))
    blob, name = None, attachment.field_path
    if isinstance(reference, BlobRef):
        name = str(
            reference.members.get("filename") or reference.members.get("name") or reference.blob_id
        )
        blob = (reference.id, attachment.ref.connection_id) if reference.available else None
    return File(title or clip(name, NAME_CHARS), about, blob)


def previewed(session: Session, file: File) -> File:
    """The file; an image if its bytes begin as one and a page can show it."""
    if file.blob is None:
        return file
    try:
        return replace(file, is_image=bool(_image_type(_open_blob(session, *file.blob))))
    except EvidenceError:  # its source does not answer, or several files have this name
        return file


def _open_blob(session: Session, id: str, connection_id: str | None) -> Blob:
    return session.rs.blob(id, connection_id=connection_id or None)


def _image_type(file: Blob) -> str | None:
    """The media type of an image that a page may show, by its bytes; None for other files."""
    if not 0 < file.size_bytes <= PREVIEW_BYTES:
        return None
    start = b"".join(file.chunks(0, min(file.size_bytes, shown.MAGIC_BYTES)))
    return shown.image_type(start)


def blob(visits: Visits) -> Response:
    """The bytes of an attachment, as a download: a browser that displayed them would show the path
    of the session in their address. An image of a page ignores that; it is sent if it is one."""
    parameters = shown.parameters("blob", "source", "preview")
    file = _open_blob(visits.records(), parameters["blob"], parameters["source"])
    media_type = file.harmless_type or "application/octet-stream"
    if parameters["preview"]:
        media_type = _image_type(file) or ""
        if not media_type:
            raise NotFound("This attachment has no preview.")
    headers = {
        "Content-Type": media_type,
        "Content-Length": str(file.size_bytes),
        "Content-Disposition": "attachment",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    body = () if request.method == "HEAD" else file.chunks(0, file.size_bytes)
    return Response(body, 200, headers)
