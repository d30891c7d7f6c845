"""Names, links and devices that a folder can have."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

from tests.formats.hostile.archives import ROW
from tests.formats.hostile.files import Hostile, kind
from tests.formats.owner import write

NAMES = (
    *(b"\xff\xfe.ndjson", b"\xe9t\xe9.csv", b"a\nb.ndjson", b"\x1b[31m.ndjson", b"\xff.md"),
    *(b"\xff.sqlite", b"-rf.ndjson", b"%s{0}.ndjson", b"a" * 240 + b".ndjson", b"\xff.zip"),
    *(b"\xff.ics", b"'; drop.json"),
)
SWAPPED = {
    **{
        "a.sqlite": "a,b\n1,2\n",
        "b.xlsx": "a,b\n1,2\n",
        "c.json": b"SQLite format 3\0" + bytes(99),
    },
    **{"d.ics": "BEGIN:VCARD\nFN:x\nEND:VCARD\n", "e.vcf": "BEGIN:VCALENDAR\n"},
    **{"f.mbox": "a,b\n", "g.eml": "\0"},
}


@kind
def names() -> Iterator[Hostile]:
    def raw(folder: Path, name: bytes, content: bytes = ROW.encode()) -> None:
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(content)

    for number, name in enumerate(NAMES):
        yield Hostile(f"name-{number}", lambda folder, name=name: raw(folder, name))
    yield Hostile("link", lambda folder: (folder / "passwd.ndjson").symlink_to("/etc/passwd"))
    yield Hostile("loop", lambda folder: (folder / "loop").symlink_to(folder))
    yield Hostile("dangling", lambda folder: (folder / "gone.json").symlink_to("gone"))
    yield Hostile("self", lambda folder: (folder / "self.json").symlink_to("self.json"))
    yield Hostile("pipe", lambda folder: os.mkfifo(folder / "pipe.ndjson"))
    yield Hostile("device", lambda folder: (folder / "zero.csv").symlink_to("/dev/zero"))
    yield Hostile("folder", lambda folder: (folder / "folder.json").mkdir())
    yield Hostile("empty", lambda folder: write(folder, {f"e.{s}": b"" for s in ENDINGS}))
    yield Hostile("byte", lambda folder: write(folder, {f"b.{s}": b"\xff" for s in ENDINGS}))
    yield Hostile(
        "noise",
        lambda folder: write(
            folder, {f"n.{s}": random.Random(s).randbytes(50_000) for s in ENDINGS}
        ),
    )

    yield Hostile("swapped", lambda folder: write(folder, SWAPPED))

    def deep(folder: Path) -> None:
        for _ in range(300):
            folder = folder / "d"
        folder.mkdir(parents=True)
        (folder / "x.ndjson").write_text(ROW)

    yield Hostile("deep", deep)


ENDINGS = (
    "ndjson",
    "json",
    "csv",
    "tsv",
    "mbox",
    "eml",
    "ics",
    "vcf",
    "md",
    "txt",
    "html",
    "sqlite",
    "xlsx",
    "zip",
    "gz",
)
