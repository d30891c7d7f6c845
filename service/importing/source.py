"""Formats, their files, and what a reader yields: (line, row) or (line, message).

A message explains why the row at a line is refused. Instead of a row, a reader may yield a function
that parses the record: if that fails or takes too long, only this record is lost. A package that
adds a format imports from here, and `Row` from `service.records.intake`.
"""

import codecs
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, Protocol, TextIO, cast

import orjson

from evidence.limits import BUDGETS
from service.importing.tree import Tree
from service.records.intake import Row

REPLACEMENT = "\ufffd"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Undecodable(ValueError):
    """A text contains bytes that are invalid in its encoding."""


@dataclass(slots=True)
class Repair:
    """Replaces characters that text must not contain, and counts them.

    Undecodable bytes arrive as lone surrogates. They raise `Undecodable` unless
    `replace` is set.
    """

    replace: bool = False
    nuls: int = 0
    undecodable: int = 0

    def text(self, text: str) -> str:
        if "\0" in text:
            self.nuls += text.count("\0")
            text = text.replace("\0", REPLACEMENT)
        return self.decoded(text)

    def decoded(self, text: str) -> str:
        try:
            text.encode()  # much faster than looking for surrogates
            return text
        except UnicodeEncodeError:
            if not self.replace:
                raise Undecodable(
                    "The text contains bytes that are invalid in its encoding. Set --encoding, "
                    "or use --replace-undecodable to store U+FFFD in their place"
                ) from None
        text, count = _SURROGATE.subn(REPLACEMENT, text)
        self.undecodable += count
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it repaired."""
        try:
            if b"\\u0000" not in orjson.dumps(value):  # much faster than looking into it
                return value
        except TypeError:
            pass
        return self._inside(value)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._inside(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self._inside(item) for name, item in value.items()}
        return value


#: Names that do not describe the rows: days, numbers, hashes.
_NAMELESS = re.compile(r"[\W\d_]+|[0-9a-f-]{32,}", re.IGNORECASE)
NAMELESS = "records"
_HASH = re.compile(r"(?<=.)[ _-][0-9a-f]{32}$")


@dataclass(frozen=True, slots=True)
class Raw:
    """A record whose rows depend only on its bytes, a context, the owner's choices and our code.

    It is not parsed again while they are stored unchanged.
    """

    parse: Callable[[], Iterable[Row]]
    content: bytes
    context: str

    def __call__(self) -> Iterable[Row]:
        return self.parse()


#: A row, a message, or a function that returns one or several of these.
Content = Row | str | Callable[[], Row | str | Iterable[Any]]
Item = tuple[int, Content]


@dataclass(frozen=True, slots=True)
class Reading:
    """The owner's choices for reading files; None means detect."""

    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    roles: bool = True


@dataclass(slots=True)
class Source:
    """A file that is being read: its name, its format, and the repairs made to its text.

    `group` is the stream of all files of its shape in its folder. `notes` are reports for its owner
    on how it was read, `problems` counts notes with `{}` for their number; `comma` is True if its
    numbers are likely to have a decimal comma. `decisive` has, by stream ("" if there is one) and
    column, values from all rows that decide the type of the column. `tree` has the files beside it.
    """

    name: str
    format: str
    file: BinaryIO
    repair: Repair
    reading: Reading = Reading()
    tree: Tree = field(default_factory=lambda: Tree(""))
    notes: list[str] = field(default_factory=list)
    comma: bool | None = None
    decisive: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    group: str | None = None
    problems: Counter[str] = field(default_factory=Counter)

    @property
    def reported(self) -> tuple[int, ...]:
        """Changes with every report on how the file was read."""
        counts = self.repair.nuls, self.repair.undecodable, self.problems.total()
        return *counts, len(self.notes), len(self.tree.used)

    @property
    def folder(self) -> str:
        """The file's name without folder and extension."""
        return Path(self.name).stem

    @property
    def stream(self) -> str:
        """The default stream of rows: the file's name, or its folder's if that is meaningless."""
        path = Path(self.name)
        names = (titled(path.stem), path.parent.name, Path(self.tree.path).stem)
        return next((name for name in names if name and not _NAMELESS.fullmatch(name)), NAMELESS)


def titled(stem: str) -> str:
    """The name of a file without the hash that some exporters add."""
    return _HASH.sub("", stem)


