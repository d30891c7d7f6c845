"""Downloads a store or a snapshot at startup and picks its folder, for hosts with an empty disk."""

import fcntl
import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evidence.errors import EvidenceError, InvalidRequest, TooLarge, Unavailable
from evidence.limits import BUDGETS
from service import database_files, durable
from service.papers.snapshot_file import MAGIC, reason
from service.records.store import Store
from service.settings import Settings, SettingsError
from service.sources.remote import outbound

CHECKSUM = re.compile(r"[0-9a-f]{64}")
FETCHING = ".fetching-"
DAMAGE = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
OWNER_ONLY = 0o600
MEMBER_BYTES = 512  # bytes of an archive for a member without content


@dataclass(frozen=True, slots=True)
class Download:
    """A kind of file to download: its name, and the settings for its URL and checksum."""

    file: str
    variable: str  # has the URL; the setting of the checksum ends with SHA256 instead of URL
    code: str
    wanted: str
    private: bool  # readable by its owner only, like a new store

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
    """Downloads the file at `url` to a folder in `into` that is named after its checksum.

    The body is an SQLite file, or a tar archive (plain, gzip, xz) with one `*.db`, a snapshot with
    `static/` next to it. Nothing is downloaded if that folder exists. Raises `InvalidRequest`,
    `TooLarge`, `Unavailable` and `TimedOut`; no message contains the URL.
    """
    checksum = sha256.strip().lower()
    if not CHECKSUM.fullmatch(checksum):
        raise InvalidRequest(
            f"{download.checksum_variable} is not a SHA-256 checksum. Set it to the 64 "
            f"hexadecimal digits that `sha256sum` prints for the file at {download.variable}."
        )
    home = into / checksum
    try:
        if not home.is_dir():
            into.mkdir(parents=True, exist_ok=True)
            with (into / ".lock").open("w") as lock:
                # Processes that start at the same time do not download the same file.
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not home.is_dir():
                    _install(download, into, home, url, most_bytes)
        return _find(download, home)
    except OSError as error:
        raise download.unusable(
            f"could not be written to disk: {reason(error)}",
            "Free up disk space, or give Rung write access to that disk.",
        ) from error


def _install(download: Download, into: Path, home: Path, url: str, most_bytes: int) -> None:
    for leftover in into.glob(f"{FETCHING}*"):  # by a process that was killed
        shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(dir=into, prefix=FETCHING) as draft:
        body, content = Path(draft) / "body", Path(draft) / "content"
        content.mkdir()
        checksum = _receive(url, body, most_bytes)
        if checksum != home.name:
            raise download.unusable(
                f"has the SHA-256 checksum {checksum}, which is not the expected one",
                f"Correct {download.checksum_variable}, or replace the file.",
            )
        with body.open("rb") as start:
            is_bare = start.read(len(MAGIC)) == MAGIC
        if is_bare:
            body.rename(content / download.file)
        else:
            _unpack(download, body, content, most_bytes)
        file = _find(download, content)
        try:
            database_files.complete(file)  # an archive may have a log next to it
        except database_files.DAMAGE as error:
            raise download.unusable(
                f"has a write-ahead log that cannot be read: {error}", download.wanted
            ) from error
        if download.private:
            file.chmod(OWNER_ONLY)
        durable.move(content, home)  # a new folder, in which no file of another store is


def _receive(url: str, body: Path, most_bytes: int) -> str:
    """Writes the body and returns its SHA-256."""
    digest = hashlib.sha256()
    seconds = BUDGETS.fetch_seconds
    with body.open("wb") as copy:
        for chunk in outbound.download(url, seconds=seconds, most_bytes=most_bytes):
            digest.update(chunk)
            copy.write(chunk)
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
                        f"The archive at {download.variable} contains more than {most_bytes} "
                        "bytes. Remove files that are not needed for serving, such as PDFs."
                    )
                archive.extract(member, content, filter="data")
    except DAMAGE as error:
        raise download.unusable(
            "is neither an SQLite file nor a complete tar archive", download.wanted
        ) from error


def _find(download: Download, home: Path) -> Path:
    """The one file of a folder, at its top or one folder below."""
    databases = (*home.glob("*.db"), *home.glob("*/*.db"))
    files = [path for path in databases if path.name[0] != "." and path.is_file()]
    if len(files) != 1:
        raise download.unusable(f"contains {len(files)} files named *.db", download.wanted)
    return files[0]


#: The folder for files fetched at start, unless RUNG_STORE or RUNG_PAPERS_DB names a place. If it
#: is not writable, a private folder among the temporary files is used.
FETCHED_FOLDER = Path("var")
OWN_FOLDER = 0o700


def snapshot(settings: Settings, url: str) -> Path:
    """The snapshot at `url`."""
    folder = settings.papers_db.parent if settings.papers_db else _folder("papers")
    return _fetched(SNAPSHOT, url, settings.papers_sha256, folder)


def store(settings: Settings, url: str, *, named: bool) -> Store:
    """The store at `url`, fetched and checked; nothing writes to it.

    It is kept next to the configured store, if one is `named`.
    """
    folder = settings.store.parent if named else _folder("store")
    path = _fetched(STORE, url, settings.store_sha256, folder)
    opened = Store(path, settings.secret_key, fixed=True)
    try:
        opened.ready()
    except EvidenceError as error:
        raise SettingsError(
            f"RUNG_STORE_URL: the file cannot be served. {error.message}"
        ) from error
    finally:
        opened.reader.close()  # connections must not cross a fork
    return opened


def _fetched(kind: Download, url: str, sha256: str | None, folder: Path) -> Path:
    try:
        return fetch(kind, url, sha256 or "", folder)
    except EvidenceError as error:
        raise SettingsError(f"{kind.variable}: {error.text}") from error


def _folder(name: str) -> Path:
    """The folder for fetched files: under var/, or if that is impossible, a temporary one.

    Others may write among the temporary files, so a folder there must be private.
    """
    folder = FETCHED_FOLDER / name
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    try:
        own = Path(tempfile.gettempdir()) / f"rung-{os.geteuid()}"
        with suppress(FileExistsError):
            own.mkdir(OWN_FOLDER)
        status = own.lstat()
    except OSError as error:
        raise SettingsError(
            "The download cannot be stored: neither var/ nor a temporary directory is "
            "writable. Set TMPDIR to a writable directory."
        ) from error
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != OWN_FOLDER:
        raise SettingsError(
            f"{own} is not a private directory of this user. Remove it, or set TMPDIR to "
            "another directory."
        )
    return own / name
