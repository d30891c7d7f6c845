"""Writes the tables of `docs/tour.md` from the docstrings of the code."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

TOUR: Final = Path("docs/tour.md")
PACKAGES: Final = ("evidence", "renderers", "service")
BEGIN: Final = "<!-- Written by `make docs` from the docstrings of the modules. -->\n"
END: Final = "<!-- End of the written tables. -->\n"


def tour(root: Path = Path()) -> str:
    """The text of the tour, its tables in step with the modules under `root`."""
    page = (root / TOUR).read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = "\n".join(_folder(root, folder) for folder in folders(root))
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def folders(root: Path) -> Iterable[Path]:
    """Every folder with Python code in it, each before the folders inside it."""
    found = {
        path.parent.relative_to(root) for top in PACKAGES for path in (root / top).rglob("*.py")
    }
    return sorted(found)


def _folder(root: Path, folder: Path) -> str:
    """The section of one folder: its heading, its docstring, a row for each module."""
    modules = sorted((root / folder).glob("*.py"))
    rows = [f"| `{path.name}` | {_first_line(path)} |" for path in modules if _has_code(path)]
    about = _docstring(root / folder / "__init__.py")
    return "\n".join([f"## `{folder.as_posix()}/`\n", f"{about}\n", *_table(rows)])


def _table(rows: list[str]) -> Iterator[str]:
    if rows:
        yield from ("| module | |", "|---|---|", *rows, "")


def _docstring(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n\n")[0]


def _first_line(path: Path) -> str:
    line = re.sub(r"\s+", " ", _docstring(path))
    return line.replace("|", "\\|")


def _has_code(path: Path) -> bool:
    """True if a module has more than a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(not isinstance(node, ast.Expr) for node in tree.body)