class Beginning(Protocol):
    """Recognizes a format by the first bytes of a file, as a pattern does."""

    def match(self, string: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, its file extensions, the first bytes of its files, and its reader.

    Files with `any_extension` are recognized by their first bytes alone. A folder with all files of
    `folder` is read as one source, starting with the first. `manifest` declares the streams if they
    are always the same, or returns them for a source; otherwise they are inferred. The values of an
    `untyped` format are all text, and their types are inferred. Records of a `unique` format are
    left out if an earlier file of the same folder has them. Files of a format that comes `last` are
    read after all others, unless these attach them to a record. A format that `requires` a module
    needs the extra `documents`. An SQLite database with all `tables` is read by this format.
    """

    name: str
    extensions: tuple[str, ...]
    begins: Beginning
    read: Callable[[Source], Iterator[Item]]
    manifest: dict[str, Any] | Callable[[Source], dict[str, Any]] | None = None
    untyped: bool = False
    any_extension: bool = False
    folder: tuple[str, ...] = ()
    unique: bool = False
    last: bool = False
    requires: str = ""
    tables: tuple[str, ...] = ()


#: Options of parsers of XML, which then read no entities, DTDs and other parts.
SAFE_XML: Final = {"resolve_entities": False, "no_network": True, "load_dtd": False}
UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
UTF_8: Final = ("utf-8", "utf-8-sig", "ascii")
#: Encodings to detect: those in common use.
LIKELY: Final = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
)
#: The encoding assumed for short texts that fit several.
WESTERN: Final = "cp1252"
NEAR: Final = 0.1
HEAD_BYTES: Final = 1 << 20
SAMPLE_BYTES: Final = 1 << 16
UNDECODABLE: Final = "rung-undecodable"


def _keep_bytes(error: UnicodeError) -> tuple[str, int]:
    """Undecodable bytes as lone surrogates, whatever the encoding."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in raw), error.end


codecs.register_error(UNDECODABLE, _keep_bytes)


@contextmanager
def as_text(source: Source, newline: str = "\n") -> Iterator[TextIO]:
    """The text of a file, without its byte order mark; undecodable bytes are lone surrogates.

    Adds a note if it is not UTF-8.
    """
    encoding = source.reading.encoding or _detect(source.file)
    if encoding in UTF_8:
        encoding = "utf-8-sig"
    else:
        how = "from --encoding" if source.reading.encoding else "detected"
        source.notes.append(
            f"The text is read as {encoding} ({how}). To change this, use --encoding NAME."
        )
    text = io.TextIOWrapper(source.file, encoding, errors=UNDECODABLE, newline=newline)
    try:
        yield text
    finally:
        text.detach()


@contextmanager
def seekable(source: Source) -> Iterator[None]:
    """Makes the file of a source one that can be read twice; a pipe is copied."""
    with TemporaryFile() as copy:
        if not source.file.seekable():
            copyfileobj(source.file, copy)
            copy.seek(0)
            source.file = cast(BinaryIO, copy)
        yield


def bounded_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, without its byte order mark; UTF-16 becomes UTF-8.

    Lines over the largest record are cut into several.
    """
    head = file.peek(2) if isinstance(file, io.BufferedReader) else b""
    if head[:2] in UTF_16:
        text = io.TextIOWrapper(file, "utf-16", errors="replace", newline="")
        try:
            yield from (line.encode() for line in text_lines(text))
        finally:
            text.detach()
        return
    yield file.readline(BUDGETS.import_row_bytes).removeprefix(codecs.BOM_UTF8)
    yield from iter(partial(file.readline, BUDGETS.import_row_bytes), b"")


def text_lines(text: TextIO, most: int = BUDGETS.import_row_bytes) -> Iterator[str]:
    """The lines of a text from here on; those over `most` characters are cut into several."""
    return iter(partial(text.readline, most), "")


def _detect(file: BinaryIO) -> str:
    # Most files need no detection, and the package takes a fifth of the time to start a parser.
    from charset_normalizer import from_bytes
    from charset_normalizer.utils import identify_sig_or_bom

    seekable = file.seekable()
    start = file.tell() if seekable else 0
    head = getattr(file, "peek", file.read)(HEAD_BYTES)  # a pipe has peek
    if seekable:
        file.seek(start)
    marked, _ = identify_sig_or_bom(head)
    if marked is not None:
        return marked.replace("_", "-")
    if wide := _wide(head[:SAMPLE_BYTES]):
        return wide
    if seekable:
        sample = _odd(iter(lambda: file.readline(HEAD_BYTES), b""))
        file.seek(start)
    else:
        sample = _odd(head[: head.rfind(b"\n") + 1].splitlines(keepends=True))
    if not sample:
        return "utf-8"
    matches = list(from_bytes(sample, cp_isolation=list(LIKELY)))
    western = [match for match in matches if WESTERN in match.could_be_from_charset]
    best = min(matches, key=lambda match: (match.chaos, -match.coherence), default=None)
    if best is None or any(
        match.chaos <= best.chaos and match.coherence + NEAR >= best.coherence for match in western
    ):
        return WESTERN
    return best.encoding


def _wide(head: bytes) -> str | None:
    """UTF-16 without a byte order mark: every other byte of most texts is 0."""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, zeros_between = head[first::2].count(0), head[1 - first :: 2].count(0)
        if zeros * 2 > len(head) // 2 and not zeros_between:
            return encoding
    return None


def _odd(lines: Iterable[bytes]) -> bytes:
    """Lines that are not UTF-8, if most non-ASCII lines are not. Yields a long line in pieces."""
    good, bad, sample = 0, 0, b""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for line in lines:
        if line.isascii():
            decoder.reset()
            continue
        try:
            decoder.decode(line, final=line.endswith(b"\n"))
            good += 1
        except UnicodeDecodeError:
            decoder.reset()
            bad += 1
            if len(sample) < SAMPLE_BYTES:
                sample += line[:SAMPLE_BYTES]
    return sample if bad > good else b""
