"""A server that is stopped loses no request, and signals to routers that it is stopping."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.helpers.api import Api
from tests.helpers.operated import Operated, operated
from tests.helpers.scale import times
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House

pytestmark = pytest.mark.slow

CLIENTS = 16
BEFORE, AFTER = 5, 5
DRAIN = {"RUNG_DRAIN_SECONDS": "4"}


def fresh(server: Operated, token: str) -> Callable[[], int]:
    """Sends each request on a new connection."""
    api = Api(server.url, token)
    return lambda: api.get("/v1/search?q=invoice&limit=3").status


def kept(server: Operated, token: str) -> Callable[[], int]:
    """Sends requests on one connection until an answer closes it."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=WAIT_SECONDS)

    def ask() -> int:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("GET", "/v1/search?q=invoice&limit=3", headers=headers)
        response = connection.getresponse()
        response.read()
        return response.status

    return ask


@pytest.mark.parametrize("number", range(times(5, 1)))
@pytest.mark.parametrize("workers", [False, True], ids=["arbiter", "every process"])
@pytest.mark.parametrize("client", [fresh, kept])
def test_no_request_is_lost_when_a_server_is_stopped_under_load(
    small_house: House,
    client: Callable[[Operated, str], Callable[[], int]],
    workers: bool,
    number: int,
    record_property: Callable[[str, object], None],
) -> None:
    """A router that sees 503 sends no more requests; all earlier ones are answered."""
    token = small_house.grant()[1]
    noticed, busy = threading.Event(), threading.Barrier(CLIENTS + 1)
    with operated({**small_house.environment, **DRAIN}) as server:

        def work() -> list[int]:
            ask = client(server, token)
            found = [ask() for _ in range(BEFORE)]
            busy.wait()
            while not noticed.is_set():
                found.append(ask())
            return found + [ask() for _ in range(AFTER)]  # the router is slow to react

        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(work) for _ in range(CLIENTS)]
            busy.wait()
            server.stop(workers=workers)
            router = Api(server.url, None)
            while (ready := router.get("/readyz")).status == 200:
                pass
            noticed.set()
            while router.get("/readyz").headers["Connection"] != "close":
                pass  # an answer that began earlier keeps its connection
            answered = [status for each in working for status in each.result()]
        assert (ready.status, ready.body["status"]) == (503, "closing")
    record_property("stops", 1)
    record_property("requests answered while stopping", len(answered))
    assert set(answered) == {200} and len(answered) >= CLIENTS * (BEFORE + AFTER)
