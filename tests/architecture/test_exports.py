"""`evidence` exports its whole vocabulary, in order, and costs little to import."""

import ast
import subprocess
import sys
from pathlib import Path

import evidence
from tests.architecture.sources import ROOT, files, tree

EACH_FIRST = """
import importlib, sys
cut = sys.argv.index("--")
for name in sys.argv[cut + 1:]:
    for known in [known for known in sys.modules if known.split(".")[0] in sys.argv[1:cut]]:
        del sys.modules[known]
    importlib.import_module(name)
"""
CONSTANTS = {"BUDGETS", "CONTRACT", "KINDS", "VERSION", "Outcome"}


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


def test_every_module_can_be_imported_first() -> None:
    """A cycle shows only where a certain module comes first, so each gets its turn.

    The modules of `evidence` have none: each of them loads them all, in one order.
    """
    names = [".".join(path.with_suffix("").parts) for path in files("renderers", "service")]
    names = [name.removesuffix(".__init__") for name in names if name != "service.serving"]
    found = subprocess.run(
        [sys.executable, "-c", EACH_FIRST, "renderers", "service", "--", *names],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert found.returncode == 0, found.stderr


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
