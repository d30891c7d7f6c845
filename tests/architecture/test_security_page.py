"""Each claim of docs/security.md names tests that exist."""

import ast
import re
from pathlib import Path

from tests.architecture.sources import ROOT, tree

PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_claim_names_its_tests() -> None:
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").split("## OWASP")[1].splitlines()
        if line.startswith("| ") and not line.startswith(("| risk", "| practice", "| threat"))
    ]
    assert len(rows) > 15 and all(NAMED.search(row) for row in rows)


def test_the_named_tests_are_there() -> None:
    for path, name in set(NAMED.findall(PAGE.read_text(encoding="utf-8"))):
        functions = {
            node.name for node in tree(Path(path)).body if isinstance(node, ast.FunctionDef)
        }
        assert name in functions, f"{path}::{name}"
