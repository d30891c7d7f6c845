"""Converts Outlook messages (`.msg`) to the mail format that the mail reader parses."""

from email import message_from_bytes
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.encoders import encode_base64
from email.parser import HeaderParser
from email.utils import format_datetime
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from io import BytesIO
from typing import Any, Final, cast

from evidence.errors import InvalidRequest
from service.importing.charsets import decode

#: Numbers of properties, and those that have a fixed size with their type.
_SUBJECT, _BODY, _HTML, _RTF, _HEADERS = 0x0037, 0x1000, 0x1013, 0x1009, 0x007D
_FROM_NAME, _FROM, _FROM_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_NAME, _ADDRESS, _SMTP, _RECIPIENT = 0x3001, 0x3003, 0x39FE, 0x0C150003
_FILE, _FILES, _KIND, _FILE_NAME, _SHORT_NAME = 0x3701, "__attach", 0x370E, 0x3707, 0x3704
_TIMES: Final = (0x00390040, 0x0E060040)
_CODE_PAGES: Final = (0x3FFD0003, 0x3FDE0003)
_IDS: Final = {"Message-ID": 0x1035, "In-Reply-To": 0x1042, "References": 0x1039}
_ADDRESSED: Final = {1: "To", 2: "Cc"}
_COPIED: Final = ("From", "To", "Cc", "Date", *_IDS)
#: The bytes before the properties of a message, a message in one, and its parts.
_OUTER, _INNER, _PART = 32, 24, 8
_PROPERTY_BYTES: Final = 16
_CHARSETS: Final = {20127: "ascii", 20866: "koi8-r", 28591: "iso-8859-1", 65001: "utf-8"}
_LEVELS: Final = 8
#: What would end the quoted name of a person.
_QUOTES: Final = str.maketrans("", "", '\\"<>')
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)


def as_mail(content: bytes) -> bytes:
    """The message in a file, with its files and the messages in it. Equal for equal content."""
    from olefile import OleFileIO  # an extra

    try:
        with OleFileIO(BytesIO(content)) as ole:
            mail = _message(ole, [], _OUTER)
    except OSError as error:
        what = f"The file is not a complete Outlook message: {error}."
        raise InvalidRequest(f"{what} Save the message again in Outlook.") from error
    parts = (part for part in mail.walk() if part.get_content_maintype() == "multipart")
    for number, part in enumerate(parts):
        part.set_boundary(f"{sha256(content).hexdigest()}-{number}")
    return mail.as_bytes()


class _Properties:
    """The properties of a message, a recipient or a file, by their numbers."""

    def __init__(self, ole: Any, path: list[str], begin: int) -> None:
        self._ole, self.path = ole, path
        content = self._stream("__properties_version1.0")[begin:]
        self._fixed = {
            int.from_bytes(content[at : at + 4], "little"): content[at + 8 : at + 16]
            for at in range(0, len(content), _PROPERTY_BYTES)
        }

    def _stream(self, name: str) -> bytes:
        path = [*self.path, name]
        return bytes(self._ole.openstream(path).read()) if self._ole.exists(path) else b""

    def number(self, number: int) -> int:
        return int.from_bytes(self._fixed.get(number, b""), "little")

    def binary(self, number: int) -> bytes:
        return self._stream(f"__substg1.0_{number:04X}0102")

    def text(self, number: int) -> str:
        """A text, in UTF-16 or in the code page of the message."""
        if wide := self._stream(f"__substg1.0_{number:04X}001F"):
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        content = self._stream(f"__substg1.0_{number:04X}001E")
        return decode(content, self.charset)[0].rstrip("\0")

    @property
    def charset(self) -> str:
        page = next(filter(None, map(self.number, _CODE_PAGES)), 1252)
        return _CHARSETS.get(page, f"cp{page}" if page < 1_000 else f"windows-{page}")

    def parts(self, kind: str) -> list["_Properties"]:
        """The recipients or files of a message."""
        depth = len(self.path)
        folders = self._ole.listdir(streams=False, storages=True)
        inside = (path for path in folders if path[:depth] == self.path and len(path) == depth + 1)
        return [_Properties(self._ole, path, _PART) for path in inside if path[-1].startswith(kind)]


