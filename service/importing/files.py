"""Finds the files behind the paths of a command line, with their formats."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import dirname, join

from evidence.errors import InvalidRequest
from service.importing.formats import FORMATS, detect
from service.importing.tree import File, Tree, trees

HEAD_BYTES = 16_384
#: Reasons that are listed one by one.
LISTED = 10
#: So many files are named with their formats; more are counted.
NAMED = 3


@dataclass(slots=True)
class Found:
    """The files behind some paths with their formats, and those left out, with the reason."""

    files: list[tuple[File, str]] = field(default_factory=list)
    _left_out: list[tuple[File, str]] = field(default_factory=list)
    _trees: list[Tree] = field(default_factory=list)

    @property
    def recognized(self) -> str:
        """What the files are, in one sentence."""
        counts = Counter(form for _, form in self.files)
        if len(self.files) <= NAMED:
            return " ".join(f"{file.name} is read as {form}." for file, form in self.files)
        (first, count), *others = counts.most_common()
        more = "".join(f", {number} as {form}" for form, number in others)
        return f"{count} files are read as {first}{more}. --format reads all of them as one."

    @property
    def size(self) -> int | None:
        """The bytes of all files; None if those of one are not known."""
        sizes = [file.size for file, _ in self.files]
        return None if None in sizes else sum(filter(None, sizes))

    @property
    def left_out(self) -> list[str]:
        """Why files are left out, except those that became attachments."""
        unused = [reason for file, reason in self._left_out if file.name not in file.tree.used]
        reasons = [reason for tree in self._trees for reason in tree.left_out] + unused
        if repeated := sum(tree.repeated for tree in self._trees):
            reasons.insert(0, f"{repeated} emails that are already in an earlier file.")
        more = len(reasons) - LISTED
        return reasons[:LISTED] + ([f"{more} more files."] if more > 0 else [])


def find(paths: tuple[str, ...], form: str | None) -> Found:
    """The files of paths. Raises InvalidRequest for a named path that cannot be read.

    Files of folders and archives that cannot be read are left out.
    """
    found = Found()
    for path in paths:
        grown = list(trees(path))
        found._trees += grown
        if not grown:
            raise InvalidRequest(f"{path} contains no files.")
        for tree in grown:
            for file, format in _formats(tree, form):
                if format is None:
                    try:
                        found.files.append((file, _detected(file)))
                    except InvalidRequest as error:
                        if len(paths) == 1 and file.path == path and file.member is None:
                            raise
                        found._left_out.append((file, error.message))
                else:
                    found.files.append((file, format))
    if not found.files:
        raise InvalidRequest(" ".join(["Nothing here can be imported.", *found.left_out]))
    return found


def _formats(tree: Tree, form: str | None) -> Iterator[tuple[File, str | None]]:
    """The files of a tree; those of a folder that is read as one are not listed."""
    if form is not None and not FORMATS[form].folder:
        yield from ((file, form) for file in tree.files.values())
        return
    whole = {}
    for format in FORMATS.values():
        folders = {dirname(name) for name in tree.files} if format.folder else set()
        for folder in folders:
            if all(join(folder, name) in tree.files for name in format.folder):
                whole[folder] = format
    for folder, format in whole.items():
        yield tree.files[join(folder, format.folder[0])], format.name
    for name, file in tree.files.items():
        if not any(name.startswith(join(folder, "")) for folder in whole):
            yield file, None


def _detected(file: File) -> str:
    if file.path == "-":
        return detect("-")
    with file.open() as opened:
        return detect(file.name, opened.read(HEAD_BYTES))


def connection_name(paths: tuple[str, ...]) -> str:
    """An id for a connection, proposed from the name of the first path."""
    if paths[0] == "-":
        raise InvalidRequest("Standard input has no name; give --connection NAME.")
    name = Path(paths[0]).resolve().name
    while (stem := Path(name).stem) != name and Path(name).suffix[1:].isalnum():
        name = stem
    words = "".join(char if char.isalnum() or char in "._" else "-" for char in name.lower())
    return words.strip("-.") or "import"
