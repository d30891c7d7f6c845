"""A model reads the same bytes through a socket: MCP over the store, and over its `/v1`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from service.bootstrap import Services
from service.demo.fill import Question, questions
from tests.golden.transcripts import CALLS, path_of, transcript
from tests.helpers import hostile as hostile_world
from tests.helpers.caller import Caller, Local
from tests.helpers.reading import printed_calls, structured_calls
from tests.helpers.remote import caller_of, opener
from tests.helpers.server import serving
from tests.helpers.stores import build
from tests.helpers.worlds import House
from tests.journeys.test_no_dead_ends import DEMO, HOSTILE

pytestmark = pytest.mark.slow


class Both(NamedTuple):
    """Two callers of one store: in this process, and through a real server of it."""

    here: Caller
    there: Caller

    def agree(self, tool: str, args: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Both give the same answer; the calls it offers."""
        here, there = self.here.call(tool, **args), self.there.call(tool, **args)
        assert there == here
        found = [*printed_calls(here.text), *structured_calls(here.structured)]
        return list({call.key(): (call.tool, call.args) for call in found}.values())


@contextmanager
def both(house: House, token: str) -> Iterator[Both]:
    services: Services = house.app.extensions["rung"]
    assert services.store is not None
    with serving("wsgi:app", house.environment) as url:
        there = caller_of(opener(url, token), fence_key=services.store.fence_key)
        yield Both(Local(house.app, token), there)


@pytest.fixture(scope="module")
def of_small(small_house: House, small: Local) -> Iterator[Both]:
    with both(small_house, str(small.api.token)) as found:
        yield found


@pytest.fixture(scope="module")
def of_demo(demo_store: tuple[Path, str]) -> Iterator[Both]:
    path, token = demo_store
    with both(House(path), token) as found:
        yield found


@pytest.fixture(scope="module")
def of_hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    house = build(hostile_world.connections(), tmp_path_factory.mktemp("hostile-loopback"))
    with both(house, house.grant()[1]) as found:
        yield found


@pytest.mark.parametrize("name", CALLS)
def test_every_transcript_is_the_same_through_the_store_and_through_http(
    of_small: Both, name: str
) -> None:
    tool, args = CALLS[name]
    assert transcript(of_small.there, name) == path_of(name).read_text(encoding="utf-8")
    for offered in of_small.agree(tool, args):
        of_small.agree(*offered)


@pytest.mark.parametrize(("tool", "args"), DEMO)
def test_so_is_every_answer_of_the_demo_and_all_it_offers(
    of_demo: Both, tool: str, args: dict[str, Any]
) -> None:
    for offered in of_demo.agree(tool, args):
        of_demo.agree(*offered)


@pytest.mark.parametrize(("tool", "args"), HOSTILE)
def test_so_is_every_answer_of_a_hostile_world_and_all_it_offers(
    of_hostile: Both, tool: str, args: dict[str, Any]
) -> None:
    for offered in of_hostile.agree(tool, args):
        of_hostile.agree(*offered)


@pytest.mark.parametrize("asked", questions(), ids=lambda one: one.question)
def test_a_first_page_ends_after_the_same_hit(of_demo: Both, asked: Question) -> None:
    of_demo.agree("search", {"query": asked.question})
