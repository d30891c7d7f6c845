"""Zotero libraries on this machine: the database is the one part. A copy of it is read."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from evidence.errors import InvalidRequest, Unavailable
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings

NAME: Final = "zotero.sqlite"
LIBRARY: Final = "library"


class Library(Connector):
    """The library of a Zotero on this machine, which may be running."""

    format = "zotero"

    def __init__(self, source: SourceSettings) -> None:
        self._path, self._version = Path(source.address), ""

    def check(self) -> None:
        self._state()

    def list_parts(
        self, position: dict[str, Any], stored: Callable[[], dict[str, str]]
    ) -> Listing | None:
        self._version = self._state()
        versions = {LIBRARY: self._version}
        return None if versions == stored() else Listing(versions, {})

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / NAME
            for suffix in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{self._path}{suffix}", f"{path}{suffix}")
            if self._state() != self._version or self._is_in_transaction():
                raise Unavailable("Zotero is writing to its library. Try again later.")
            yield Fetched(path, {str(path): LIBRARY})

    def _state(self) -> str:
        """Changes whenever the library does."""
        try:
            status = [os.stat(self._path)]
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read: {error.strerror}.") from error
        with suppress(FileNotFoundError):
            status.append(os.stat(f"{self._path}-wal"))
        return " ".join(f"{file.st_mtime_ns} {file.st_size}" for file in status)

    def _is_in_transaction(self) -> bool:
        """Whether the journal is in use; after a transaction, its first bytes are overwritten."""
        with suppress(FileNotFoundError), open(f"{self._path}-journal", "rb") as journal:
            return journal.read(1) not in (b"", b"\0")
        return False


def _check(address: str) -> str:
    path = Path(address).expanduser().absolute()
    path = path / NAME if path.is_dir() else path
    if not path.is_file():
        raise InvalidRequest(
            f"There is no {path}. Zotero shows its data directory in its settings."
        )
    return str(path)


KIND: Final = Kind("zotero", "the data directory of Zotero", Library, _check)
