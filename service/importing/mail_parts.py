"""The parts of a mail as text: bodies, attachments, forwarded mails, calendar entries, PDF."""

import io
import logging
import re
from collections import Counter
from collections.abc import Iterator
from email.errors import MessageError
from email.message import EmailMessage
from typing import Final, cast

from service.importing.html_text import text_of

PDF_PAGES: Final = 500
FORWARDED: Final = "message/rfc822"
_CALENDAR: Final = (
    "summary",
    "dtstart",
    "dtend",
    "location",
    "organizer",
    "attendee",
    "description",
)
_FOLD = re.compile(r"\r?\n[ \t]")
_ENTRY = re.compile(r"([\w-]+)((?:;[^:]*)?):(.*)")
_ESCAPED = re.compile(r"\\([nN,;\\])")


def header(message: EmailMessage, name: str) -> str:
    """A header's text; a malformed one is returned unchanged."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    try:
        text = str(message.get(name, "")).strip()
    except (MessageError, ValueError, LookupError, AttributeError, TypeError):
        return raw.strip()
    return raw.strip() if "\ufffd" in text and "\ufffd" not in raw else text


def decode(content: bytes, charset: str = "utf-8") -> tuple[str, bool]:
    """(text, True if it is in the charset it names); no byte is lost."""
    for number, name in enumerate((charset, "utf-8", "cp1252")):
        try:
            return content.decode(name), number == 0
        except (LookupError, UnicodeDecodeError):
            continue
    return content.decode("latin-1"), False


def attachments(message: EmailMessage) -> list[EmailMessage]:
    """The parts beside the body: attachments, then calendar entries and pictures of the body."""
    parts = list(message.iter_attachments()) if message.is_multipart() else []
    known = {id(inner) for part in parts for inner in part.walk()}
    body = {"text/plain", "text/html"}
    for part in _leaves(message):
        if id(part) not in known and part is not message and part.get_content_type() not in body:
            parts.append(part)
    return parts


def _leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    if message.get_content_type() == FORWARDED or not message.is_multipart():
        yield message
        return
    for part in message.iter_parts():
        yield from _leaves(cast(EmailMessage, part))


def content_of(part: EmailMessage) -> bytes:
    """The bytes of a part; of a forwarded mail, the mail."""
    if part.is_multipart():
        inner = part.get_payload(0) if part.get_content_type() == FORWARDED else part
        return cast(EmailMessage, inner).as_bytes()
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else part.as_bytes()


def title_of(part: EmailMessage) -> str:
    """The subject of a forwarded mail, which has no file name."""
    if part.get_content_type() != FORWARDED or not part.is_multipart():
        return ""
    return header(cast(EmailMessage, part.get_payload(0)), "subject")


class Texts:
    """Reads the texts of parts and counts the problems to report."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def notes(self) -> list[str]:
        return [note.format(count) for note, count in self._counts.items()]

    def of_part(self, part: object) -> str:
        """The text of a part; empty if it has no readable text."""
        assert isinstance(part, EmailMessage)
        kind = part.get_content_type()
        if kind == FORWARDED and part.is_multipart():
            return self._forwarded(cast(EmailMessage, part.get_payload(0)))
        if kind == "application/pdf":
            return self._pdf(content_of(part))
        if part.get_content_maintype() != "text":
            return ""
        text, named = decode(content_of(part), part.get_content_charset("utf-8"))
        if not named:
            self._counts["Texts not in the encoding they name, read as UTF-8 or cp1252: {}."] += 1
        text = text.replace("\r\n", "\n")
        if kind == "text/calendar":
            return _calendar(text)
        return text_of(text) if kind == "text/html" else text

    def _forwarded(self, message: EmailMessage) -> str:
        names = ("From", "To", "Date", "Subject")
        lines = [f"{name}: {value}" for name in names if (value := header(message, name.lower()))]
        body = message.get_body(("plain", "html"))
        return "\n".join([*lines, "", self.of_part(body) if body is not None else ""])

    def _pdf(self, content: bytes) -> str:
        try:
            from pypdf import PdfReader
            from pypdf.errors import PyPdfError
        except ImportError:
            self._counts[
                "PDF attachments stored without their text: {}. To read it: pip install 'rung[pdf]'"
            ] += 1
            return ""
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # failures are raised, and counted
        try:
            pages = PdfReader(io.BytesIO(content)).pages
            return "\n\n".join(page.extract_text() for page in pages[:PDF_PAGES]).strip()
        except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._counts["PDF attachments whose text cannot be read: {}."] += 1
            return ""


def _calendar(text: str) -> str:
    """The entries of an iCalendar file that people read, a line each."""
    lines = []
    for line in _FOLD.sub("", text).splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry and entry[1].lower() in _CALENDAR:
            value = _ESCAPED.sub(lambda one: "\n" if one[1] in "nN" else one[1], entry[3])
            name = re.search(r';CN="?([^;":]+)', entry[2])
            who = f"{name[1]} <{value}>" if name else value
            lines.append(f"{entry[1].capitalize()}: {who}")
    return "\n".join(lines)
