"""Recognizes files that cannot be imported by their first bytes, with advice."""

import re
from typing import Final

_TABLE: Final = "Save it as CSV there, and import that."

#: (first bytes, what the file is, what to do with it).
KNOWN: Final = (
    (rb"\xd0\xcf\x11\xe0", "an old Office document", _TABLE),
    (rb"PK\x03\x04.{0,200}opendocument", "a LibreOffice document", _TABLE),
    (rb"PK\x03\x04", "an Office document or an archive", "Unpack it, or save it as CSV or text."),
    (rb"%PDF-", "a PDF document", "Import it as an attachment of a mail, or save its text."),
    (rb"window\.YTD", "a file of a Twitter archive", "Delete what is before the [, name it .json."),
    (rb"!BDN", "an Outlook archive", "Convert it to mbox: readpst FILE."),
    (rb"PAR1", "a Parquet file", "Convert it to NDJSON, for example with duckdb."),
    (rb"\s*<(!doctype html|html)", "a web page", "Save its data as JSON or CSV."),
    (rb"\s*<\?xml|\s*<[a-z]+[ >]", "an XML document", "Convert it to NDJSON."),
    (
        rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP",
        "an image",
        "Only its metadata could be imported.",
    ),
    (rb".{257}ustar", "a tar archive", "Unpack it: tar -xf FILE. Then import the folder."),
    (rb"7z\xbc\xaf|Rar!|\xfd7zXZ|BZh", "an archive", "Unpack it first."),
)
_PATTERNS = tuple(
    (re.compile(begins, re.DOTALL | re.IGNORECASE), f"{what}. {advice}")
    for begins, what, advice in KNOWN
)
_MARK = re.compile(rb"^\xef\xbb\xbf|\xe2\x80[\x8e\x8f]")


def looks_like(head: bytes) -> str | None:
    """What a file with these first bytes is, and what to do with it; None if unknown."""
    head = _MARK.sub(b"", head)
    return next((what for pattern, what in _PATTERNS if pattern.match(head)), None)
