"""The readable texts of attached files: plain text, HTML, calendar entries, PDF."""

import io
import logging
import re
from collections import Counter
from typing import Final

from service.importing.html_text import text_of

PDF_PAGES: Final = 500
_CALENDAR: Final = "summary dtstart dtend location organizer attendee description".split()
_FOLD = re.compile(r"\r?\n[ \t]")
_ENTRY = re.compile(r"([\w-]+)((?:;[^:]*)?):(.*)")
_ESCAPED = re.compile(r"\\([nN,;\\])")


def decode(content: bytes, charset: str = "utf-8") -> tuple[str, bool]:
    """(text, True if it is in the charset it names); no byte is lost."""
    for number, name in enumerate((charset, "utf-8", "cp1252")):
        try:
            return content.decode(name), number == 0
        except (LookupError, UnicodeDecodeError):
            continue
    return content.decode("latin-1"), False


class Texts:
    """Reads the texts of files and counts the problems to report."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def notes(self) -> list[str]:
        return [note.format(count) for note, count in self._counts.items()]

    def of_bytes(self, content: bytes, kind: str, charset: str = "utf-8") -> str:
        """The text of a file of a media type; empty if it has no readable text."""
        if kind == "application/pdf":
            return self._pdf(content)
        if not kind.startswith("text/"):
            return ""
        text, named = decode(content, charset)
        if not named:
            self._counts[
                "Texts that are not in their declared encoding, read as UTF-8 or cp1252: {}."
            ] += 1
        text = text.replace("\r\n", "\n")
        if kind == "text/calendar":
            return _calendar(text)
        return text_of(text) if kind == "text/html" else text

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
