"""Folders: each file is a part. Its version consists of its time, size and inode number.

A file that is still being written is read again when it changes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any, Final

from evidence.errors import InvalidRequest, Unavailable
from service.importing.tree import printable, walk
from service.syncing.connector import Connector, Fetched, Kind, Listing, SourceSettings, Stored

#: Milliseconds without a change before a round begins.
SETTLED: Final = 1_000
#: Milliseconds after which a watch without a change reports that it has begun.
BEGUN_MS: Final = 1_000


class Folder(Connector):
    """A folder on this machine."""

    strict = False

    def __init__(self, source: SourceSettings) -> None:
        self._root = Path(source.address).expanduser()

    def check(self) -> None:
        try:
            os.listdir(self._root)
        except OSError as error:
            raise Unavailable(
                f"{self._root} is not a readable folder: {error.strerror}. If it is on another "
                "disk, mount that disk."
            ) from error

    def list_parts(self, stored: Stored) -> Listing | None:
        self.check()
        versions = dict[str, str]()
        for path in walk(str(self._root), []):
            with suppress(FileNotFoundError):  # removed since it was listed
                status = os.stat(path)
                version = f"{status.st_mtime_ns} {status.st_size} {status.st_ino}"
                versions[printable(os.path.relpath(path, self._root))] = version
        return Listing(versions, {})

    def fetch(self, parts: Sequence[str]) -> Iterator[Fetched]:
        root = printable(str(self._root))
        yield Fetched(self._root, {f"{root.rstrip('/')}/{part}": part for part in parts})

    def watch(self, stop: Event, changed: Callable[[], None]) -> None:
        from watchfiles import watch

        often: dict[str, Any] = {"rust_timeout": BEGUN_MS, "yield_on_timeout": True}
        looks = watch(
            self._root, stop_event=stop, step=SETTLED, ignore_permission_denied=True, **often
        )
        for number, changes in enumerate(looks):
            if changes or not number:
                changed()


def _check(address: str) -> str:
    path = Path(address).expanduser().absolute()
    if not path.is_dir():
        raise InvalidRequest(
            f"{address} is not a folder. Create it, or give the path of another folder."
        )
    return str(path)


KIND = Kind("folder", Folder, _check, watches=find_spec("watchfiles") is not None)
