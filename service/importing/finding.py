"""Finds the files at some paths and detects their formats."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from posixpath import basename, dirname, join
from typing import Final

import orjson

from evidence.errors import InvalidRequest
from service.extras import install_command
from service.importing.databases import tables_of
from service.importing.formats import FORMATS, detect, looks_like
from service.importing.source import titled
from service.importing.tree import File, LeftOut, Tree, printable, trees

JSON: Final = "json"
SQLITE: Final = "sqlite"
HEAD_BYTES: Final = 16_384
#: The most files that are named with their formats; more are only counted.
DETAILED_FILES: Final = 3
#: The most groups of files of one shape in a folder.
SHAPES: Final = 50
#: The table with all rows that Notion exports beside that of a view.
_ALL_ROWS: Final = re.compile(r"(.+)[ _-][0-9a-f]{32}_all\.csv")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that can be imported: its name, its format, and its size in bytes, if known.

    `path` is the file on disk, which may be an archive that has the file.
    `group` is the stream of such files, if others beside it are of its shape.
    """

    name: str
    format: str
    size: int | None
    group: str | None = None
    path: str = ""


@dataclass(slots=True)
class Listing:
    """The files at some paths, and those left out."""

    files: list[FileEntry]
    left_out: list[LeftOut]

    @property
    def recognized(self) -> str:
        """Describes the files in one sentence."""
        counts = Counter(file.format for file in self.files)
        if len(self.files) <= DETAILED_FILES:
            return " ".join(f"{file.name} is read as {file.format}." for file in self.files)
        (first, count), *rest = counts.most_common()
        counted = "".join(f", {number} as {form}" for form, number in rest)
        return f"Files read: {count} as {first}{counted}. To read all in one format, use --format."

    @property
    def size(self) -> int | None:
        """The size of all files in bytes; None if that of one is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(filter(None, sizes))


def find(
    paths: Sequence[str], form: str | None, on_file: Callable[[], None]
) -> tuple[list[File], Listing]:
    """The files at some paths, in the order of the listing. Calls `on_file` before each.

    Raises InvalidRequest for a named path that cannot be read; files of folders and archives that
    cannot be read are left out.
    """
    files, listing, shapes = list[File](), Listing([], []), Shapes()
    for path in paths:
        forest = list(trees(path, on_file))
        listing.left_out += [entry for tree in forest for entry in tree.left_out]
        if not forest and not listing.left_out:
            raise InvalidRequest(f"{path} contains no files.")
        for file, format in (pair for tree in forest for pair in _formats(tree, form)):
            on_file()
            detected, head = None, b""
            try:
                head = b"" if format and format != JSON else _head(file)
                detected = FileEntry(
                    *(file.name, format or _refined(file, detect(file.name, head)), file.size),
                    path=printable(file.path),
                )
                _require(detected)
                if detected.format == JSON:
                    shapes.add(len(listing.files), file, head)
                elif all_rows := _ALL_ROWS.fullmatch(basename(file.name)):
                    detected = replace(detected, group=all_rows[1])
            except InvalidRequest as error:
                if len(paths) == 1 and file.path == path and file.member is None:
                    raise
                listing.left_out.append((file.name, _kind(detected, head), error.message))
            else:
                listing.files.append(detected)
                files.append(file)
    for number, name in shapes.groups():
        if name:
            listing.files[number] = replace(listing.files[number], group=name)
    order = sorted(range(len(files)), key=lambda n: FORMATS[listing.files[n].format].last)
    listing.files = [listing.files[number] for number in order]
    return [files[number] for number in order], listing


def _refined(file: File, form: str) -> str:
    """The format of a file, by its tables if it is a database."""
    if form != SQLITE:
        return form
    names = tables_of(file)
    fit = (f.name for f in FORMATS.values() if f.tables and names.issuperset(f.tables))
    return next(fit, form)


def _require(file: FileEntry) -> None:
    """Raises InvalidRequest if an extra is needed to read the file."""
    module = FORMATS[file.format].requires
    if module and find_spec(module) is None:
        advice = f"To read it: {install_command('documents')}"
        raise InvalidRequest(f"{file.name} has the format {file.format.upper()}. {advice}")


def _kind(file: FileEntry | None, head: bytes) -> str:
    """What files such as one that is left out are, in the plural."""
    if file is not None:
        return f"{file.format.upper()} files"
    what = (looks_like(head) or "").partition(".")[0]
    return f"files that look like {what}" if what else "files whose format is not known"


def _head(file: File) -> bytes:
    """The first bytes of a file."""
    if file.path == "-":
        return b""
    with file.open() as opened:
        return opened.read(HEAD_BYTES)


class Shapes:
    """Small JSON files that are one object each, by their folders and their members' names."""

    def __init__(self) -> None:
        self._groups: dict[str, list[tuple[frozenset[str], list[int]]]] = {}
        self._names: dict[int, str] = {}

    def add(self, number: int, file: File, head: bytes) -> None:
        """Adds a file of the listing, if it is such an object."""
        try:
            value = orjson.loads(head) if len(head) < HEAD_BYTES else None
        except ValueError:
            return
        if not isinstance(value, dict) or not value:
            return
        folder = dirname(file.name) or file.tree.path
        self._names[number] = titled(basename(folder).removesuffix(".zip"))
        members, groups = frozenset(value), self._groups.setdefault(folder, [])
        for shape, numbers in groups:
            if 2 * len(shape & members) >= len(shape | members):
                numbers.append(number)
                return
        if len(groups) < SHAPES:
            groups.append((members, [number]))

    def groups(self) -> Iterator[tuple[int, str]]:
        """(number in the listing, stream) of each file with others of its shape beside it."""
        for groups in self._groups.values():
            for _, numbers in groups:
                if len(numbers) > 1:
                    yield from ((number, self._names[number]) for number in numbers)


def _formats(tree: Tree, form: str | None) -> Iterator[tuple[File, str | None]]:
    """The files of a tree; those of a folder that is read as one are not listed."""
    if form is not None and not FORMATS[form].folder:
        yield from ((file, form) for file in tree.files.values())
        return
    folders = {dirname(name) for name in tree.files}
    whole = {
        folder: format
        for format in FORMATS.values()
        for folder in folders
        if format.folder and all(join(folder, name) in tree.files for name in format.folder)
    }
    for folder, format in whole.items():
        yield tree.files[join(folder, format.folder[0])], format.name
    for name, file in tree.files.items():
        if not _inside(name, whole):
            yield file, None


def _inside(name: str, folders: Collection[str]) -> bool:
    """True if a file is in one of the folders, or below."""
    while (folder := dirname(name)) not in folders:
        if folder == name:
            return False
        name = folder
    return True
