"""A server whose workers are replaced under load loses no request."""

import os
import re
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.helpers.api import Api
from tests.helpers.operated import operated
from tests.helpers.scale import times
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House

CLIENTS = 8
RECYCLING = "--max-requests 60 --max-requests-jitter 30"


@pytest.mark.slow
@pytest.mark.parametrize("counted, options", [("reloads", ""), ("recycled workers", RECYCLING)])
def test_no_request_is_lost_when_workers_are_replaced(
    small_house: House,
    counted: str,
    options: str,
    record_property: Callable[[str, object], None],
) -> None:
    token, rounds, ended = small_house.grant()[1], times(20, 2), threading.Event()
    answered = threading.Semaphore(0)
    env = {**small_house.environment, "RUNG_DRAIN_SECONDS": "1", "GUNICORN_CMD_ARGS": options}
    with operated(env, workers=2) as server:
        found = re.search(r"Listening at: [^ ]+ \((\d+)\)", server.said())
        assert found is not None

        def work() -> list[int]:
            api, statuses = Api(server.url, token), list[int]()
            while not ended.is_set():
                statuses.append(api.get("/v1/search?q=invoice&limit=3").status)
                answered.release()
            return statuses

        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(work) for _ in range(CLIENTS)]
            for _ in range(rounds):
                before = server.said().count("Booting worker")
                if not options:
                    os.kill(int(found[1]), signal.SIGHUP)
                while server.said().count("Booting worker") < before + 2:
                    assert answered.acquire(timeout=WAIT_SECONDS)
            ended.set()
            statuses = [status for one in working for status in one.result()]
    assert set(statuses) == {200}
    record_property(counted, rounds * (2 if options else 1))
    record_property("requests answered", len(statuses))