def _message(ole: Any, path: list[str], begin: int) -> Message:
    if len(path) > 2 * _LEVELS:
        deep = f"The messages in this file are nested more than {_LEVELS} levels deep."
        raise InvalidRequest(f"{deep} Save the inner messages as separate files.")
    about, mail = _Properties(ole, path, begin), MIMEMultipart()
    mail.attach(_body(about))
    for file in about.parts(_FILES):
        mail.attach(_file(ole, file))
    received, own = HeaderParser().parsestr(about.text(_HEADERS).lstrip()), _own(about)
    headers = {name: str(received.get(name) or own.get(name) or "") for name in _COPIED}
    headers["Subject"] = about.text(_SUBJECT)
    lines = (f"{name}: {' '.join(text.split())}\r\n" for name, text in headers.items() if text)
    return message_from_bytes("".join(lines).encode("utf-8", "replace") + mail.as_bytes())


def _own(about: _Properties) -> dict[str, str]:
    """The headers of a message that was not received, so has none."""
    headers = {name: about.text(number) for name, number in _IDS.items()}
    sender = next(filter(None, map(about.text, (_FROM_SMTP, _FROM))), "")
    headers["From"] = _person(about.text(_FROM_NAME), sender)
    for person in about.parts("__recip"):
        address = person.text(_SMTP) or person.text(_ADDRESS)
        if name := _ADDRESSED.get(person.number(_RECIPIENT) & 0xF):
            people = [headers.get(name, ""), _person(person.text(_NAME), address)]
            headers[name] = ", ".join(filter(None, people))
    if ticks := next(filter(None, map(about.number, _TIMES)), 0):
        headers["Date"] = format_datetime(_EPOCH + timedelta(microseconds=ticks // 10))
    return headers


def _person(name: str, address: str) -> str:
    """A name and an address; one that only an organization can read is left out."""
    name = f'"{name.translate(_QUOTES)}"' if name and name != address else ""
    return f"{name} <{address}>".strip() if "@" in address else name


def _body(about: _Properties) -> MIMEText:
    text, page = about.text(_BODY), about.binary(_HTML)
    if text.strip() or not page and not about.binary(_RTF):
        return MIMEText(text, "plain", "utf-8")
    if page:
        return MIMEText(decode(page, about.charset)[0], "html", "utf-8")
    from striprtf import striprtf  # an extra

    rtf, as_text = unpacked_rtf(about.binary(_RTF)), cast(Any, striprtf.rtf_to_text)
    return MIMEText(as_text(rtf.decode("cp1252", "replace"), errors="replace"), "plain", "utf-8")


def _file(ole: Any, file: _Properties) -> Message:
    name = file.text(_FILE_NAME) or file.text(_SHORT_NAME) or file.text(_NAME)
    inner = [*file.path, f"__substg1.0_{_FILE:04X}000D"]
    if ole.exists([*inner, "__properties_version1.0"]):
        return MIMEMessage(_message(ole, inner, _INNER))
    kind, _, subtype = file.text(_KIND).partition("/")
    usable = kind.isalnum() and subtype.isascii() and not set(subtype) & set(" ;\r\n\0")
    part = MIMEBase(*(kind, subtype) if usable and subtype else ("application", "octet-stream"))
    part.set_payload(file.binary(_FILE))
    encode_base64(part)
    names = ("utf-8", "", " ".join(name.split()))
    part.add_header("Content-Disposition", "attachment", filename=names)
    return part


#: What compressed RTF can refer to before its first byte.
_COMMON: Final = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern "
    b"\\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0"
    b"\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_WINDOW: Final = 4_096


def unpacked_rtf(packed: bytes) -> bytes:
    """The RTF in its compressed form: 16 bytes, then groups of literals and of references back."""
    if packed[8:12] != b"LZFu":
        return packed[16:]
    out, at = bytearray(_COMMON), 16
    while at < len(packed):
        flags, at = packed[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                out += packed[at : at + 1]
                at += 1
                continue
            token = int.from_bytes(packed[at : at + 2], "big")
            back = (len(out) - (token >> 4)) % _WINDOW
            at += 2
            if not back or back > len(out):
                return bytes(out[len(_COMMON) :])
            for _ in range((token & 0xF) + 2):
                out.append(out[-back])
    return bytes(out[len(_COMMON) :])
