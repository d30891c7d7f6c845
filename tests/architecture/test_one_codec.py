"""PDPP JSON is decoded in one place and encoded in one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, files, imports, inside, tree

#: Members of PDPP answers that nothing else has. A module that has `FEW` of them as keys of dicts
#: reads or writes such answers.
MEMBERS = frozenset(
    "authored_at available_views connector_instance_id emitted_at end_chars evidence_excerpts"
    " filtered_record_count granted_connections has_more match_end_chars match_start_chars"
    " matched_fields next_changes_since next_cursor other_count preview_text record_key size_chars"
    " start_chars total_chars".split()
)
FEW = 3
#: Where PDPP answers are read and written, checked before they are decoded, and described.
PDPP = (
    "service/pdpp/",
    "service/sources/remote/bodies.py",
    "service/openapi/",
)
#: The JSON of MCP and of papers, which is made from the same values and has members of these names.
OTHER_WIRE = (
    "evidence/wire.py",
    "evidence/hits.py",
    "evidence/schema_wire.py",
    "evidence/papers_wire.py",
)
#: Who may ask for a value of a body, and for the body of a value.
DECODE = ("service/sources/", "service/cli/export/", "service/cli/rows.py")
ENCODE = (
    "service/operations/bodies.py",
    "service/cli/export/",
    #: The store measures what it gives over REST.
    "service/records/reading/lists.py",
    "service/records/view/documents.py",
)


def keys(module: ast.Module) -> Iterator[str]:
    """Every string that is a key of a dict, of a subscript or of a `get`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Dict):
            named: list[ast.expr | None] = list(node.keys)
        elif isinstance(node, ast.Subscript):
            named = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = [*node.args[:1]] if node.func.attr in ("get", "pop") else []
        else:
            continue
        for one in named:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value


def test_the_members_of_pdpp_answers_are_named_in_one_place() -> None:
    wrong = {}
    for path in files(*PACKAGES):
        found = MEMBERS.intersection(keys(tree(path)))
        if len(found) >= FEW and not path.as_posix().startswith((*PDPP, *OTHER_WIRE)):
            wrong[path.as_posix()] = sorted(found)
    assert wrong == {}, "Decode in service/pdpp/decode, encode in service/pdpp/encode."


@pytest.mark.parametrize(
    ("codec", "users"), [("service.pdpp.decode", DECODE), ("service.pdpp.encode", ENCODE)]
)
def test_only_who_needs_a_codec_imports_it(codec: str, users: tuple[str, ...]) -> None:
    used: dict[str, list[str]] = {}
    for path in files("evidence", "renderers", "service"):
        if not path.as_posix().startswith("service/pdpp/"):
            found = [name for name in imports(path) if inside(name, codec)]
            if found:
                used[path.as_posix()] = found
    assert {path: found for path, found in used.items() if not path.startswith(users)} == {}
    for user in users:
        assert any(path.startswith(user) for path in used), f"{user} does not use it any more"


def test_a_second_encoder_is_noticed() -> None:
    module = ast.parse('body = {"next_cursor": 1, "has_more": True}\nbody["emitted_at"] = now')
    assert len(MEMBERS.intersection(keys(module))) >= FEW
    assert isinstance(tree(Path("service/pdpp/encode.py")), ast.Module)
