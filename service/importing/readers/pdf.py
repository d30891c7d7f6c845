"""Reads the pages of PDF files in limited time; runs no scripts, opens no links or attachments."""

import io
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from evidence.work import Deadline
from service.importing.process.sandbox import cpu_seconds

#: The CPU time for the text of a file.
SECONDS: Final = 5.0


class Pdf:
    """A PDF file. Raises ImportError without pypdf, and any exception if the file is broken.

    `incomplete` is True if reading stopped because it took too long; `unreadable` counts pages.
    """

    def __init__(self, content: bytes) -> None:
        from pypdf import PdfReader  # an extra

        logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # failures are raised and counted
        self._reader: Any = PdfReader(io.BytesIO(content))
        self.incomplete, self.unreadable = False, 0

    def locked(self) -> bool:
        """True if the file cannot be read without a password."""
        return bool(self._reader.is_encrypted and not self._reader.decrypt(""))

    def pages(self, most: int) -> Iterator[str]:
        """The texts of the first pages; those of broken pages are empty."""
        deadline = Deadline.after(SECONDS, cpu_seconds)
        for number, page in enumerate(self._reader.pages):
            if number == most or deadline.expired():
                self.incomplete = True
                return
            try:
                yield page.extract_text()
            except MemoryError:
                raise
            except Exception:  # of a library that reads anything
                self.unreadable += 1
                yield ""

    def about(self) -> dict[str, Any]:
        """What the file says about itself: `title`, `author`, `modified_at`."""
        try:
            about = self._reader.metadata
            modified = about.modification_date if about else None
        except Exception:  # a date in any form
            about, modified = self._reader.metadata, None
        at = modified.isoformat() if isinstance(modified, datetime) else None
        return {"title": about.title, "author": about.author, "modified_at": at} if about else {}
