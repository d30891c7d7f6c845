"""Mail from mbox files and single-message files: messages in one stream, attachments in another.

A message's id is its Message-ID, or else the SHA-256 of the raw message, so importing a mailbox
again changes nothing. Attachments refer to their message and have their bytes as blobs.
"""

import re
from collections.abc import Iterator
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesFeedParser
from email.utils import getaddresses, parsedate_to_datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from evidence.limits import BUDGETS
from service.importing.charsets import POLICY
from service.importing.readers.outlook import as_mail
from service.importing.rows import Attached, manifest, record_id, stream
from service.importing.source import UTF_16, Format, Item, Raw, Source, bounded_lines
from service.importing.tree import MAILDIR
from evidence.manifest.forms import FORMS
from evidence.times import since_epoch
from service.records.intake import Row
from evidence.times import moment

MESSAGES = "messages"
FORWARDED = "message/rfc822"

MANIFEST = manifest(
    stream(
        MESSAGES,
        "id:id thread_id:thread subject:title from:actor to:list cc:list sent_at:time"
        " folder:group labels:list body:text",
        attached=True,
    )
)

HEADERS = re.compile(
    rb"(Received|Return-Path|From|Message-ID|Date|Subject|Delivered-To): ?\S", re.I
)

_SEPARATOR = rb"From \S+ (?=.*\b(?:19|20)\d\d\b)(.*\d\d:\d\d.*)"
_FROM_LINE = re.compile(_SEPARATOR)
#: What follows such a line: a header, or another such line that was quoted.
_FOLLOWS = rb"[!-9;-~]++[ \t]*+:|>From "
_HEADER = re.compile(_FOLLOWS)
#: Lines above the headers that some programs add, and the length of the mail that Apple Mail adds.
_BANNER_LINES = 10
_LENGTH = re.compile(rb"\s*+(\d{1,18}+)[ \t]*+\r?\n")
_QUOTED_FROM = re.compile(rb"^>(>*+From )", re.MULTILINE)
_MESSAGE_ID = re.compile(r"<([^<>\s]++)>")
_STATUS = re.compile(r"[0-9a-fA-F]{4}")
_EXPUNGED = 0x8
_META = re.compile(rb"<meta\s[^<>]{0,200}?charset=[\"']?([\w-]+)", re.I)
_META_BYTES = 4_096
_CHUNK_BYTES = 65_536
_LABELS = ("x-gmail-labels", "x-keywords", "keywords", "x-mozilla-keys")


def read(source: Source) -> Iterator[Item]:
    """The messages of an mbox and their attachments, with the line on which each message begins."""
    path = Path(source.name)
    folder = path.parent.stem if path.stem == "mbox" and path.parent.suffix else source.folder
    yield from _read(source, _split(source.file), folder)


def read_message(source: Source) -> Iterator[Item]:
    """The message in a file of its own; its folder is that of the file or of its Maildir."""
    path = Path(source.name)
    parent_folder = path.parent.parent if path.parent.name in MAILDIR else path.parent
    folder = source.folder if source.tree.path == source.name else parent_folder.name
    boxes = (parent.stem for parent in path.parents if parent.suffix == ".mbox")
    raw = source.file.read(BUDGETS.import_row_bytes)
    if raw[:2] in UTF_16:
        raw = raw.decode("utf-16", "replace").encode()
    if path.suffix.lower() == ".emlx" and (length := _LENGTH.match(raw)):
        raw = raw[length.end() : length.end() + int(length[1])]
    yield from _read(source, iter([(1, raw, "")]), next(boxes, folder.strip(".")))


def read_outlook(source: Source) -> Iterator[Item]:
    """The message in a file of Outlook; its folder is that of the file."""
    attached, alone = Attached(source), source.tree.path == source.name
    folder = "" if alone else Path(source.name).parent.name
    raw = source.file.read(BUDGETS.import_row_bytes)

    def rows() -> Iterator[Row]:
        yield from _rows(as_mail(raw), "", source, folder, attached)

    yield 1, Raw(rows, raw, f"\0{folder}")
    attached.report()


