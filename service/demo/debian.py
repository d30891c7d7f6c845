"""The changelogs of Debian packages as records: public, real, many authors, many years."""

import gzip
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
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
            files = package.with_suffix("")
            subprocess.run(["dpkg-deb", "--extract", package, files], check=True)
            yield from (gzip.decompress(file.read_bytes()) for file in files.rglob(CHANGELOG))


def parse(text: str, salt: str) -> Iterator[dict[str, Any]]:
    """The entries of one changelog as records, newest first; unusual ones are skipped."""
    head: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.splitlines():
        if match := _HEAD.match(line):
            head, lines = match, []
        elif head and (foot := _FOOT.match(line)):
            yield _record(head, "\n".join(lines).strip("\n"), foot, salt)
            head = None
        else:
            lines.append(line)


def _rows(texts: Iterable[bytes], salt: str) -> Iterator[Row]:
    seen: set[str] = set()
    for text in texts:
        for record in parse(text.decode("utf-8", "replace").replace("\0", "\ufffd"), salt):
            if record["id"] not in seen:
                seen.add(record["id"])
                yield Row(record, record["id"], EMITTED_AT, "entries")
            if len(seen) >= MOST_ENTRIES:
                return


def _record(head: re.Match[str], text: str, foot: re.Match[str], salt: str) -> dict[str, Any]:
    """The record of one version of a package, from the lines around its text."""
    package, version, distribution, options = head.groups()
    author, address, date = foot.groups()
    urgency = _URGENCY.search(options)
    found = (number for part in _CLOSES.findall(text) for number in re.findall(r"\d+", part))
    bugs = sorted(set(map(int, found)))
    return {
        "id": f"{package}/{version}",
        "package": package,
        "version": version,
        "title": f"{package} {version}",
        "distribution": distribution.strip(),
        "urgency": urgency[1].lower() if urgency else "unknown",
        "author": author or "unknown",
        "author_hash": hashlib.sha256(f"{salt}{address}".encode()).hexdigest()[:HASH_CHARS],
        "date": _date(date),
        "bugs": bugs,
        "bug_count": len(bugs),
        "text": text,
    }


def _date(text: str) -> str | None:
    try:
        date = parsedate_to_datetime(text.strip())
        return date.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
