"""The files of folders and archives, read in place: nothing is unpacked to disk."""

import gzip
import io
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath
from tempfile import TemporaryFile
from typing import BinaryIO, Final, cast
from urllib.parse import unquote

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS

BUFFER_BYTES: Final = 1 << 20
GZIP: Final = b"\x1f\x8b"
ZIP: Final = b"PK\x03\x04"
#: Members that only Office documents have: such archives count as files.
_OFFICE: Final = frozenset({"[Content_Types].xml", "mimetype"})
#: Members of every Maildir, whose subfolders may be hidden.
MAILDIR: Final = frozenset({"cur", "new"})
_UTF_8_NAME: Final = 0x800
#: The longest name of an archive member.
NAME_CHARS: Final = 1_024
_ENCRYPTED: Final = 0x1
_DAMAGED: Final = (gzip.BadGzipFile, zipfile.BadZipFile, EOFError, zlib.error, RuntimeError)


#: The name of a file, what such files are, in the plural, and why it is left out.
LeftOut = tuple[str, str, str]


@dataclass(slots=True)
class Tree:
    """A folder, an archive or a single file.

    `files` are by name; `left_out` are others, each with its name, kind and reason. `used` are the
    names of files that others refer to.
    """

    path: str
    files: dict[str, "File"] = field(default_factory=dict)
    left_out: list["LeftOut"] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    _by_last: dict[str, str] = field(default_factory=dict)

    def inside(self, name: str) -> str:
        """The path of a file in the tree, from its name."""
        inner = name.removeprefix(join(self.path, ""))
        return PurePosixPath(name).name if name == self.path else inner

    def find(self, reference: str, beside: str) -> "File | None":
        """The file that another file of the tree refers to: by path, or else by base name."""
        if not self._by_last:
            self._by_last = {PurePosixPath(name).name.lower(): name for name in self.files}
        for text in (reference, unquote(reference)):
            near = join(dirname(beside), text)
            for name in (text, normpath(near), normpath(join(self.path, text))):
                if name in self.files:
                    return self.files[name]
            last = self._by_last.get(PurePosixPath(text).name.lower())
            if last is not None:
                return self.files[last]
        return None


@dataclass(frozen=True, slots=True)
class File:
    """A file to import: its name without `.gz`, and its archive member, if it is one.

    `within` is the archive in the archive that has the member.
    """

    path: str
    name: str
    tree: Tree = field(repr=False, compare=False)
    member: zipfile.ZipInfo | None = None
    packed: bool = False
    within: str | None = None

    @property
    def size(self) -> int | None:
        """Its size in bytes, if known before it is read."""
        if self.member is not None:
            return self.member.file_size
        return Path(self.path).stat().st_size if self.in_place else None

    @property
    def in_place(self) -> bool:
        """True if it is an uncompressed file on this machine."""
        return self.path != "-" and self.member is None and not self.packed

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes of the file; raises InvalidRequest if it or its archive is damaged."""
        if self.path == "-":
            yield sys.stdin.buffer  # rows are read as they arrive
            return
        try:
            with self._raw() as raw:
                yield cast(BinaryIO, io.BufferedReader(raw, BUFFER_BYTES))
        except _DAMAGED as error:
            raise InvalidRequest(f"{printable(self.path)} cannot be unpacked: {error}.") from error

    @contextmanager
    def _raw(self) -> Iterator[io.RawIOBase]:
        member, path = self.member, self.path
        archived = None if member is None else _archive(path, self.within)
        with archived.open(member) if archived and member else open(path, "rb") as file:
            if not self.packed:
                yield cast(io.RawIOBase, file)
                return
            size = os.stat(path).st_size if member is None else member.file_size
            with _Bounded(cast(BinaryIO, file), self.name, most(size)) as unpacked:
                yield cast(io.RawIOBase, unpacked)

    def read(self) -> bytes:
        """The whole file, for an attachment; raises InvalidRequest if it is too large."""
        self.tree.used.add(self.name)
        with self.open() as file:
            content = file.read(BUDGETS.import_attachment_bytes + 1)
        if len(content) > (limit := BUDGETS.import_attachment_bytes):
            raise InvalidRequest(f"{self.name} exceeds {limit} bytes, the limit for attachments.")
        return content


class _Bounded(gzip.GzipFile):
    """An unpacked file; reading raises an error if it is far larger than its packed bytes."""

    def __init__(self, file: BinaryIO, name: str, limit: int) -> None:
        super().__init__(fileobj=file)
        self._file_name, self._limit = name, limit

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        if self.tell() > self._limit:
            raise bomb(self._file_name, self._limit)
        return content


def most(packed: int) -> int:
    """The number of bytes that an archive of this size may unpack to."""
    return max(BUDGETS.import_unpacked_bytes, packed * BUDGETS.import_unpacked_ratio)


def bomb(name: str, limit: int) -> InvalidRequest:
    return InvalidRequest(
        f"{name} unpacks to more than {limit:,} bytes, far more than its size suggests. It may be "
        "designed to fill this machine's disk. If you trust it, unpack it and import the folder."
    )


@lru_cache(maxsize=4)
def _archive(path: str, within: str | None = None) -> zipfile.ZipFile:
    """The archive at a path, or the one in it with a name: a copy without a name."""
    if within is None:
        return zipfile.ZipFile(path)
    copy = TemporaryFile()
    limit = most(os.stat(path).st_size)
    with _archive(path).open(within) as packed:
        while chunk := packed.read(BUFFER_BYTES):
            copy.write(chunk)
            if copy.tell() > limit:
                raise bomb(within, limit)
    return zipfile.ZipFile(copy)


def trees(path: str, on_file: Callable[[], None] = lambda: None) -> Iterator[Tree]:
    """The tree of a path, and one for each archive in it. Calls `on_file` before each file.

    A path that is itself a damaged archive raises InvalidRequest; those in a folder are left out.
    """
    _archive.cache_clear()  # a file with that name may have changed
    tree = Tree(printable(path))
    if path == "-":
        tree.files["-"] = File("-", "-", tree)
        yield tree
        return
    for file in [path] if not Path(path).is_dir() else walk(path, tree.left_out):
        on_file()
        try:
            with open(file, "rb") as opened:
                begins = opened.read(len(ZIP))
            is_zip = begins == ZIP and zipfile.is_zipfile(file)
            if is_zip and _OFFICE.isdisjoint(_archive(file).namelist()):
                yield _members(file)
                continue
        except (InvalidRequest, OSError, ValueError, *_DAMAGED) as error:
            if file == path and isinstance(error, (InvalidRequest, OSError)):
                raise
            problem = f"{printable(file)} cannot be read: {error}".rstrip(".") + "."
            if file == path:
                raise InvalidRequest(problem) from error
            tree.left_out.append((printable(file), "damaged archives", problem))
            continue
        name, packed = printable(file).removesuffix(".gz"), begins.startswith(GZIP)
        tree.files[name] = File(file, name, tree, packed=packed)
    if tree.files or tree.left_out:
        yield tree


def printable(path: str) -> str:
    """A path as text, with escapes for bytes that are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def walk(root: str, skipped: list[LeftOut]) -> Iterator[str]:
    """The files of a folder, without hidden ones. Links are left out: they may lead anywhere."""
    for folder, folders, names in os.walk(root):
        mail = MAILDIR <= set(folders)
        for name in sorted(folders + names):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                reason = f"{printable(path)} is a symbolic link. Import its target instead."
                skipped.append((printable(path), "symbolic links", reason))
            elif name in names and not name.startswith("."):
                if os.path.isfile(path):
                    yield path
                else:
                    reason = f"{printable(path)} is a pipe, a socket or a device."
                    skipped.append((printable(path), "pipes, sockets and devices", reason))
        folders[:] = sorted(inner for inner in folders if mail or not inner.startswith("."))


