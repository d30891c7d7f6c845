"""Sources of a package are asked at once, and none of them holds the page."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from evidence.envelope import Envelope
from evidence.work import Deadline, Each
from renderers.pool import WorkerPool
from service.upstreams.package import Child, PackageResourceServer
from service.upstreams.ports import SearchQuery
from tests.helpers.sources import QUERY, SEALER, Crowd, ListServer, Plan

LONG = 30.0


class Waiting(ListServer):
    """A source that waits for something before it answers a search."""

    def __init__(self, wait: threading.Event | threading.Barrier) -> None:
        super().__init__("waiting", "waiting", Plan(hits=1))
        self.wait = wait

    def search(self, query: SearchQuery) -> Envelope:
        self.wait.wait(LONG)
        return super().search(query)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hung sources wait for; it opens at the end, so that no thread is left behind."""
    event = threading.Event()
    yield event
    event.set()


def over(children: list[Child], each: Each, deadline: Deadline) -> PackageResourceServer:
    return PackageResourceServer(children, each, deadline, SEALER)


def waiting(crowd: Crowd, number: int, wait: threading.Event | threading.Barrier) -> None:
    """Makes a source of the crowd wait."""
    crowd.children[number] = replace(crowd.children[number], open=lambda deadline: Waiting(wait))


def test_eight_sources_are_asked_at_once() -> None:
    crowd, all_asked = Crowd([Plan(1)] * 8), threading.Barrier(8)
    for number in range(8):
        waiting(crowd, number, all_asked)
    package = over(crowd.children, WorkerPool(8, "test").map, Deadline.after(LONG))
    rows = package.search(SearchQuery(QUERY)).body["meta"]["package"]["sources"]
    assert [row["state"] for row in rows] == ["answered"] * 8


def test_a_source_that_hangs_holds_the_page_for_its_share_and_is_asked_again(
    gate: threading.Event,
) -> None:
    crowd = Crowd([Plan(2), Plan(2), Plan(2)])
    healthy = crowd.children[1]
    waiting(crowd, 1, gate)
    pool, request = WorkerPool(4, "test"), Deadline.after(0.5)
    body = over(crowd.children, pool.map, request).search(SearchQuery(QUERY)).body
    assert not request.expired()
    assert {hit["connection_id"] for hit in body["data"]} == {"source-0", "source-2"}
    states = [row["state"] for row in body["meta"]["package"]["sources"]]
    assert states == ["answered", "timed_out", "answered"]
    crowd.children[1] = healthy
    query = SearchQuery(QUERY, cursor=body["next_cursor"])
    later = over(crowd.children, pool.map, Deadline.after(LONG)).search(query).body
    assert {hit["connection_id"] for hit in later["data"]} == {"source-1"}
    assert not later["has_more"]
