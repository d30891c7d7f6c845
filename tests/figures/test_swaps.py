"""A store is replaced again and again under load, also by files that are none."""

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.operated import operated
from tests.helpers.places import ENGINE
from tests.helpers.scale import times
from tests.helpers.two_owners import letters
from tests.helpers.waiting import WAIT_SECONDS

CLIENTS, SIZES = 4, (3, 7)

pytestmark = pytest.mark.skipif(ENGINE == "postgres", reason="a database is not a file")


@pytest.mark.slow
def test_swaps_give_no_wrong_answer(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    first = worlds.build(letters("home", SIZES[0]), tmp_path)
    assert isinstance(first.path, Path)
    token = first.grant()[1]
    stores = [tmp_path / "small.db", tmp_path / "large.db"]
    shutil.copy(first.path, stores[0])
    for row in letters("home", SIZES[1]).connections[0].rows[SIZES[0] :]:
        first.add("home", row)
    shutil.copy(first.path, stores[1])
    rounds, ended, answered = times(100, 8), threading.Event(), threading.Semaphore(0)
    with operated(first.environment, workers=2) as server:

        def work() -> set[tuple[int, int]]:
            api, seen = Api(server.url, token), set()
            while not ended.is_set():
                answer = api.rest("/v1/search", q="lantern", limit=50)
                seen.add((answer.status, len(answer.body.get("data", ()))))
                answered.release()
            return seen

        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(work) for _ in range(CLIENTS)]
            for number in range(rounds):
                new = shutil.copy(stores[number % 2], tmp_path / "next.db")
                os.replace(new, first.path)
                for _ in range(3 * CLIENTS):
                    assert answered.acquire(timeout=WAIT_SECONDS)
            ended.set()
            seen = set.union(*(one.result() for one in working))
    assert seen == {(200, size) for size in SIZES}
    record_property("swaps", rounds)
