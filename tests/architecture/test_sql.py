"""SQL is written where an engine lives, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, files, tree

#: Where SQLite is opened and SQL is written.
SQL = (
    "service/records/sqlite/",
    "service/access/sqlite.py",
    "service/papers/",
    "service/demo/papers/",
)
#: Modules that still hold SQL. Shorten the list; never add to it.
SQL_TO_MOVE = (
    "service/records/ingest.py",
    "service/records/store.py",
)
STATEMENT = re.compile(
    r"\b(SELECT|INSERT (OR [A-Z]+ )?INTO|UPDATE [\w\"{]+ SET|DELETE FROM|PRAGMA|CREATE TABLE"
    r"|CREATE INDEX|json_each|bm25)\b"
)
RUNNING = frozenset({"execute", "executemany", "executescript", "set_progress_handler"})


def faults(path: Path) -> Iterator[str]:
    """The lines of a file with SQL or with a connection to a store."""
    module = tree(path)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings and STATEMENT.search(node.value):
                yield f"{path}:{node.lineno} is SQL"
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).strip("_")
            if node.attr in RUNNING or (
                node.attr == "db" and owner.endswith(("snapshot", "writer"))
            ):
                yield f"{path}:{node.lineno} uses a connection"
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [name.name for name in node.names]
            if "sqlite3" in names or getattr(node, "module", None) == "sqlite3":
                yield f"{path}:{node.lineno} imports sqlite3"


def test_sql_stands_in_an_engine_only() -> None:
    found = {path.as_posix(): list(faults(path)) for path in files(*PACKAGES)}
    outside = {file: lines for file, lines in found.items() if lines and not file.startswith(SQL)}
    wrong = [line for file, lines in outside.items() if file not in SQL_TO_MOVE for line in lines]
    assert wrong == [], "Move the statement to service/records/sqlite/ and give it a name there."
    clean = [file for file in SQL_TO_MOVE if file not in outside]
    assert clean == [], "These hold no SQL any more: take them off SQL_TO_MOVE."