def _read(source: Source, mails: Iterator[tuple[int, bytes, str]], folder: str) -> Iterator[Item]:
    attached = Attached(source)
    for number, raw, at in mails:
        parse = partial(_rows, raw, at, source, folder, attached)
        yield number, Raw(parse, raw, f"{at}\0{folder}")
    attached.report()


def _split(file: BinaryIO) -> Iterator[tuple[int, bytes, str]]:
    """(line number, raw message, date of its `From ` line), split at these lines.

    The blank line before each belongs to the separator, not to the message above.
    """
    lines: list[bytes] = []
    start, blank, at = 1, True, ""
    following = chain(bounded_lines(file), [b""])
    line = next(following)
    for number, ahead in enumerate(following, start=1):
        line, current = ahead, line
        if blank and _HEADER.match(ahead) and (match := _FROM_LINE.match(current)):
            if lines:
                lines = [b"".join(lines[:-1])]
                yield start, lines.pop(), at  # which keeps no copy here
            lines, start, at = [], number, match[1].decode("latin-1").strip()
        elif lines or current.strip():
            lines.append(current)
        blank = not current.strip()
    if lines:
        yield start, b"".join(lines[:-1] if blank else lines), at


def _rows(raw: bytes, at: str, source: Source, folder: str, attached: Attached) -> Iterator[Row]:
    repair = source.repair
    message = _parsed(_QUOTED_FROM.sub(rb"\1", raw) if at else raw)
    if _deleted(message):
        attached.problems["Messages left out, because they are marked as deleted: {}."] += 1
        return
    ids = _MESSAGE_ID.findall(header(message, "message-id"))
    message_id = repair.text(record_id(ids[0] if ids else "", raw))
    reply_headers = header(message, "references") or header(message, "in-reply-to")
    references = _MESSAGE_ID.findall(reply_headers)
    sent_at = _sent_at(message, at)
    body = message.get_body(("plain", "html"))
    text = text_of_part(body, attached) if body is not None else ""
    if not text.strip() and (page := message.get_body(("html",))) is not None:
        body, text = page, text_of_part(page, attached)
    labels = ",".join(header(message, name) for name in _LABELS).split(",")
    data = {
        "id": message_id,
        "thread_id": references[0] if references else message_id,
        "subject": header(message, "subject"),
        "from": header(message, "from"),
        "to": _addresses(message, "to"),
        "cc": _addresses(message, "cc"),
        "sent_at": sent_at,
        "folder": folder,
        "labels": list(dict.fromkeys(filter(None, map(str.strip, labels)))),
        "body": text,
    }
    yield Row(repair.value(data), stream=MESSAGES)
    for number, part in enumerate(attachments(message), start=1):
        inner = forwarded(part)
        title = header(inner, "subject") if inner is not None else ""
        name = part.get_filename() or title or f"attachment-{number}"
        kind, text = part.get_content_type(), text_of_part(part, attached)
        content = content_of(part)
        yield attached.row(message_id, number, name, content, at=sent_at, kind=kind, text=text)


def _parsed(raw: bytes) -> EmailMessage:
    """Parses a message.

    It is parsed in pieces, because the parser's copies of a whole message take four times its size.
    """
    parser = BytesFeedParser(policy=POLICY)
    for start in range(_start(raw), len(raw), _CHUNK_BYTES):
        parser.feed(raw[start : start + _CHUNK_BYTES])
    message = parser.close()
    assert isinstance(message, EmailMessage)
    return message


def _start(raw: bytes) -> int:
    """Where the headers begin: after lines that are none, if headers follow them."""
    head = raw[:_CHUNK_BYTES].lstrip(b"\xef\xbb\xbf")
    start = min(len(raw), _CHUNK_BYTES) - len(head)
    begin: int | None = None
    for line in head.splitlines(keepends=True)[:_BANNER_LINES]:
        if HEADERS.match(line):
            return start if begin is None else begin
        if _HEADER.match(line) and not line.startswith(b">"):
            begin = start if begin is None else begin
        elif begin is not None and line[:1] not in (b" ", b"\t"):
            break
        start += len(line)
    return 0


