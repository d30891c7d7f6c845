"""Imports run one way, and each library has its place: evidence <- renderers <- service."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.architecture.fences import FENCES
from tests.architecture.floors import FLOORS, OUR_OWN
from tests.architecture.sources import PACKAGES, files, imports, inside, text

FILES = [path.as_posix() for path in files(*PACKAGES)]


def test_a_file_imports_only_from_its_own_floor_and_below() -> None:
    wrong = []
    for file in FILES:
        allowed, rule = next(
            (allowed, rule) for start, allowed, rule in FLOORS if file.startswith(start)
        )
        names = [name.strip("/").replace("/", ".") for name in allowed]
        for module in imports(Path(file)):
            ours = module.split(".")[0] in OUR_OWN
            if ours and not any(inside(module, name) for name in names):
                wrong.append(f"{file} imports {module}: {rule}.")
    assert wrong == []


def test_a_library_is_imported_only_in_its_place() -> None:
    assert [fault for file in FILES for fault in _out_of_place(file)] == []


def _out_of_place(file: str) -> Iterator[str]:
    """What is wrong with the libraries of a file."""
    for module in [*imports(Path(file)), *_attributes_of_os(file)]:
        top = module.split(".")[0]
        fence = next((name for name in FENCES if inside(module, name)), None)
        if fence is None:
            if top not in OUR_OWN and top not in sys.stdlib_module_names:
                yield f"{file} imports {module}: give {top} a place in FENCES first."
        elif not _stands_in(file, FENCES[fence]):
            yield (
                f"{file} imports {module}: {fence} belongs in {', '.join(FENCES[fence])}. "
                "Pass the value in instead."
            )


def test_every_fence_and_floor_is_about_something() -> None:
    for start, _, _ in FLOORS:
        assert any(file.startswith(start) for file in FILES), f"FLOORS names {start}, which is gone"
    for name, places in FENCES.items():
        for place in places:
            assert any(file.startswith(place) for file in FILES), f"{name}: {place} is gone"


def _stands_in(file: str, places: Sequence[str]) -> bool:
    return any(
        file == place or (place.endswith("/") and file.startswith(place)) for place in places
    )


def _attributes_of_os(file: str) -> list[str]:
    """`os.environ` is reached by attribute, so imports alone do not show it."""
    return [name for name in ("os.environ", "os.getenv") if name in text(Path(file))]
