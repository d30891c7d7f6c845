"""The changelogs of Debian packages as records: public, real, many authors, many years."""

import gzip
import hashlib
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from evidence.errors import Unavailable
from service.demo.owner import EMITTED_AT, Connection
from service.records.intake import Row

DOCS = Path("/usr/share/doc")
CHANGELOG = "changelog.Debian.gz"
MOST_ENTRIES = 12_000
FEW_FILES = 20
HASH_CHARS = 12
DOWNLOAD_SECONDS = 120
FETCHED = ("bash", "apt", "dpkg", "glibc-source", "openssl", "python3.11", "perl-base", "git")

_HEAD = re.compile(r"(\S+) \(([^)\s]+)\) ([^;]*);(.*)")
_FOOT = re.compile(r" -- (.*?) *<([^>]*)>  ?(.*)")
_CLOSES = re.compile(r"closes:\s*(?:bug)?#?\s?\d+(?:,\s*(?:bug)?#?\s?\d+)*", re.IGNORECASE)
_URGENCY = re.compile(r"urgency=([a-z]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of a package, from its changelog."""

    package: str
    version: str
    distribution: str
    urgency: str
    author: str
    address: str
    date: str | None
    text: str


def build(*, salt: str, docs: Path = DOCS) -> Connection:
    """The connection `debian-changelogs`, from the machine's files or a few fetched packages."""
    files = sorted(docs.glob(f"*/{CHANGELOG}"))
    texts = (gzip.decompress(file.read_bytes()) for file in files)
    rows = tuple(_rows(texts if len(files) >= FEW_FILES else fetch(FETCHED), salt))
    return Connection("debian-changelogs", "debian", "Debian changelogs", rows)


def fetch(packages: Iterable[str]) -> Iterator[bytes]:
    """The changelogs of packages, which apt fetches into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["apt-get", "download", "-q", *packages]
        try:
            subprocess.run(
                command, cwd=folder, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(
                f"No Debian changelogs here, and apt-get could not fetch any: {error}. "
                "Run apt-get update, or leave --debian out."
            ) from error
        for package in sorted(Path(folder).glob("*.deb")):
            yield from _unpack(package)


def parse(text: str) -> Iterator[Entry]:
    """The entries of one changelog, newest first; unusual ones are skipped."""
    head: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.splitlines():
        if match := _HEAD.match(line):
            head, lines = match, []
        elif head and (foot := _FOOT.match(line)):
            urgency = _URGENCY.search(head[4])
            yield Entry(
                package=head[1],
                version=head[2],
                distribution=head[3].strip(),
                urgency=urgency[1].lower() if urgency else "unknown",
                author=foot[1] or "unknown",
                address=foot[2],
                date=_date(foot[3]),
                text="\n".join(lines).strip("\n"),
            )
            head = None
        else:
            lines.append(line)


def _rows(texts: Iterable[bytes], salt: str) -> Iterator[Row]:
    seen: set[str] = set()
    for text in texts:
        for entry in parse(text.decode("utf-8", "replace").replace("\0", "\ufffd")):
            name = f"{entry.package}/{entry.version}"
            if name not in seen:
                seen.add(name)
                yield Row(_record(name, entry, salt), name, EMITTED_AT, "entries")
            if len(seen) >= MOST_ENTRIES:
                return


def _record(name: str, entry: Entry, salt: str) -> dict[str, Any]:
    found = (number for text in _CLOSES.findall(entry.text) for number in re.findall(r"\d+", text))
    bugs = sorted(set(map(int, found)))
    return {
        "id": name,
        "package": entry.package,
        "version": entry.version,
        "title": f"{entry.package} {entry.version}",
        "distribution": entry.distribution,
        "urgency": entry.urgency,
        "author": entry.author,
        "author_hash": hashlib.sha256(f"{salt}{entry.address}".encode()).hexdigest()[:HASH_CHARS],
        "date": entry.date,
        "bugs": bugs,
        "bug_count": len(bugs),
        "text": entry.text,
    }


def _date(text: str) -> str | None:
    try:
        date = parsedate_to_datetime(text.strip())
        return date.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _unpack(package: Path) -> Iterator[bytes]:
    tree = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(tree.stdout)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(CHANGELOG) else None
            if file is not None:
                yield gzip.decompress(file.read())
