"""Evernote notes in the export format ENEX, with the files that the notes contain."""

import binascii
import mimetypes
import re
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from service.importing.rows import Attached, manifest, row, stream, text_of
from service.importing.source import SAFE_XML, Format, Item, Source, titled
from service.records.intake import Row, content_key

NOTES: Final = "notes"
MANIFEST = manifest(
    stream(
        NOTES,
        "id:id title:title folder:group text:text written_at:time changed_at:when tags:list"
        " author:label links:list",
        attached=True,
    )
)
BEGINS = re.compile(rb"[^\x00]{0,300}?<en-export[ >]|[^\x00]{0,300}?<!DOCTYPE en-export")
_START, _END = b"<note>", b"</note>"
_PIECE_BYTES: Final = 1 << 20
_TIME: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")
_BOX: Final = re.compile(r"<en-todo([^<>]{0,80})>")
_ENCRYPTED: Final = re.compile(r"<en-crypt\b[^<>]*>[^<]*</en-crypt>")


def read(source: Source) -> Iterator[Item]:
    """The notes of a notebook."""
    number, waiting, searched = 0, bytearray(), 0
    while piece := source.file.read(_PIECE_BYTES):
        waiting += piece
        while (end := waiting.find(_END, searched)) >= 0:
            start = waiting.find(_START, 0, end)
            content = bytes(waiting[max(start, 0) : end + len(_END)])
            del waiting[: end + len(_END)]
            searched, number = 0, number + 1
            yield number, partial(_note, source, content)
        searched = max(0, len(waiting) - len(_END))
        if len(waiting) > BUDGETS.import_row_bytes:
            most = f"{BUDGETS.import_row_bytes:,} bytes"
            raise InvalidRequest(
                f"{source.name} has a note larger than {most}. Export the other notes without it."
            )


def _note(source: Source, content: bytes) -> Iterator[Row | str]:
    from lxml.etree import XMLParser, XMLSyntaxError, fromstring

    parser = XMLParser(**SAFE_XML, huge_tree=True)
    try:
        note = fromstring(content, parser)
    except XMLSyntaxError as error:
        yield f"The note is not valid XML: {error}. Export the notebook again."
        return
    created = _time(note.findtext("created"))
    title = (note.findtext("title") or "").strip()
    body = note.findtext("content") or ""
    body = _BOX.sub(lambda box: "[x] " if "true" in box[1] else "[ ] ", body)
    text = text_of(_ENCRYPTED.sub("[encrypted]", body))
    key = content_key({"created": created, "title": title, **({} if created else {"text": text})})
    data: dict[str, Any] = {
        "id": key[:32],
        "title": title or text.partition("\n")[0][:80],
        "folder": titled(PurePosixPath(source.name).stem),
        "text": text,
        "written_at": created,
        "changed_at": _time(note.findtext("updated")),
        "tags": [tag.text for tag in note.iterfind("tag") if tag.text],
        "author": note.findtext("note-attributes/author"),
        "links": list(filter(None, [note.findtext("note-attributes/source-url")])),
    }
    yield row(source, NOTES, data)
    attached = Attached(source)
    for number, resource in enumerate(note.iterfind("resource"), start=1):
        yield _file(attached, data, number, resource)
    attached.report()


def _file(attached: Attached, note: dict[str, Any], number: int, resource: Any) -> Row | str:
    kind = resource.findtext("mime") or "application/octet-stream"
    name = resource.findtext("resource-attributes/file-name")
    name = name or f"{number}{mimetypes.guess_extension(kind) or ''}"
    try:
        content = b64decode("".join((resource.findtext("data") or "").split()), validate=True)
    except (binascii.Error, ValueError):
        where = f"The file {name!r} of the note {note['title']!r}"
        return f"{where} is not base64. Export the note again."
    return attached.row(note["id"], number, name, content, at=note["written_at"], kind=kind)


def _time(value: str | None) -> str | None:
    """`20260303T091500Z` as an ISO 8601 time."""
    match = _TIME.fullmatch((value or "").strip())
    return f"{match[1]}-{match[2]}-{match[3]}T{match[4]}:{match[5]}:{match[6]}Z" if match else None


FORMAT = Format("evernote", (".enex",), BEGINS, read, MANIFEST, any_extension=True)
