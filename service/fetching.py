"""Fetches a snapshot of papers or a store at start, and chooses the folder to keep it in."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from evidence.errors import EvidenceError
from service.settings import Settings, SettingsError
from service import download
from service.download import Download
from service.records.store import Store

#: The folder for files fetched at start, unless RUNG_STORE or RUNG_PAPERS_DB name a place.
#: If it cannot be written: a folder of ours among the temporary files.
FETCHED_FOLDER = Path("var")
OWN_FOLDER = 0o700


def snapshot(settings: Settings, url: str) -> Path:
    """The snapshot at `url`."""
    folder = settings.papers_db.parent if settings.papers_db else _folder("papers")
    return _fetched(download.SNAPSHOT, url, settings.papers_sha256, folder)


def store(settings: Settings, url: str, *, named: bool) -> Store:
    """The store at `url`, fetched and checked; nothing writes to it.

    It is kept beside the configured store, if one is `named`.
    """
    folder = settings.store.parent if named else _folder("store")
    path = _fetched(download.STORE, url, settings.store_sha256, folder)
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
        return download.fetch(kind, url, sha256 or "", folder)
    except EvidenceError as error:
        advice = f" {error.hint}" if error.hint else ""
        raise SettingsError(f"{kind.variable}: {error.message}{advice}") from error


def _folder(name: str) -> Path:
    """The folder for fetched files: under var/, or if that is impossible, a temporary one.

    Others may write among the temporary files, so a folder there must be ours alone.
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
            "There is no place for the download: neither var/ nor a temporary directory is "
            "writable. Set TMPDIR to a writable directory."
        ) from error
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != OWN_FOLDER:
        raise SettingsError(
            f"{own} is not a private directory of this user. Remove it, or set TMPDIR to "
            "another directory."
        )
    return own / name
