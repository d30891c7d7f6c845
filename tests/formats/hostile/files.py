"""Hostile files by kind."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.formats.owner import write

Content = bytes | str
KINDS: dict[str, Callable[[], Iterator["Hostile"]]] = {}


@dataclass(frozen=True, slots=True)
class Hostile:
    """Files that `make` writes into a folder."""

    name: str
    make: Callable[[Path], object]


def kind(function: Callable[[], Iterator[Hostile]]) -> Callable[[], Iterator[Hostile]]:
    """Declares a kind of hostile files."""
    KINDS[function.__name__] = function
    return function


def several(ending: str, contents: Mapping[str, Content]) -> Iterator[Hostile]:
    """Files with one ending, by their names."""
    for name, content in contents.items():
        files = {f"{name}{ending}": content}
        yield Hostile(f"{name}{ending}", lambda folder, files=files: write(folder, files))
