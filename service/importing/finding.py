"""Finds the files at some paths and detects their formats."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import dirname, join
from typing import Final

from evidence.errors import InvalidRequest
from service.importing.formats import FORMATS, detect
from service.importing.tree import File, Tree, trees

HEAD_BYTES: Final = 16_384
#: The most reasons that are listed one by one.
LISTED: Final = 10
#: The most files that are named with their formats; more are only counted.
NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that can be imported: its name, its format, and its size in bytes, if known."""

    name: str
    format: str
    size: int | None


@dataclass(slots=True)
class Listing:
    """The files at some paths, and those left out: the name of a file, if any, and the reason."""

    files: list[FileEntry]
    left_out: list[tuple[str | None, str]]

    @property
    def recognized(self) -> str:
        """Describes the files in one sentence."""
        counts = Counter(file.format for file in self.files)
        if len(self.files) <= NAMED:
            return " ".join(f"{file.name} is read as {file.format}." for file in self.files)
        (first, count), *others = counts.most_common()
        more = "".join(f", {number} as {form}" for form, number in others)
        return f"{count} files are read as {first}{more}. --format reads all of them as one."

    @property
    def size(self) -> int | None:
        """The size of all files in bytes; None if that of one is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(filter(None, sizes))

    def reasons(self, used: set[str]) -> list[str]:
        """The first reasons why files are left out, except those that became attachments."""
        reasons = [reason for name, reason in self.left_out if name not in used]
        more = len(reasons) - LISTED
        return reasons[:LISTED] + ([f"{more} more files."] if more > 0 else [])


def find(
    paths: Sequence[str], form: str | None, on_file: Callable[[], None]
) -> tuple[list[File], Listing]:
    """The files at some paths, in the order of the listing. Calls `on_file` before each.

    Raises InvalidRequest for a named path that cannot be read; files of folders and archives that
    cannot be read are left out.
    """
    files, listing = list[File](), Listing([], [])
    for path in paths:
        forest = list(trees(path, on_file))
        listing.left_out += [(None, reason) for tree in forest for reason in tree.left_out]
        if not forest and not listing.left_out:
            raise InvalidRequest(f"{path} contains no files.")
        for file, format in (pair for tree in forest for pair in _formats(tree, form)):
            on_file()
            try:
                detected = FileEntry(file.name, format or _detected(file), file.size)
            except InvalidRequest as error:
                if len(paths) == 1 and file.path == path and file.member is None:
                    raise
                listing.left_out.append((file.name, error.message))
            else:
                listing.files.append(detected)
                files.append(file)
    if not files:
        raise InvalidRequest(" ".join(["Nothing here can be imported.", *listing.reasons(set())]))
    return files, listing


def _detected(file: File) -> str:
    """The format of a file, by its name and its first bytes."""
    if file.path == "-":
        return detect("-")
    with file.open() as opened:
        return detect(file.name, opened.read(HEAD_BYTES))


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
        if not any(name.startswith(join(folder, "")) for folder in whole):
            yield file, None
