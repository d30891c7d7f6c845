"""An engine is one object: the code above asks it, never which engine it is."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from service.place import ENGINES, FILES
from tests.architecture.sources import files, imports, inside, tree

PACKAGES = sorted({module.rpartition(".")[0] for module in (FILES, *ENGINES.values())})
#: The module with the types of locations, and the only one that tests them.
LOCATIONS = Path("service/place.py")
TYPES = frozenset({"Path", "Database"})


@pytest.mark.parametrize("package", PACKAGES)
def test_only_its_own_modules_import_those_of_an_engine(package: str) -> None:
    folder = package.replace(".", "/") + "/"
    users = {
        f"{path} imports {module}"
        for path in files("service")
        for module in imports(path)
        if inside(module, package) and not path.as_posix().startswith(folder)
    }
    assert users == set(), "Ask the engine instead; see `Engine` and `engine_of`."


def test_only_one_module_tests_the_type_of_a_location() -> None:
    wrong = [line for path in files("service") if path != LOCATIONS for line in type_tests(path)]
    assert wrong == [], "Ask the engine: a flag of `Engine` says what it can do."


def type_tests(path: Path) -> Iterator[str]:
    """The lines of a file that ask whether something is a path or a database."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            names = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            if names & TYPES:
                yield f"{path}:{node.lineno}"


def test_every_row_of_the_table_is_an_engine() -> None:
    for module in (FILES, *ENGINES.values()):
        assert callable(import_module(module).ENGINE)
