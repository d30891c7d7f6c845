"""Every promise in the manifests has a test, and every marked test names a promise."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spec.defects import DEFECTS, lacks
from tests.spec.scenarios import BY_ID, SCENARIOS, scenario

TESTS = Path(__file__).parents[1]
FOLDERS = ("spec", "journeys")
PER_SPECIFICATION = {"000": 10, "001": 6, "002": 19, "003": 10, "004": 20}


def decorated(mark: str = "scenario") -> dict[str, list[str]]:
    """The functions that `mark` marks with each id, read from the sources."""
    found = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((TESTS / folder).rglob("test_*.py")):
            for function in _functions(path):
                for name in _marks(function, mark):
                    found[name].append(f"{path.name}::{function.name}")
    return dict(found)


def _functions(path: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield node


def _marks(function: ast.FunctionDef, name: str) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == name:
            for argument in mark.args:
                assert isinstance(argument, ast.Constant), f"{function.name}: ids are literals"
                yield str(argument.value)


def test_there_are_exactly_65_scenarios_with_ids_of_their_own() -> None:
    assert len(SCENARIOS) == len(BY_ID) == 65
    counted = {name: 0 for name in PER_SPECIFICATION}
    for one in SCENARIOS:
        counted[one.specification] += 1
    assert counted == PER_SPECIFICATION


def test_every_scenario_says_in_one_line_what_it_demands() -> None:
    for one in SCENARIOS:
        assert one.requirement.endswith(".") and "\n" not in one.requirement, one.id
        assert one.id.count("/") == 2 and one.id == one.id.lower()


def test_every_scenario_is_tested() -> None:
    tested = decorated()
    for one in SCENARIOS:
        assert one.id in tested, f"{one.id} has no test"


def test_every_marked_test_names_a_known_scenario_and_is_collected() -> None:
    for name, functions in decorated().items():
        assert name in BY_ID, functions
        assert all("::test_" in function for function in functions), functions


def test_an_unknown_scenario_fails_when_the_test_is_imported() -> None:
    with pytest.raises(LookupError, match="004/no/such"):
        scenario("004/no/such")


def test_every_defect_of_the_list_has_a_test_that_shows_its_absence() -> None:
    tested = decorated("lacks")
    assert set(tested) == set(DEFECTS) == {f"D{number}" for number in range(1, 23)}
    assert all("::test_" in function for functions in tested.values() for function in functions)
    with pytest.raises(LookupError, match="D23"):
        lacks("D23")
