"""Mail from mbox files: messages in one stream, their attachments in another.

A message's id is its Message-ID, else the SHA-256 of the raw message, so importing a mailbox again
changes nothing. Attachments refer to their message and carry their bytes as blobs.
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from datetime import UTC
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.utils import getaddresses, parsedate_to_datetime
from html.parser import HTMLParser
from typing import Any, BinaryIO

from evidence.limits import CONTRACT
from service.ports import OPERATORS
from service.records.intake import Row
from service.importing.source import Item, Source
from service.importing.text_repair import Repair

MESSAGES = "messages"
ATTACHMENTS = "attachments"

MANIFEST: dict[str, Any] = {
    "streams": [
        {
            "name": MESSAGES,
            "primary_key": ["id"],
            "cursor_field": "sent_at",
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "thread_id": {"type": "string"},
                    "subject": {"type": "string", "x_pdpp_role": "primary-title"},
                    "from": {"type": "string", "x_pdpp_role": "actor"},
                    "to": {"type": "array"},
                    "cc": {"type": "array"},
                    "sent_at": {
                        "type": "string",
                        "format": "date-time",
                        "x_pdpp_role": "event-time",
                    },
                    "folder": {"type": "string"},
                    "body": {"type": "string", "x_pdpp_role": "primary-text"},
                },
            },
            "query": {
                "exact_filters": ["id", "thread_id", "from", "folder", "sent_at"],
                "range_filters": {"sent_at": list(OPERATORS)},
                "aggregations": {
                    "min": ["sent_at"],
                    "max": ["sent_at"],
                    "group_by": ["from", "folder"],
                    "group_by_time": ["sent_at"],
                    "count_distinct": ["from", "thread_id"],
                },
                "search": {"lexical_fields": ["subject", "from", "body"]},
                "expand": [{"name": "attachments"}],
            },
            "relationships": [
                {
                    "name": "attachments",
                    "stream": ATTACHMENTS,
                    "foreign_key": "message_id",
                    "cardinality": "has_many",
                }
            ],
        },
        {
            "name": ATTACHMENTS,
            "primary_key": ["id"],
            "cursor_field": "sent_at",
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "message_id": {"type": "string"},
                    "filename": {"type": "string", "x_pdpp_role": "primary-title"},
                    "mime_type": {"type": "string"},
                    "sent_at": {"type": "string", "format": "date-time"},
                    "blob_ref": {"type": "object", "x_pdpp_role": "blob-reference"},
                },
            },
            "query": {
                "exact_filters": ["id", "message_id", "filename", "mime_type"],
                "range_filters": {"sent_at": list(OPERATORS)},
                "aggregations": {"group_by": ["mime_type"], "group_by_time": ["sent_at"]},
                "search": {"lexical_fields": ["filename"]},
            },
        },
    ]
}

_FROM_LINE = re.compile(rb"From \S+ .*\d\d:\d\d")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")
_BLANK_LINES = re.compile(r"\n\s*\n\s*")


def read(source: Source) -> Iterator[Item]:
    """The messages of an mbox and their attachments, with the line each message begins on."""
    for number, raw in _split(source.file):
        try:
            yield from ((number, row) for row in _rows(raw, source.folder, source.repair))
        except (MessageError, ValueError, LookupError, AttributeError, IndexError) as error:
            yield number, f"This message cannot be read: {type(error).__name__}: {error}."


def _split(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(line number, raw message), parted at `From ` lines that follow a blank line.

    That blank line belongs to the parting, not to the message before it.
    """
    lines: list[bytes] = []
    start, blank = 1, True
    for number, line in enumerate(file, start=1):
        if blank and _FROM_LINE.match(line):
            if lines:
                yield start, b"".join(lines[:-1])
            lines, start = [], number
        elif lines or line.strip():
            lines.append(line)
        blank = not line.strip()
    if lines:
        yield start, b"".join(lines[:-1] if blank else lines)


def _rows(raw: bytes, folder: str, repair: Repair) -> Iterator[Row]:
    message = message_from_bytes(_QUOTED_FROM.sub(rb"\1", raw), policy=policy.default)
    assert isinstance(message, EmailMessage)
    ids = _MESSAGE_ID.findall(_header(message, "message-id"))
    usable = bool(ids) and len(ids[0].encode()) <= CONTRACT.record_id_bytes - len("#000")
    message_id = repair.text(ids[0]) if usable else hashlib.sha256(raw).hexdigest()
    references = _MESSAGE_ID.findall(
        _header(message, "references") or _header(message, "in-reply-to")
    )
    sent_at = _sent_at(message)
    data = {
        "id": message_id,
        "thread_id": references[0] if references else message_id,
        "subject": _header(message, "subject"),
        "from": _header(message, "from"),
        "to": _addresses(message, "to"),
        "cc": _addresses(message, "cc"),
        "sent_at": sent_at,
        "folder": folder,
        "body": _body(message),
    }
    yield Row(repair.value(data), stream=MESSAGES)
    for number, part in enumerate(message.iter_attachments(), start=1):
        row = _attachment(part, number, message_id, sent_at)
        yield Row(repair.value(row), stream=ATTACHMENTS)


def _header(message: EmailMessage, name: str) -> str:
    """A header's text; a header too broken to be understood is given as it stands."""
    try:
        return str(message.get(name, "")).strip()
    except (MessageError, ValueError, LookupError, AttributeError, TypeError):
        raw = next((value for key, value in message.raw_items() if key.lower() == name), "")
        return str(raw).strip()


def _addresses(message: EmailMessage, name: str) -> list[str]:
    found = getaddresses([_header(message, name)])
    return [f"{label} <{address}>" if label else address for label, address in found if address]


def _sent_at(message: EmailMessage) -> str | None:
    try:
        found = parsedate_to_datetime(_header(message, "date"))
        moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _body(message: EmailMessage) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    text = _decode(part).replace("\r\n", "\n")
    return strip_html(text) if part.get_content_subtype() == "html" else text


def _decode(part: MIMEPart) -> str:
    content = part.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    try:
        return raw.decode(part.get_content_charset("utf-8"), "replace")
    except LookupError:
        return raw.decode("utf-8", "replace")


def _attachment(
    part: MIMEPart, number: int, message_id: str, sent_at: str | None
) -> dict[str, Any]:
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else part.as_bytes()
    return {
        "id": f"{message_id}#{number}",
        "message_id": message_id,
        "filename": part.get_filename() or f"attachment-{number}",
        "mime_type": part.get_content_type(),
        "sent_at": sent_at,
        "blob_ref": {
            "mime_type": part.get_content_type(),
            "data_base64": base64.b64encode(content).decode(),
        },
    }


def strip_html(text: str) -> str:
    """The readable text of an HTML page, a line for each block."""
    stripper = _Stripper()
    stripper.feed(text)
    stripper.close()
    return _BLANK_LINES.sub("\n\n", "".join(stripper.pieces)).strip()


class _Stripper(HTMLParser):
    """Gathers text, leaves scripts and styles out, and breaks lines at blocks."""

    HIDDEN = frozenset({"script", "style", "head", "title"})
    BLOCKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "blockquote", "pre"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self.HIDDEN
        if tag in self.BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in self.HIDDEN))

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)
