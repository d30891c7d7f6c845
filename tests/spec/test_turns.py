"""A caller holds at most half of a worker's threads beside others; its other calls wait."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event

import pytest

from tests.helpers.api import Answer, Api
from tests.helpers.loopback import Asked, Reply, answering
from tests.helpers.operated import Operated, operated
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House

pytestmark = pytest.mark.slow

STREAMS = "/v1/streams"
THREADS, SHARE, CALLS = 8, 4, 12


@dataclass(frozen=True, slots=True)
class Busy:
    """A server whose upstream does not answer the calls of one of its tokens until `release`."""

    server: Operated
    calls: list[Future[Answer]]
    arrived: SimpleQueue[str]
    release: Event

    def codes(self) -> Counter[str]:
        """The errors of all calls, once they are answered."""
        return Counter(call.result(WAIT_SECONDS).error["code"] for call in self.calls)


@contextmanager
def busy(house: House) -> Iterator[tuple[Busy, Api]]:
    """The server, when the token holds all the threads that it may, and a client with a grant."""
    arrived, release = SimpleQueue[str](), Event()

    def answer(asked: Asked) -> Reply:
        arrived.put(asked.token)
        release.wait(WAIT_SECONDS)
        return Reply(200)

    env = {**house.environment, "RUNG_DRAIN_SECONDS": "1", "RUNG_THREADS": str(THREADS)}
    with answering(answer) as upstream, ThreadPoolExecutor(CALLS) as pool:
        env["RUNG_UPSTREAM_URL"] = upstream.url
        with operated(env, workers=1, threads=THREADS) as server:
            other = Api(server.url, house.grant()[1])
            assert other.get(STREAMS).status == 200
            slow = Api(server.url, "at_client")
            calls = [pool.submit(slow.get, STREAMS) for _ in range(CALLS)]
            try:
                for _ in range(SHARE):
                    arrived.get(timeout=WAIT_SECONDS)
                yield Busy(server, calls, arrived, release), other
            finally:
                release.set()


def test_others_are_served_at_once_and_calls_that_wait_are_not_refused(small_house: House) -> None:
    with busy(small_house) as (found, other):
        assert {other.get(STREAMS).status for _ in range(5)} == {200}
        assert found.arrived.empty() and not any(call.done() for call in found.calls)
        found.release.set()
        assert found.codes() == {"upstream_invalid_response": CALLS}


def test_calls_that_wait_are_answered_when_the_server_is_stopped(small_house: House) -> None:
    with busy(small_house) as (found, other):
        found.server.stop(workers=True)
        while other.get("/readyz").status == 200:
            pass
        found.release.set()
        assert found.codes() == {"upstream_invalid_response": CALLS}


def test_calls_that_wait_for_an_upstream_that_never_answers_get_an_error(
    small_house: House,
) -> None:
    with busy(small_house) as (found, other):
        codes = found.codes()
        assert codes.total() == CALLS and codes["upstream_timeout"] >= SHARE
        assert set(codes) <= {"upstream_timeout", "upstream_busy", "deadline_exceeded"}
        assert {call.result().status for call in found.calls} <= {503, 504}
        assert other.get(STREAMS).status == 200
