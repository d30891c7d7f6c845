"""`rung doctor` has a text for every problem it names, and no other."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from service.doctor.findings import PROBLEMS

#: The checks, and the engines, which name problems of their stores.
CODE = (Path("service/doctor"), Path("service/records"))


def nodes() -> Iterator[ast.AST]:
    """Every piece of the code of the checks."""
    for folder in CODE:
        for path in folder.rglob("*.py"):
            yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def facts(name: str) -> set[str]:
    """The facts that complete the texts of a problem."""
    texts = Formatter().parse("".join(PROBLEMS[name].values()))
    return {field.partition(".")[0] for _, field, _, _ in texts if field}


def test_every_problem_is_found_by_some_step() -> None:
    words = {node.value for node in nodes() if isinstance(node, ast.Constant)}
    assert [name for name in PROBLEMS if name not in words] == []


def test_every_problem_says_what_it_means_and_what_to_change() -> None:
    for name, texts in PROBLEMS.items():
        assert texts.keys() - {"verdict"} == {"message", "meaning", "change"}, name
        assert texts.get("verdict", "FAIL") in ("FAIL", "warn"), name


def test_a_call_that_names_one_problem_passes_the_facts_of_its_texts() -> None:
    calls = [
        node
        for node in nodes()
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "problem"
    ]
    assert len(calls) > 40
    for call in calls:
        name, given = call.args[0], {word.arg for word in call.keywords}
        assert None in given or not isinstance(name, ast.Constant) or given == facts(name.value)
