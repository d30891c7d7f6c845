"""The encoding of a text file: by its mark, else UTF-8, else what charset-normalizer detects."""

import codecs
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, TextIO

from charset_normalizer import from_bytes

from service.importing.source import Source

MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
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


def encoding_of(source: Source) -> str:
    """The encoding of a file, and a note if it is not UTF-8."""
    encoding = source.reading.encoding or _detect(source.file)
    if encoding not in UTF_8:
        how = "as --encoding says" if source.reading.encoding else "detected"
        source.notes.append(f"The text is read as {encoding} ({how}); --encoding NAME changes it.")
    return encoding


@contextmanager
def as_text(source: Source, newline: str = "\n") -> Iterator[TextIO]:
    """The text of a file, without its mark; undecodable bytes are lone surrogates."""
    encoding = encoding_of(source)
    encoding = "utf-8-sig" if encoding in UTF_8 else encoding
    text = io.TextIOWrapper(source.file, encoding, errors=UNDECODABLE, newline=newline)
    try:
        yield text
    finally:
        text.detach()


def _detect(file: BinaryIO) -> str:
    seekable = file.seekable()
    start = file.tell() if seekable else 0
    head = getattr(file, "peek", file.read)(HEAD_BYTES)  # a pipe has peek
    if seekable:
        file.seek(start)
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return encoding
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
    """UTF-16 without a mark: every other byte of most texts is 0."""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = head[first::2].count(0), head[1 - first :: 2].count(0)
        if zeros * 2 > len(head) // 2 and not others:
            return encoding
    return None


def _odd(lines: Iterable[bytes]) -> bytes:
    """Lines that are not UTF-8, if most lines beyond ASCII are not. A long one comes in pieces."""
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
