"""The files of the project, as these tests look at them."""

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("evidence", "renderers", "service")
CODE = (*PACKAGES, "publish", "tests", "bench", "quality", "docs")
NOT_OURS = frozenset({"node_modules", "__pycache__", "var", "build"})


def files(*folders: str, ending: str = ".py") -> Iterator[Path]:
    """Our files under some folders of the project, relative to it, in order."""
    for folder in folders:
        for where, inside, names in os.walk(ROOT / folder):
            inside[:] = sorted(name for name in inside if ours(name))
            found = Path(where).relative_to(ROOT)
            yield from (found / name for name in sorted(names) if name.endswith(ending))


def ours(name: str) -> bool:
    """Whether a folder's name is one of a folder we wrote."""
    return name not in NOT_OURS and not name.startswith(".") and not name.endswith(".egg-info")


@cache
def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, wherever it does; `from a import b` gives `a.b`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name, not relative to the file"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def inside(module: str, name: str) -> bool:
    """Whether a dotted name is another one or inside it."""
    return module == name or module.startswith(f"{name}.")
