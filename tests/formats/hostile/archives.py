"""Archives made to stop, swell or mislead an import."""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from tests.formats.hostile.files import Content, Hostile, kind, several

#: How an entry of the directory of an archive begins; its flags follow.
ENTRY = b"PK\x01\x02\x14\x03\x14\x00"
ROW = '{"id": 1, "t": "in an archive"}\n'


def member(name: str, content: Content = ROW, **about: Any) -> tuple[zipfile.ZipInfo, Content]:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    for key, value in about.items():
        setattr(info, key, value)
    return info, content


def archive(*members: tuple[zipfile.ZipInfo, Content]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as new:
        for info, content in (member("good.ndjson", '{"id": 0, "t": "good"}\n'), *members):
            new.writestr(info, content)
    return made.getvalue()


def sized(content: bytes, size: int) -> bytes:
    """An archive whose last member claims to unpack to so many bytes."""
    place = content.rindex(b"PK\x01\x02")
    return content[: place + 24] + struct.pack("<I", size) + content[place + 28 :]


@kind
def archives() -> Iterator[Hostile]:
    zeros = bytes(60_000_000)
    inner = archive(member("a.ndjson"))
    usual = archive(member("a.ndjson"))
    yield from several(".zip", {
        "bomb": archive(*(member(f"{n}.ndjson", zeros) for n in range(6))),
        "nested": archive(member("inner.zip", inner)),
        "up": archive(member("../../../tmp/up.ndjson"), member("a/../../b.ndjson")),
        "root": archive(*map(member, ("/etc/x.ndjson", "C:\\x.ndjson", "..\\..\\x.ndjson"))),
        "link": archive(member("link.ndjson", "/etc/passwd", external_attr=0o120777 << 16)),
        "encrypted": usual.replace(ENTRY + b"\x00", ENTRY + b"\x01"),
        "long": archive(member(f"{'n' * 60_000}.ndjson")),
        "controls": archive(member("\x1b[31m\u202e\n.ndjson")),
        "twice": archive(member("a.ndjson"), member("b.ndjson")).replace(b"b.ndjson", b"a.ndjson"),
        "method": usual.replace(b"\x08\x00", b"\x63\x00"),
        "crc": usual.replace(struct.pack("<I", zlib.crc32(ROW.encode())), b"\0\0\0\0"),
        "large": sized(usual, 0xFFFF_FFFE),
        "small": sized(usual, 3),
        "cut": usual[:-30],
        "garbage": b"PK\x03\x04" + bytes(range(256)) * 99,
        "members": archive(*(member(f"{n}.txt", "x") for n in range(2_000))),
        "folders": archive(*(member(f"{n}/channels.json", "[]") for n in range(1_000))),
        "packed": archive(member("a.ndjson.gz", gzip.compress(zeros))),
        "depth": archive(member("a/" * 400 + "a.ndjson")),
    })  # fmt: skip
    yield from several(
        ".ndjson.gz",
        {
            "gzip-bomb": gzip.compress(bytes(400_000_000)),
            "gzip-row": gzip.compress(b'{"id": 1, "t": "' + bytes(99_999_999)),
            "gzip-cut": gzip.compress(ROW.encode() * 999)[:-20],
            "gzip-crc": gzip.compress(ROW.encode())[:-8] + bytes(8),
            "gzip-more": gzip.compress(ROW.encode()) + b"garbage",
            "gzip-twice": gzip.compress(gzip.compress(ROW.encode())),
            "gzip-none": b"\x1f\x8b",
            "gzip-head": b"\x1f\x8b\x08\xff" + b"\xff" * 999,
        },
    )
