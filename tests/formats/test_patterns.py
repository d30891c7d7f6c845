"""Patterns over foreign text take linear time: text of twice the length takes about twice as long.

Each pattern of the importers is used as they use it, on repeated fragments of what it looks for.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import pytest

import service.importing
from service.importing.formats import FORMATS, unreadable
from tests.helpers.scale import times

SHORT, GROWTH = 1_000, 16
#: Work that grows with the square takes 16 times as long as work that grows with the length.
MOST = 4 * GROWTH
#: Shorter times say nothing.
LEAST_SECONDS = 0.02
ANCHORED = {"match", "fullmatch"}
Pattern = re.Pattern[Any]


def patterns() -> Iterator[tuple[str, Pattern, bool]]:
    """(name, pattern, True if it is only tried at the beginning of a text)."""
    for found in pkgutil.walk_packages(service.importing.__path__, "service.importing."):
        module = importlib.import_module(found.name)
        used = uses(Path(str(module.__file__)))
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and name in used:
                yield f"{module.__name__.split('.')[-1]}.{name}", value, used[name] <= ANCHORED
    for form in FORMATS.values():
        if isinstance(form.begins, re.Pattern):
            yield f"{form.name}.begins", form.begins, True
    for begins, what in unreadable():
        yield what, begins, True


def uses(path: Path) -> dict[str, set[str]]:
    """The methods of each name that a module uses."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def fragments(pattern: Pattern) -> list[str]:
    """Parts of what a pattern looks for: its words, and one character of each of its classes."""
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    words = set(re.findall(r"[\w@:/-]{2,}", re.sub(r"\\.", " ", text)))
    chars = set(re.sub(r"\\[a-zA-Z]", "", text)) | set("a0 \n")
    return [*sorted(words, key=len)[-4:], *sorted(char for char in chars if ord(char) < 256)][:24]


def seconds(pattern: Pattern, text: str, *, anchored: bool) -> float:
    """The least CPU time of three uses of a pattern on a text."""
    subject = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text

    def use() -> float:
        began = process_time()
        if anchored:
            pattern.match(subject), pattern.fullmatch(subject)
        else:
            pattern.sub(subject[:0], subject)
        return process_time() - began

    return min(use() for _ in range(3))


def texts(pattern: Pattern) -> Iterator[Callable[[int], str]]:
    """Repeated fragments, each as a function of the length."""
    parts = fragments(pattern)
    for first, second in product(parts, parts):
        yield lambda size, one=first + second: one * (size // len(one))
    for first, second in product(parts[:6], parts):
        yield lambda size, one=first, two=second: one + two * (size // len(two))


PATTERNS = list(patterns())


@pytest.mark.parametrize(("name", "pattern", "anchored"), PATTERNS, ids=[p[0] for p in PATTERNS])
def test_patterns_take_linear_time(name: str, pattern: Pattern, anchored: bool) -> None:
    for text in list(texts(pattern))[:: times(1, 7)]:
        long = seconds(pattern, text(GROWTH * SHORT), anchored=anchored)
        if long > LEAST_SECONDS:
            short = seconds(pattern, text(SHORT), anchored=anchored)
            assert long < MOST * short, (name, text(60))


def test_a_pattern_of_quadratic_time_is_noticed() -> None:
    slow = re.compile(r"a+b")
    long, short = (seconds(slow, "a" * size, anchored=False) for size in (GROWTH * SHORT, SHORT))
    assert long > LEAST_SECONDS and long > MOST * short
