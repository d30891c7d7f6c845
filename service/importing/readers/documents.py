"""Documents: one record per file, with its text and the positions of pages, slides or chapters."""

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.importing.readers import office, web_pages
from service.importing.charsets import decode
from service.importing.readers.office import Document
from service.importing.readers.pdf import Pdf
from service.importing.rows import row, stream
from service.importing.process.sandbox import cpu_seconds
from service.importing.source import Format, Item, Source, as_text, titled
from service.importing.tree import check, most
from service.records.intake import Row, content_key
from evidence.times import microseconds

DOCUMENTS: Final = "documents"
MANIFEST: Final = {
    "streams": [
        stream(
            DOCUMENTS,
            "id:id title:title author:actor kind:group filename:words folder:group text:text"
            " parts:objects modified_at:time",
        )
    ]
}
#: The CPU time after which the parts so far become the record.
_SECONDS: Final = 7.0
_PAGES: Final = 10_000
_LABEL_CHARS: Final = 200
_LONG: Final = "Reading took too long. The record contains only the text up to {}."
_BLANK: Final = re.compile(r"\n(?:[ \t\r]*+\n){2,}+")


def _reader(open_document: Callable[[Source], Document]) -> Callable[[Source], Iterator[Item]]:
    def read(source: Source) -> Iterator[Item]:
        """The record of a file."""
        yield 1, partial(_record, open_document, source)

    return read


def _record(open_document: Callable[[Source], Document], source: Source) -> Iterator[Row | str]:
    """The record of a file, or why it is refused; nothing if the file has no text."""
    try:
        document = open_document(source)
        text, parts = _joined(source, document)
    except InvalidRequest as error:
        yield error.message
        return
    except (BadZipFile, EOFError, NotImplementedError) as error:
        yield f"The file is damaged, or is not a document of this format: {error}."
        return
    if not text:
        return
    key, about = source.tree.inside(source.name), document.about
    path = PurePosixPath(key)
    title, author = (" ".join(str(about.get(name) or "").split()) for name in ("title", "author"))
    data = {
        "id": key if len(key.encode()) < 500 else content_key({"id": key}),
        "title": title or titled(path.stem),
        "author": author,
        "kind": path.suffix.lower().lstrip(".") or source.format,
        "filename": path.name,
        "folder": str(path.parent).strip("."),
        "text": text,
        "parts": parts,
        "modified_at": _time(about.get("modified_at")),
    }
    yield row(source, DOCUMENTS, data)


def _joined(source: Source, document: Document) -> tuple[str, list[dict[str, Any]]]:
    """The text of all parts, and each part with its offsets in code points."""
    texts, parts, size = list[str](), list[dict[str, Any]](), 0
    deadline = Deadline.after(_SECONDS, cpu_seconds)
    for label, content in document.parts:
        if deadline.expired():
            source.notes.append(_LONG.format(parts[-1]["label"] if parts else "its first part"))
            break
        if not (text := _BLANK.sub("\n\n", content).strip()):
            continue
        start = size + 2 * bool(parts)
        size = start + len(text)
        texts.append(text)
        parts.append({"label": label[:_LABEL_CHARS], "start": start, "end": size})
    return "\n\n".join(texts), parts


def _time(value: Any) -> str | None:
    """A time that can be compared; OpenDocument writes more digits than any clock has."""
    text = re.sub(r"(\.\d{6})\d+", r"\1", value.strip()) if isinstance(value, str) else ""
    return text if microseconds(text) is not None else None


def _content(source: Source) -> bytes:
    return source.file.read(BUDGETS.import_row_bytes)


def _pdf(source: Source) -> Document:
    try:
        pdf = Pdf(_content(source))
        if pdf.locked():
            raise InvalidRequest("The file is encrypted. Save it without a password.")
        about = pdf.about()
    except (InvalidRequest, MemoryError):
        raise
    except Exception as error:  # of a library that reads anything
        raise InvalidRequest(f"The file cannot be read as a PDF: {error}.") from error

    def parts() -> Iterator[office.Part]:
        label = "its first page"
        for number, text in enumerate(pdf.pages(_PAGES), start=1):
            yield (label := f"page {number}"), text
        if pdf.incomplete:
            source.notes.append(_LONG.format(label))
        if pdf.unreadable:
            source.notes.append(f"{pdf.unreadable} of the pages cannot be read.")

    return Document(about, parts())