def _deleted(message: EmailMessage) -> bool:
    """True for a mail that was deleted in Thunderbird but is still in the file."""
    status = header(message, "x-mozilla-status")
    return bool(_STATUS.fullmatch(status) and int(status, 16) & _EXPUNGED)


def _addresses(message: EmailMessage, name: str) -> list[str]:
    addresses = getaddresses([header(message, name)])
    return [f"{label} <{address}>" if label else address for label, address in addresses if address]


def _sent_at(message: EmailMessage, at: str) -> str | None:
    """When a message was sent, from its header, or else from its `From ` line."""
    try:
        microseconds: int | None = since_epoch(parsedate_to_datetime(header(message, "date")))
    except (ValueError, TypeError, IndexError, OverflowError):
        microseconds = FORMS["rfc-2822"](at)
    return None if microseconds is None else moment(microseconds)


def header(message: EmailMessage, name: str) -> str:
    """A header's text; a malformed one is returned unchanged."""
    try:
        return str(message.get(name, "")).strip()
    except (MessageError, ValueError, LookupError, AttributeError, TypeError):
        raw = (str(value) for key, value in message.raw_items() if key.lower() == name)
        return next(raw, "").strip()


def attachments(message: EmailMessage) -> list[EmailMessage]:
    """The parts besides the body: attachments, then calendar entries and pictures of the body."""
    parts = list(message.iter_attachments()) if message.is_multipart() else []
    attached_ids = {id(inner) for part in parts for inner in part.walk()}
    leaves = [part for part in _leaves(message) if id(part) not in attached_ids]
    body = {"text/plain", "text/html"}
    files = [part for part in leaves if part.get_content_type() not in body]
    texts = [part for part in leaves if part.get_content_type() in body and part.get_filename()]
    return parts + files + texts


def _leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    if message.get_content_type() == FORWARDED or not message.is_multipart():
        yield message
        return
    for part in message.iter_parts():
        yield from _leaves(cast(EmailMessage, part))


def content_of(part: EmailMessage) -> bytes:
    """The bytes of a part; for a forwarded mail, the whole mail."""
    if part.is_multipart():
        return (forwarded(part) or part).as_bytes()
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else part.as_bytes()


def forwarded(part: EmailMessage) -> EmailMessage | None:
    """The forwarded mail that a part is, if it is one; it has a subject and no file name."""
    if part.get_content_type() != FORWARDED or not part.is_multipart():
        return None
    return cast(EmailMessage, part.get_payload(0))


def text_of_part(part: object, attached: Attached) -> str:
    """The text of a part; empty if it has no readable text."""
    assert isinstance(part, EmailMessage)
    if (message := forwarded(part)) is None:
        content, kind = content_of(part), part.get_content_type()
        declared = _META.search(content[:_META_BYTES]) if kind == "text/html" else None
        charset = part.get_content_charset(declared[1].decode() if declared else "utf-8")
        return attached.text(content, kind, charset)
    names = ("From", "To", "Date", "Subject")
    lines = [f"{name}: {value}" for name in names if (value := header(message, name.lower()))]
    body = message.get_body(("plain", "html"))
    return "\n".join([*lines, "", text_of_part(body, attached) if body is not None else ""])


# A mail in several folders, such as the inbox and the archive, is imported from the first file.
_BEGINS = re.compile(rb"\s*+%b\r?\n(?:%b)" % (_SEPARATOR, _FOLLOWS))
MBOX = Format("mbox", (".mbox", ".mbx"), _BEGINS, read, MANIFEST, unique=True)
EML = Format("eml", (".eml", ".emlx"), HEADERS, read_message, MANIFEST, unique=True)
MSG = Format(
    "msg",
    (".msg",),
    re.compile(rb"\xd0\xcf\x11\xe0"),
    read_outlook,
    MANIFEST,
    unique=True,
    requires="olefile",
)
