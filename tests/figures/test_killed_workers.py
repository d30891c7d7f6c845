"""Workers are killed under load: only what they were answering is lost, and nothing looks whole."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from tests.helpers.operated import operated
from tests.helpers.scale import times
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House

CLIENTS, THREADS = 8, 4


@pytest.mark.slow
def test_a_killed_worker_loses_what_it_was_answering(
    small_house: House, record_property: Callable[[str, object], None]
) -> None:
    token, rounds, ended = small_house.grant()[1], times(20, 3), threading.Event()
    answered = threading.Semaphore(0)
    with operated(small_house.environment, workers=2, threads=THREADS) as server:

        def work() -> Counter[str]:
            seen = Counter[str]()
            while not ended.is_set():
                connection = HTTPConnection(urlsplit(server.url).netloc, timeout=WAIT_SECONDS)
                try:
                    headers = {"Authorization": f"Bearer {token}"}
                    connection.request("GET", "/v1/search?q=invoice&limit=9", headers=headers)
                    response = connection.getresponse()
                    whole = orjson.loads(response.read())  # raises if it ends early
                    assert response.status == 200 and whole["data"], whole
                    seen["answered"] += 1
                    answered.release()
                except (OSError, HTTPException):
                    seen["lost"] += 1
                finally:
                    connection.close()
            return seen

        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(work) for _ in range(CLIENTS)]
            for _ in range(rounds):
                for _ in range(5 * CLIENTS):
                    assert answered.acquire(timeout=WAIT_SECONDS)
                alive = [pid for pid in server.workers if Path(f"/proc/{pid}").exists()]
                os.kill(alive[-1], signal.SIGKILL)
            for _ in range(5 * CLIENTS):
                assert answered.acquire(timeout=WAIT_SECONDS)
            ended.set()
            total = sum((one.result() for one in working), Counter[str]())
    assert total["lost"] <= rounds * CLIENTS, "one request of each client at most"
    record_property("kills", rounds)
    record_property("requests answered", total["answered"])
    record_property("requests lost with their worker", total["lost"])