def check(archive: zipfile.ZipFile, name: str, limit: int) -> int:
    """The bytes that an archive unpacks to; raises InvalidRequest if they are over the limit."""
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > limit:
        raise bomb(name, limit)
    return unpacked


def _members(path: str) -> Tree:
    tree = Tree(printable(path))
    _add_members(tree, path, None, most(os.stat(path).st_size))
    return tree


def _add_members(tree: Tree, path: str, within: str | None, limit: int) -> int:
    """Adds the members of an archive, and those of archives in it, as if it had them itself.

    Returns the bytes that they unpack to, which together must be within the limit.
    """
    archive = _archive(path, within)
    unpacked = check(archive, within or tree.path, limit)
    for info in sorted(archive.infolist(), key=lambda member: member.filename):
        name = _member_name(info)
        parts = PurePosixPath(name).parts
        if info.is_dir() or "__MACOSX" in parts or any(part.startswith("._") for part in parts):
            continue
        nested = name.lower().endswith(".zip")
        reason = _refusal(info, name)
        if nested and within is None and not reason:
            try:
                room = min(most(info.file_size), limit - unpacked)
                unpacked += _add_members(tree, path, info.filename, room)
            except (InvalidRequest, *_DAMAGED) as error:
                reason = f"cannot be read: {error}".rstrip(".") + "."
        elif nested and not reason:
            reason = (
                "is an archive inside two others. Unpack the outer archive and import the folder."
            )
        if reason:
            reason = f"{tree.path}: {name[:NAME_CHARS]!r} {reason}"
            tree.left_out.append((name[:NAME_CHARS], "unreadable members of archives", reason))
        elif not nested and (not any(part.startswith(".") for part in parts) or MAILDIR & {*parts}):
            file = File(path, name.removesuffix(".gz"), tree, info, name.endswith(".gz"), within)
            if file.name in tree.files:  # of another part of the export
                file = replace(file, name=f"{within or ''}/{file.name}")
            tree.files[file.name] = file
    return unpacked


def _member_name(info: zipfile.ZipInfo) -> str:
    """The name of a member; many programs write UTF-8 without setting its flag."""
    if info.flag_bits & _UTF_8_NAME:
        return info.filename
    try:
        return info.filename.encode("cp437").decode()
    except UnicodeError:
        return info.filename


def _refusal(info: zipfile.ZipInfo, name: str) -> str | None:
    parts = name.replace("\\", "/").split("/")
    if len(name) > NAME_CHARS:
        return f"has a name longer than {NAME_CHARS:,} characters. Rename it."
    if parts[0] == "" or ".." in parts or parts[0].endswith(":"):
        return "leads outside the archive. Rename it in the archive to import it."
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a symbolic link. Import its target instead."
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted. Unpack the archive with its password and import the folder."
    return None
