"""Downloads a store or a snapshot at start, for hosts with an empty disk."""

import fcntl
import gzip
import hashlib
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evidence.errors import EvidenceError, InvalidRequest, TooLarge, Unavailable
from evidence.limits import BUDGETS
from service.sources.remote import outbound
from service.papers.snapshot_file import MAGIC, reason

CHECKSUM = re.compile(r"[0-9a-f]{64}")
FETCHING = ".fetching-"
DAMAGE = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
OWNER_ONLY = 0o600
MEMBER_BYTES = 512  # bytes of an archive for a member without content


@dataclass(frozen=True, slots=True)
class Download:
    """A kind of file to download: its name, and the settings for its URL and checksum."""

    file: str
    variable: str  # names the address; the one of the checksum ends with SHA256 instead of URL
    code: str
    wanted: str
    private: bool  # readable by its owner only, as a new store is

    @property
    def checksum_variable(self) -> str:
        return self.variable.removesuffix("URL") + "SHA256"

    def unusable(self, what: str, advice: str) -> EvidenceError:
        return Unavailable(f"The file at {self.variable} {what}.", code=self.code, hint=advice)


SNAPSHOT = Download(
    "snapshot.db",
    "RUNG_PAPERS_URL",
    "snapshot_unavailable",
    "Use a snapshot, or a tar archive with one *.db file and its static/ directory.",
    private=False,
)
STORE = Download(
    "rung.db",
    "RUNG_STORE_URL",
    "store_unavailable",
    "Use a store, or a tar archive with one *.db file.",
    private=True,
)


def fetch(
    download: Download,
    url: str,
    sha256: str,
    into: Path,
    *,
    most_bytes: int = BUDGETS.fetched_bytes,
) -> Path:
    """The file behind `url`, in a folder of `into` named by its checksum.

    The body is an SQLite file, or a tar archive (plain, gzip, xz) that holds one `*.db`, a
    snapshot with its `static/` beside it. Nothing is downloaded if that folder
    exists. Raises `InvalidRequest`, `TooLarge`, `Unavailable` and `TimedOut`; no message has the
    URL.
    """
    checksum = sha256.strip().lower()
    if not CHECKSUM.fullmatch(checksum):
        raise InvalidRequest(
            f"{download.checksum_variable} is not a SHA-256. Set it to the 64 hexadecimal digits "
            f"that `sha256sum` prints for the file at {download.variable}."
        )
    home = into / checksum
    try:
        if not home.is_dir():
            into.mkdir(parents=True, exist_ok=True)
            with _alone(into):
                if not home.is_dir():
                    _install(download, into, home, url, most_bytes)
        return _find(download, home)
    except OSError as error:
        raise download.unusable(
            f"could not be written to disk: {reason(error)}", "Free space there, and allow writing."
        ) from error


@contextmanager
def _alone(into: Path) -> Iterator[None]:
    """Keeps other processes that start at the same time from downloading the same file."""
    with (into / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(download: Download, into: Path, home: Path, url: str, most_bytes: int) -> None:
    for left in into.glob(f"{FETCHING}*"):  # by a process that was killed
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=into, prefix=FETCHING) as draft:
        body, content = Path(draft) / "body", Path(draft) / "content"
        content.mkdir()
        checksum = _receive(url, body, most_bytes)
        if checksum != home.name:
            raise download.unusable(
                f"has the SHA-256 {checksum}", f"Correct {download.checksum_variable} or the file."
            )
        if _is_bare(body):
            body.rename(content / download.file)
        else:
            _unpack(download, body, content, most_bytes)
        file = _find(download, content)
        if download.private:
            file.chmod(OWNER_ONLY)
        content.rename(home)


def _receive(url: str, body: Path, most_bytes: int) -> str:
    """Writes the body and returns its SHA-256."""
    digest = hashlib.sha256()
    seconds = BUDGETS.fetch_seconds
    with body.open("wb") as copy:
        for piece in outbound.download(url, seconds=seconds, most_bytes=most_bytes):
            digest.update(piece)
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())  # a file with its final name is trusted from then on
    return digest.hexdigest()


def _unpack(download: Download, body: Path, content: Path, most_bytes: int) -> None:
    size = 0
    try:
        with tarfile.open(body, "r:*") as archive:
            for member in archive:
                size += member.size + MEMBER_BYTES
                if size > most_bytes:
                    raise TooLarge(
                        f"The archive at {download.variable} has more than {most_bytes} bytes. "
                        "Remove files that are not needed for serving, such as PDFs."
                    )
                archive.extract(member, content, filter="data")
    except DAMAGE as error:
        raise download.unusable(
            "is neither an SQLite file nor a complete tar archive", download.wanted
        ) from error


def _is_bare(body: Path) -> bool:
    with body.open("rb") as start:
        return start.read(len(MAGIC)) == MAGIC


def _find(download: Download, home: Path) -> Path:
    """The one file of a folder, at its top or one folder below."""
    named = (*home.glob("*.db"), *home.glob("*/*.db"))
    files = [path for path in named if path.name[0] != "." and path.is_file()]
    if len(files) != 1:
        raise download.unusable(f"has {len(files)} files named *.db", download.wanted)
    return files[0]
