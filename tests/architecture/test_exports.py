"""`evidence` exports its whole vocabulary, in order, and costs little to import."""

import ast
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import evidence
from tests.architecture.sources import PACKAGES, ROOT, files, imports, tree

CONSTANTS = {"BUDGETS", "CONTRACT", "KINDS", "VERSION"}


def modules() -> list[Path]:
    """The modules of `evidence` itself; `evidence.reading` is reached by its own name."""
    return [
        path for path in files("evidence") if len(path.parts) == 2 and path.name != "__init__.py"
    ]


def test_the_list_is_sorted_and_every_name_is_there() -> None:
    assert evidence.__all__ == sorted(set(evidence.__all__))
    for name in evidence.__all__:
        assert getattr(evidence, name) is not None


def test_every_public_class_is_exported_and_nothing_else() -> None:
    classes = {
        node.name
        for path in modules()
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    assert set(evidence.__all__) == classes | CONSTANTS


def test_no_exported_name_hides_a_module() -> None:
    assert not {path.stem for path in modules()} & set(evidence.__all__)


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
    code = "import sys, evidence; print(*{name.split('.')[0] for name in sys.modules})"
    found = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    loaded = set(found.stdout.split()) - sys.stdlib_module_names
    assert loaded <= {"__main__", "evidence", "orjson"}, loaded
