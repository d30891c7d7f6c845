"""Decodes text in a named charset as browsers do, by the labels of the WHATWG standard."""

import binascii
import codecs
import re
from email.policy import EmailPolicy
from email.quoprimime import header_decode
from functools import cache, lru_cache
from typing import Any, Final

import webencodings

#: Encodings of the standard whose codec of that name in Python has fewer characters.
_WIDER: Final = {
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
    "iso-8859-8-i": "iso-8859-8",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "windows-874": "cp874",
    "windows-1252": "cp1252",
    "utf-16le": "utf-16",
}
WESTERN: Final = "cp1252"
_STRAY: Final = "rung-stray-bytes"
#: Longer headers would fill memory if they were cached: parsed ones are many times larger.
_SHORT_CHARS: Final = 1_024


def _stray(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are invalid in the encoding, as characters of cp1252 or Latin-1."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw = error.object[error.start : error.end]
    try:
        return raw.decode(WESTERN), error.end
    except UnicodeDecodeError:
        return raw.decode("latin-1"), error.end


codecs.register_error(_STRAY, _stray)


@cache
def codec(label: str) -> str | None:
    """The codec for a charset's label; None if there is none."""
    label = label.strip().strip("\"'").lower()
    encoding = webencodings.lookup(label)
    name = _WIDER.get(encoding.name, encoding.name) if encoding else label
    try:
        info = codecs.lookup(name)
        # Only codecs of text: others, such as `hex`, are not charsets.
        return info.name if isinstance(b"".decode(info.name), str) else None
    except (LookupError, UnicodeError, ValueError):
        return None


def decode(content: bytes, charset: str = "utf-8") -> tuple[str, bool]:
    """(text, True if it is valid in its declared charset); no byte is lost.

    Text that is declared as ASCII or Latin-1 is UTF-8 if it is valid UTF-8.
    """
    name = codec(charset)
    if name in (None, WESTERN):
        try:
            return content.decode(), name is not None
        except UnicodeDecodeError:
            pass
    try:
        return content.decode(name or "utf-8"), name is not None
    except UnicodeDecodeError:
        return content.decode(name or "utf-8", _STRAY), False


#: Encoded words with one charset and encoding, which may cut a character in two.
_WORDS: Final = re.compile(
    r"=\?([^?*\s]++)(?:\*[^?\s]*+)?\?([bq])\?([^?\r\n]*+)\?="
    r"(?:\s*+=\?\1(?:\*[^?\s]*+)?\?\2\?[^?\r\n]*+\?=)*+",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"=\?[^?]*+\?[bq]\?([^?\r\n]*+)\?=", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"(\*=)([\w.:-]++)(?=')")


class WebPolicy(EmailPolicy):
    """Headers whose bytes and encoded words are decoded with the labels of the web."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """(name, value) of a header; encoded words in it are UTF-8."""
        name, value = super().header_source_parse(sourcelines)
        if not value.isascii():
            value = decode(value.encode("utf-8", "surrogateescape"))[0]
        if "=?" in value:
            value = _WORDS.sub(_in_utf_8, value)
        if "*=" in value:
            value = _PARAMETER.sub(lambda match: match[1] + (codec(match[2]) or match[2]), value)
        return name, value

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """A header's value, parsed. The short ones of a mail are asked for up to 20 times."""
        parse = _parsed if len(value) <= _SHORT_CHARS else super().header_fetch_parse
        return parse(name, value)


@lru_cache
def _parsed(name: str, value: str) -> Any:
    return EmailPolicy.header_fetch_parse(POLICY, name, value)


def _in_utf_8(match: re.Match[str]) -> str:
    """Encoded words as one in UTF-8."""
    pieces = []
    for text in _WORD.findall(match[0]):
        if match[2] in "qQ":
            pieces.append(header_decode(text).encode("latin-1", "replace"))
            continue
        letters = re.sub(r"[^A-Za-z0-9+/]", "", text)
        letters = letters[: len(letters) - (len(letters) % 4 == 1)]
        pieces.append(binascii.a2b_base64(letters + "=" * (-len(letters) % 4)))
    text = decode(b"".join(pieces), match[1])[0]
    coded = binascii.b2a_base64(text.encode("utf-8", "replace"), newline=False).decode()
    return f"=?utf-8?b?{coded}?="


POLICY: Final[Any] = WebPolicy()
