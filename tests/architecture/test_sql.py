"""SQL is in the folders of the engines, and in the few modules below, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, files, tree

#: Where databases are opened and SQL is written.
SQL = (
    "service/records/sql/",
    "service/records/sqlite/",
    "service/records/postgres/",
    "service/database_files.py",
    "service/access/activity.py",
    "service/access/registry.py",
    "service/access/sidecar.py",
    "service/access/entries.py",
    "service/access/tables.py",
    "service/papers/",
    "service/importing/occurrences.py",
    "service/importing/databases.py",
    "service/importing/readers/imessage.py",
    "service/importing/readers/sqlite_tables.py",
    "service/importing/readers/zotero.py",
)
STATEMENT = re.compile(
    r"\b(SELECT|INSERT (OR [A-Z]+ )?INTO|UPDATE [\w\"{]+ SET|DELETE FROM|PRAGMA|CREATE TABLE"
    r"|CREATE INDEX|json_each|bm25)\b"
)
RUNNING = frozenset({"execute", "executemany", "executescript", "set_progress_handler"})


def faults(path: Path) -> Iterator[str]:
    """The lines of a file with SQL or with a connection to a store."""
    return faults_of(tree(path), path)


def faults_of(module: ast.Module, path: Path) -> Iterator[str]:
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


@pytest.mark.parametrize(
    "line",
    [
        "import sqlite3",
        "from sqlite3 import connect",
        "rows = db.execute(statement)",
        "check(snapshot.db)",
        'ADD = "INSERT INTO record (seq) VALUES (?)"',
        'found = f"SELECT {name} FROM record"',
    ],
)
def test_a_line_that_speaks_to_a_store_is_noticed(line: str) -> None:
    assert list(faults_of(ast.parse(line), Path("some.py")))


def test_sql_is_written_in_an_engine_only() -> None:
    outside = (path for path in files(*PACKAGES) if not path.as_posix().startswith(SQL))
    wrong = [line for path in outside for line in faults(path)]
    assert (
        wrong == []
    ), "Move the statement to its engine in service/records/ and give it a name there."
