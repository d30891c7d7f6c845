"""A ratchet: files and functions stay small. An exception has its number, which may only shrink."""

import ast

from tests.architecture.sources import CODE, files, text, tree

FILE_LINES = 400
FUNCTION_LINES = 60

#: Files and functions above the ceiling, with their size today.
LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {"tests/spec/isolation_calls.py::calls": 70}


def file_sizes() -> dict[str, int]:
    return {path.as_posix(): len(text(path).splitlines()) for path in files(*CODE)}


def function_sizes() -> dict[str, int]:
    """Lines of every function, by `file::name`; the longest where a name comes twice."""
    found: dict[str, int] = {}
    for path in files(*CODE):
        for node in ast.walk(tree(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{path.as_posix()}::{node.name}"
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found[name] = max(lines, found.get(name, 0))
    return found


def check(sizes: dict[str, int], ceiling: int, exceptions: dict[str, int]) -> None:
    for name, lines in sizes.items():
        most = exceptions.get(name, ceiling)
        assert lines <= most, f"{name} has {lines} lines, at most {most}: split it by what it does"
    for name, lines in exceptions.items():
        assert name in sizes, f"{name} is gone: take it off the list"
        assert sizes[name] == lines, f"{name} has {sizes[name]} lines now: write that, not {lines}"
        assert lines > ceiling, f"{name} is no exception any more: take it off the list"


def test_files_are_at_most_400_lines() -> None:
    check(file_sizes(), FILE_LINES, LONG_FILES)


def test_functions_are_at_most_60_lines() -> None:
    check(function_sizes(), FUNCTION_LINES, LONG_FUNCTIONS)
