"""Imports make no circles, and `evidence` loads nothing from above."""

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from tests.architecture.sources import PACKAGES, ROOT, files, imports


def test_no_module_comes_back_to_itself() -> None:
    """A circle of imports works or fails by which module happens to be the first."""
    paths = {_module(path): path for path in files(*PACKAGES)}
    wanted = {name: {_owner(found, paths) for found in imports(paths[name])} for name in paths}
    done: set[str] = set()

    def follow(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, f"a circle: {' -> '.join((*way[way.index(name):], name))}"
        if name in done:
            return
        for found in sorted(wanted[name] - {"", name}):
            follow(found, (*way, name))
        done.add(name)

    for name in paths:
        follow(name, ())


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _owner(imported: str, known: Collection[str]) -> str:
    """The module of ours that `a.b.c` stands for, or stands in; empty where it is not ours."""
    if imported in known:
        return imported
    inside = imported.rpartition(".")[0]
    return inside if inside in known else ""


def test_importing_evidence_loads_nothing_from_above() -> None:
    every = ", ".join(map(_module, files("evidence")))
    code = f"import sys, {every}; print(*{{name.split('.')[0] for name in sys.modules}})"
    found = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    loaded = set(found.stdout.split()) - sys.stdlib_module_names
    stemmer = {"Stemmer", "cython_runtime", *(name for name in loaded if "_cython" in name)}
    assert loaded <= {"__main__", "evidence", "orjson", *stemmer}, loaded
