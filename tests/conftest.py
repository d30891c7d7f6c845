"""Stores that many tests read and none changes, each built once for a run."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

from service.demo.fill import fill, token_for
from service.place import Place
from service.records.opening import open_writer
from tests.helpers import hostile as hostile_world
from tests.helpers import small as small_world
from tests.helpers.alone import leave_home
from tests.helpers.caller import Local
from tests.helpers.papers import (
    RELEASES,
    UNWRITABLE,
    Library,
    Served,
    Trace,
    may_become_another_user,
)
from tests.helpers.places import new_place
from tests.helpers.snapshots import DATA
from tests.helpers.stores import build, client, steady_client
from tests.helpers.worlds import House

#: Examples of a property: where slow tests are left out, in all tests, and in `make fuzz`.
QUICK_EXAMPLES, EXAMPLES, FUZZ_EXAMPLES = 20, 40, 300

# Shared machines are slow at odd moments, which says nothing about the code. A run draws the same
# examples every time, so that its answer is about the change; `make fuzz` draws new ones.
settings.register_profile(
    "rung",
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.register_profile("quick", settings.get_profile("rung"), max_examples=QUICK_EXAMPLES)
settings.register_profile(
    "fuzz", settings.get_profile("rung"), max_examples=FUZZ_EXAMPLES, derandomize=False
)
settings.load_profile("rung")

leave_home()

# In the background of a script SIGINT is ignored, and so it would be in every process that a test
# starts: an import that is interrupted would go on waiting for its input.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start hundreds of processes. Without compiled modules on disk each compiles the code again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

#: What a test marked `slow` may take, in seconds, on a machine where much else runs.
SLOW_SECONDS = 900


def pytest_configure(config: pytest.Config) -> None:
    """Asks for fewer examples where slow tests are left out."""
    if config.option.markexpr == "not slow":
        settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives slow tests a limit of their own."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, str]:
    """The demo's store and the token that reads all of it."""
    folder = tmp_path_factory.mktemp("demo-store")
    path = new_place(folder)
    with open_writer(path) as writer:
        token = token_for(writer, fill(writer), folder / "token")
    return path, token


@pytest.fixture(scope="session")
def demo(demo_store: tuple[Place, str]) -> Local:
    """A client of the demo."""
    path, token = demo_store
    return Local(House(path).app, token)


@pytest.fixture(scope="session")
def small_house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A small store of known words. Grants may be added; records may not be changed."""
    return build(small_world.connections(), tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def small(small_house: House) -> Local:
    """A client of the small store; its answers are always the same, to the byte."""
    return steady_client(small_house)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """A client of a store full of odd ids, forged text and huge values."""
    return client(build(hostile_world.connections(), tmp_path_factory.mktemp("hostile")))


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """A client of 64 connections that share a stream."""
    return client(build(hostile_world.wide(), tmp_path_factory.mktemp("wide")))


@pytest.fixture(scope="session", autouse=True)
def untouched_snapshots() -> Iterator[None]:
    """Fails the run where anything in it wrote to the snapshots, or beside them."""
    before = {release: Trace.of(DATA / release) for release in RELEASES}
    yield
    assert {release: Trace.of(DATA / release) for release in RELEASES} == before


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """Real servers of the releases."""
    with ExitStack() as stack:
        yield Served(stack)


SLOW_LIBRARIES = [
    pytest.param(name, marks=pytest.mark.slow) for name in (*RELEASES[1:], UNWRITABLE)
]


@pytest.fixture(scope="session", params=[RELEASES[0], *SLOW_LIBRARIES])
def library(request: pytest.FixtureRequest, served: Served) -> Library:
    """A client of each release, and of one that the server cannot write to, as another user."""
    name: str = request.param
    if name == UNWRITABLE and not may_become_another_user():
        pytest.skip("only root can start a server as another user")
    return served[name]


@pytest.fixture(scope="session")
def papers(served: Served) -> Library:
    """A client of the newer release."""
    return served[RELEASES[0]]
