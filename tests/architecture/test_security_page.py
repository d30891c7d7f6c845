"""Each claim of docs/security.md names tests that exist."""

import ast
import re

import pytest

from tests.architecture.sources import ROOT

PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_claim_names_its_tests() -> None:
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").split("## OWASP")[1].splitlines()
        if line.startswith("| ") and not line.startswith(("| risk", "| practice", "| threat"))
    ]
    assert len(rows) > 15 and all(NAMED.search(row) for row in rows)


@pytest.mark.parametrize("named", sorted(set(NAMED.findall(PAGE.read_text(encoding="utf-8")))))
def test_a_named_test_is_there(named: tuple[str, str]) -> None:
    path, name = named
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