def _zipped(open_archive: Callable[[ZipFile], Document], source: Source) -> Document:
    size = source.file.seek(0, 2)
    source.file.seek(0)
    small = size <= BUDGETS.import_attachment_bytes  # reading a member of a member begins anew
    archive = ZipFile(io.BytesIO(source.file.read()) if small else source.file)
    check(archive, source.name, most(size))
    return open_archive(archive)


def _html(source: Source) -> Document:
    content = _content(source)
    if source.reading.encoding is None and (name := web_pages.charset(content)):
        return web_pages.page(decode(content, name)[0])
    source.file.seek(0)
    with as_text(source) as text:
        return web_pages.page(text.read(BUDGETS.import_row_bytes))


#: Pictures in RTF: digits without end.
_DIGITS: Final = re.compile(r"[0-9a-fA-F\r\n]{1000,}+")
_PAGE: Final = re.compile(r"\\page(?![a-z])")
_INFO: Final = re.compile(r"\{\\(title|author) ([^{}]{0,1000})\}")
_REVISED: Final = re.compile(r"\{\\revtim((?:\\[a-z]+\d+)+)")
_CODE_PAGE: Final = re.compile(r"\\ansicpg\d+")


def _rtf(source: Source) -> Document:
    from striprtf import striprtf  # an extra

    rtf_to_text: Any = striprtf.rtf_to_text

    text = _DIGITS.sub("", _content(source).decode("cp1252", "replace"))
    page = _CODE_PAGE.search(text)
    head = f"{{\\rtf1\\ansi{page[0] if page else ''} "
    about = {
        name: rtf_to_text(f"{head}{value}}}", errors="replace").strip()
        for name, value in reversed(_INFO.findall(text))
    }
    if revised := _REVISED.search(text):
        parts = dict(re.findall(r"\\([a-z]+)(\d+)", revised[1]))
        day, clock = ([int(parts.get(name, 0)) for name in names] for names in _CLOCK)
        about["modified_at"] = "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}".format(*day, *clock)
    plain = rtf_to_text(_PAGE.sub(r"{\\uc0\\u12 }", text), errors="replace")
    return Document(about, office.numbered(plain.split("\f")))


_CLOCK: Final = (("yr", "mo", "dy"), ("hr", "min", "sec"))


def _format(
    name: str, *extensions: str, begins: bytes, read: Callable[[Source], Document], **options: Any
) -> Format:
    """A format whose files become one record each; `begins` is a pattern."""
    pattern = re.compile(begins, re.DOTALL)
    return Format(name, extensions, pattern, _reader(read), MANIFEST, last=True, **options)


def _archive(
    begins: bytes, name: str, *extensions: str, read: Callable[[ZipFile], Document]
) -> Format:
    begins, of_file = rb"PK\x03\x04(?:%b)" % begins, partial(_zipped, read)
    return _format(name, *extensions, begins=begins, read=of_file, any_extension=True)


_OPENDOCUMENT = rb".{0,40}?mimetypeapplication/vnd\.oasis\.opendocument\.(?:text|presentation)"
FORMATS: Final = (
    _format("pdf", ".pdf", begins=rb"%PDF-", read=_pdf, any_extension=True, requires="pypdf"),
    _format("rtf", ".rtf", begins=rb"\{\\rtf", read=_rtf, any_extension=True, requires="striprtf"),
    _archive(
        _OPENDOCUMENT, "opendocument", ".odt", ".odp", ".ott", ".otp", read=office.opendocument
    ),
    _archive(rb".{0,40}?mimetypeapplication/epub\+zip", "epub", ".epub", read=web_pages.book),
    _archive(rb".*?word/document", "docx", ".docx", ".docm", read=office.word),
    _archive(rb".*?ppt/presentation", "pptx", ".pptx", ".pptm", ".ppsx", read=office.slides),
    _format("html", ".html", ".htm", ".xhtml", begins=rb"(?i)\s*<(?:[a-z!?])", read=_html),
)
