"""Fetching a snapshot at boot, for hosts whose disks start empty."""

import fcntl
import gzip
import hashlib
import lzma
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evidence.errors import EvidenceError, InvalidRequest, TooLarge, Unavailable
from evidence.limits import BUDGETS
from service.upstreams import outbound
from service.upstreams.papers.disk import reason
from service.upstreams.papers.layout import MAGIC

CHECKSUM = re.compile(r"[0-9a-f]{64}")
FETCHING = ".fetching-"
WANTED = "Offer a snapshot, or a tar archive with one *.db and its static/ folder beside it."
DAMAGE = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
MEMBER_BYTES = 512  # what an archive spends on a member without content


def fetch(url: str, sha256: str, into: Path, *, most_bytes: int = BUDGETS.snapshot_bytes) -> Path:
    """The snapshot behind `url`, in a folder of `into` named by its checksum.

    The body is a snapshot, or a tar archive (plain, gzip, xz) that holds one `*.db` with its
    `static/` beside it. Nothing is asked for where that folder is already there. Raises
    `InvalidRequest`, `TooLarge`, `Unavailable` and `TimedOut`; no message has the URL.
    """
    checksum = sha256.strip().lower()
    if not CHECKSUM.fullmatch(checksum):
        raise InvalidRequest(
            "RUNG_PAPERS_SHA256 is not a SHA-256. Set it to the 64 hexadecimal digits that "
            "`sha256sum` prints for the file behind RUNG_PAPERS_URL."
        )
    home = into / checksum
    try:
        if not home.is_dir():
            into.mkdir(parents=True, exist_ok=True)
            with _alone(into):
                if not home.is_dir():
                    _install(into, home, url, most_bytes)
        return _find(home)
    except OSError as error:
        raise _unusable(
            f"could not be kept on disk: {reason(error)}", "Free space there, and allow writing."
        ) from error


@contextmanager
def _alone(into: Path) -> Iterator[None]:
    """Keeps other processes that start at the same time from fetching the same."""
    with (into / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(into: Path, home: Path, url: str, most_bytes: int) -> None:
    for left in into.glob(f"{FETCHING}*"):  # by a process that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=into, prefix=FETCHING) as draft:
        body, content = Path(draft) / "body", Path(draft) / "content"
        content.mkdir()
        found = _receive(url, body, most_bytes)
        if found != home.name:
            raise _unusable(f"has the SHA-256 {found}", "Correct RUNG_PAPERS_SHA256 or the file.")
        if _is_bare(body):
            body.rename(content / "snapshot.db")
        else:
            _unpack(body, content, most_bytes)
        _find(content)
        content.rename(home)


def _receive(url: str, body: Path, most_bytes: int) -> str:
    """Writes what is sent; its SHA-256."""
    digest = hashlib.sha256()
    seconds = BUDGETS.snapshot_fetch_seconds
    with body.open("wb") as copy:
        for piece in outbound.download(url, seconds=seconds, most_bytes=most_bytes):
            digest.update(piece)
            copy.write(piece)
    return digest.hexdigest()


def _unpack(body: Path, content: Path, most_bytes: int) -> None:
    size = 0
    try:
        with tarfile.open(body, "r:*") as archive:
            for member in archive:
                size += member.size + MEMBER_BYTES
                if size > most_bytes:
                    raise TooLarge(
                        f"The archive behind RUNG_PAPERS_URL holds more than {most_bytes} bytes. "
                        "Leave out what is not needed to serve it, such as PDFs."
                    )
                archive.extract(member, content, filter="data")
    except DAMAGE as error:
        raise _unusable("is no snapshot and no whole tar archive", WANTED) from error


def _is_bare(body: Path) -> bool:
    with body.open("rb") as start:
        return start.read(len(MAGIC)) == MAGIC


def _find(home: Path) -> Path:
    """The one snapshot of a folder, at its top or one folder below."""
    found = [path for path in (*home.glob("*.db"), *home.glob("*/*.db")) if path.name[0] != "."]
    if len(found) != 1:
        raise _unusable(f"holds {len(found)} files named *.db", WANTED)
    return found[0]


def _unusable(what: str, advice: str) -> EvidenceError:
    return Unavailable(
        f"What RUNG_PAPERS_URL gives {what}.", code="snapshot_unavailable", hint=advice
    )
