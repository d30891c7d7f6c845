"""Renderers return new values: a result compares equal after it was fitted and rendered."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from evidence.errors import EvidenceError
from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from evidence import wire
from renderers import failure, search
from renderers.rendering import Context
from service.operations import OPERATIONS
from service.operations.papers import PAPER_OPERATIONS
from tests.golden.transcripts import CALLS, PAPER_CALLS
from tests.helpers.monsters import Held, held, monstrous, pages
from tests.helpers.papers import in_process
from tests.helpers.stores import client
from tests.helpers.worlds import House

STEPS = ("fit", "render")
Step = Callable[..., Any]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The operations that were rendered; every step of a renderer leaves its result as it was."""
    rendered = set[str]()

    def checked(name: str, step: Step) -> Step:
        def check(reading: Any, *rest: Any, **named: Any) -> Any:
            before = deepcopy(reading)
            result = step(reading, *rest, **named)
            assert reading == before, f"{name} changed its reading"
            rendered.add(name)
            return result

        return check

    kept = [
        (operation, step, getattr(operation, step))
        for operation in (*OPERATIONS, *PAPER_OPERATIONS)
        for step in STEPS
    ]
    for operation, step, fn in kept:
        object.__setattr__(operation, step, checked(operation.name, fn))
    for module, name in ((failure, "render_lines"), (wire, "failure")):
        monkeypatch.setattr(module, name, unchanged_error(getattr(module, name), rendered))
    yield rendered
    for operation, step, fn in kept:
        object.__setattr__(operation, step, fn)


def unchanged_error(step: Step, rendered: set[str]) -> Step:
    """The step, which leaves the error it renders as it was."""

    def check(error: EvidenceError, *rest: Any) -> Any:
        before = deepcopy(vars(error))
        result = step(error, *rest)
        assert vars(error) == before, "the renderer of errors changed its error"
        rendered.add("error")
        return result

    return check


def test_every_renderer_leaves_its_reading_as_it_was(small_house: House, watched: set[str]) -> None:
    records, papers = client(small_house), in_process()
    for tool, args in CALLS.values():
        records.call(tool, **args)
    for tool, args in PAPER_CALLS.values():
        papers.call(tool, **args)
    names = {operation.name for operation in (*OPERATIONS, *PAPER_OPERATIONS)}
    assert watched == {*names, "error"}


@monstrous
@given(held(pages(most=100)))
def test_a_search_page_is_unchanged_by_fitting_and_rendering_it(
    monster: Held[SearchPage],
) -> None:
    page = monster.reading
    before = deepcopy(page)
    fitted = search.fit(page, BUDGETS)
    assert page == before
    before = deepcopy(fitted)
    search.render(fitted, Context())
    assert fitted == before
