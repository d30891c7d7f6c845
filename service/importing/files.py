"""Finds the files behind the paths of a command line: folders, archives, standard input."""

import gzip
import io
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from evidence.errors import InvalidRequest
from service.importing.formats import detect

HEAD_BYTES = 4_096
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class File:
    """A file to import: its name without `.gz`, and the archive it is a member of, if any."""

    path: str
    name: str
    member: str | None = None

    @property
    def size(self) -> int | None:
        packed = self.member is not None or self.path.endswith(".gz")
        return None if packed or self.path == "-" else Path(self.path).stat().st_size

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes of the file; raises InvalidRequest if its archive is damaged."""
        if self.path == "-":
            yield sys.stdin.buffer  # rows are read as they arrive
            return
        try:
            with self._raw() as raw:
                yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, raw), BUFFER_BYTES))
        except (gzip.BadGzipFile, zipfile.BadZipFile, EOFError, RuntimeError) as error:
            raise InvalidRequest(f"{self.path} cannot be unpacked: {error}.") from error

    @contextmanager
    def _raw(self) -> Iterator[BinaryIO]:
        if self.member is not None:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
                yield cast(BinaryIO, file)
        else:
            with (gzip.open if self.path.endswith(".gz") else open)(self.path, "rb") as file:
                yield cast(BinaryIO, file)

    def format(self, given: str | None) -> str:
        """The given format, else the detected one."""
        if given is not None or self.path == "-":
            return given or detect("-")
        with self.open() as file:
            return detect(self.name, file.read(HEAD_BYTES))


@dataclass(slots=True)
class Found:
    """The files behind some paths with their formats, and those left out, with the reason."""

    files: list[tuple[File, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def find(paths: tuple[str, ...], form: str | None) -> Found:
    """The files of paths. Raises InvalidRequest for a named path that cannot be read.

    Files of folders and archives that cannot be read are left out.
    """
    found = Found()
    for path in paths:
        files = list(_files(path))
        for file in files:
            try:
                found.files.append((file, file.format(form)))
            except InvalidRequest as error:
                if file.path == path and file.member is None:
                    raise
                found.left_out.append(error.message)
        if not files:
            raise InvalidRequest(f"{path} holds no files.")
    if not found.files:
        raise InvalidRequest(" ".join(["Nothing here can be imported.", *found.left_out]))
    return found


def _files(path: str) -> Iterator[File]:
    if path == "-":
        yield File("-", "-")
    elif Path(path).is_dir():
        for inner in sorted(Path(path).rglob("*")):
            hidden = any(part.startswith(".") for part in inner.relative_to(path).parts)
            if inner.is_file() and not hidden:
                yield from _files(str(inner))
    elif path.lower().endswith(".zip") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in sorted(archive.namelist()):
                if not member.endswith("/") and not member.startswith("__MACOSX/"):
                    yield File(path, member, member)
    else:
        yield File(path, path.removesuffix(".gz"))


def connection_name(paths: tuple[str, ...]) -> str:
    """An id for a connection, proposed from the name of the first path."""
    if paths[0] == "-":
        raise InvalidRequest("Standard input has no name; give --connection NAME.")
    name = Path(paths[0]).resolve().name
    while (stem := Path(name).stem) != name and Path(name).suffix[1:].isalnum():
        name = stem
    words = "".join(char if char.isalnum() or char in "._" else "-" for char in name.lower())
    return words.strip("-.") or "import"
