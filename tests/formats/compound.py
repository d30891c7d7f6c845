"""Writes compound files, in which Outlook and old Office programs store streams in folders."""

from collections.abc import Mapping
from struct import pack
from typing import Any

SECTOR, SMALL, LEAST = 512, 64, 4_096
END, FREE, FAT, NONE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD, 0xFFFFFFFF
FOLDER, STREAM, ROOT = 1, 2, 5


def compound(streams: Mapping[str, Any]) -> bytes:
    """A file with streams: bytes by name, or a mapping for a folder."""
    entries: list[list[Any]] = [["Root Entry", ROOT, NONE, NONE, b""]]

    def add(folder: int, content: Mapping[str, Any]) -> None:
        before = None
        for name in sorted(content, key=lambda name: (len(name), name.upper())):
            value, number = content[name], len(entries)
            kind = STREAM if isinstance(value, bytes) else FOLDER
            entries.append([name, kind, NONE, NONE, value if kind == STREAM else b""])
            entries[folder if before is None else before][3 if before is None else 2] = number
            before = number
            if kind == FOLDER:
                add(number, value)

    add(0, streams)
    sectors, table = list[bytes](), list[int]()
    small, small_table = b"", list[int]()

    def store(content: bytes) -> int:
        start, count = len(sectors), -(-len(content) // SECTOR)
        sectors.extend(content[n * SECTOR : (n + 1) * SECTOR] for n in range(count))
        table.extend([*range(start + 1, start + count), END][:count])
        return start if count else END

    starts = []
    for _, kind, _, _, content in entries:
        if kind != STREAM or len(content) >= LEAST:
            starts.append(store(content) if kind == STREAM else 0)
            continue
        start, count = len(small_table), -(-len(content) // SMALL)
        small += content.ljust(count * SMALL, b"\0")
        small_table.extend([*range(start + 1, start + count), END][:count])
        starts.append(start if count else END)
    starts[0], entries[0][4] = store(small), small
    small_fat = store(pack(f"<{len(small_table)}I", *small_table).ljust(SECTOR, b"\xff"))
    directory = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + pack("<HBBIII", 2 * len(name) + 2, kind, 1, NONE, after, child)
        + bytes(36)
        + pack("<IQ", start, len(content))
        for (name, kind, after, child, content), start in zip(entries, starts)
    )
    first = store(directory.ljust(-(-len(directory) // SECTOR) * SECTOR, b"\0"))
    count = -(-(len(table) + 1) // (SECTOR // 4 - 1))
    fats = range(len(sectors), len(sectors) + count)
    table += [FAT] * count + [FREE] * (count * SECTOR // 4 - len(table) - count)
    head = pack("<8s16xHHHHH6x", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6)
    head += pack("<IIIIIIIII", 0, count, first, 0, LEAST, small_fat, 1, END, 0)
    head += pack(f"<{count}I", *fats).ljust(436, b"\xff")
    body = b"".join(sector.ljust(SECTOR, b"\0") for sector in sectors)
    return head + body + pack(f"<{len(table)}I", *table)
