"""Mail from mbox files: messages in one stream, their attachments in another.

A message's id is its Message-ID, else the SHA-256 of the raw message, so importing a mailbox again
changes nothing. Attachments refer to their message and carry their bytes as blobs.
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, BinaryIO

from evidence.limits import CONTRACT
from service.importing.mail_parts import Texts, attachments, content_of, decode, header, title_of
from service.importing.source import Item, Source
from service.ports import OPERATORS
from service.records.forms import FORMS, since_epoch
from service.records.intake import Row
from service.records.values import moment

MESSAGES = "messages"
ATTACHMENTS = "attachments"

_SENT_AT = {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"}
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
                    "sent_at": _SENT_AT,
                    "folder": {"type": "string"},
                    "labels": {"type": "array"},
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
                "search": {"lexical_fields": ["subject", "from", "to", "body", "labels"]},
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
                    "sent_at": _SENT_AT,
                    "text": {"type": "string", "x_pdpp_role": "primary-text"},
                    "blob_ref": {"type": "object", "x_pdpp_role": "blob-reference"},
                },
            },
            "query": {
                "exact_filters": ["id", "message_id", "filename", "mime_type"],
                "range_filters": {"sent_at": list(OPERATORS)},
                "aggregations": {"group_by": ["mime_type"], "group_by_time": ["sent_at"]},
                "search": {"lexical_fields": ["filename", "text"]},
            },
        },
    ]
}

BEGINS = re.compile(
    rb"From \S+ .*\d\d:\d\d|(Received|Return-Path|From|Message-ID|Date|Subject): ?\S"
)

_FROM_LINE = re.compile(rb"From \S+ (.*\d\d:\d\d.*)")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")
_LABELS = ("x-gmail-labels", "x-keywords", "keywords", "x-mozilla-keys")


def read(source: Source) -> Iterator[Item]:
    """The messages of an mbox and their attachments, with the line each message begins on."""
    texts = Texts()
    for number, raw, at in _split(source.file):
        try:
            yield from ((number, row) for row in _rows(raw, at, source, texts))
        except (MessageError, ValueError, LookupError, AttributeError, IndexError) as error:
            yield number, f"This message cannot be read: {type(error).__name__}: {error}."
    source.notes += texts.notes()


def _split(file: BinaryIO) -> Iterator[tuple[int, bytes, str]]:
    """(line number, raw message, date of its `From ` line), split at these lines.

    The blank line before each belongs to the separator, not to the message above.
    """
    lines: list[bytes] = []
    start, blank, at = 1, True, ""
    for number, line in enumerate(file, start=1):
        if blank and (match := _FROM_LINE.match(line)):
            if lines:
                yield start, b"".join(lines[:-1]), at
            lines, start, at = [], number, match[1].decode("latin-1").strip()
        elif lines or line.strip():
            lines.append(line)
        blank = not line.strip()
    if lines:
        yield start, b"".join(lines[:-1] if blank else lines), at


def _rows(raw: bytes, at: str, source: Source, texts: Texts) -> Iterator[Row]:
    repair = source.repair
    message = message_from_bytes(
        _readable_headers(_QUOTED_FROM.sub(rb"\1", raw)), policy=policy.default
    )
    assert isinstance(message, EmailMessage)
    ids = _MESSAGE_ID.findall(header(message, "message-id"))
    usable = bool(ids) and len(ids[0].encode()) <= CONTRACT.record_id_bytes - len("#000")
    message_id = repair.text(ids[0]) if usable else hashlib.sha256(raw).hexdigest()
    references = _MESSAGE_ID.findall(
        header(message, "references") or header(message, "in-reply-to")
    )
    sent_at = _sent_at(message, at)
    body = message.get_body(("plain", "html"))
    text = texts.of_part(body) if body is not None else ""
    if not text.strip() and (page := message.get_body(("html",))) is not None:
        body, text = page, texts.of_part(page)
    data = {
        "id": message_id,
        "thread_id": references[0] if references else message_id,
        "subject": header(message, "subject"),
        "from": header(message, "from"),
        "to": _addresses(message, "to"),
        "cc": _addresses(message, "cc"),
        "sent_at": sent_at,
        "folder": source.folder,
        "labels": _labels(message),
        "body": text,
    }
    yield Row(repair.value(data), stream=MESSAGES)
    for number, part in enumerate(attachments(message), start=1):
        row = _attachment(part, number, message_id, sent_at, texts)
        yield Row(repair.value(row), stream=ATTACHMENTS)


def _readable_headers(raw: bytes) -> bytes:
    """A message whose headers are UTF-8: other bare bytes are read as cp1252."""
    head, blank, rest = raw.partition(b"\n\n")
    return head if head.isascii() and not blank else decode(head)[0].encode() + blank + rest


def _labels(message: EmailMessage) -> list[str]:
    labels = ",".join(header(message, name) for name in _LABELS).split(",")
    return list(dict.fromkeys(label.strip() for label in labels if label.strip()))


def _addresses(message: EmailMessage, name: str) -> list[str]:
    addresses = getaddresses([header(message, name)])
    return [f"{label} <{address}>" if label else address for label, address in addresses if address]


def _sent_at(message: EmailMessage, at: str) -> str | None:
    """When a message was sent, by its header, else by its `From ` line."""
    read = FORMS["rfc-2822"]
    try:
        found: int | None = since_epoch(parsedate_to_datetime(header(message, "date")))
    except (ValueError, TypeError, IndexError, OverflowError):
        found = read(at)
    return None if found is None else moment(found)


def _attachment(
    part: EmailMessage, number: int, message_id: str, sent_at: str | None, texts: Texts
) -> dict[str, Any]:
    content = content_of(part)
    text = texts.of_part(part)
    return {
        "id": f"{message_id}#{number}",
        "message_id": message_id,
        "filename": part.get_filename() or title_of(part) or f"attachment-{number}",
        "mime_type": part.get_content_type(),
        "sent_at": sent_at,
        **({"text": text} if text else {}),
        "blob_ref": {
            "mime_type": part.get_content_type(),
            "data_base64": base64.b64encode(content).decode(),
        },
    }
