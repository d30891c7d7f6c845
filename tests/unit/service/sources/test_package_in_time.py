"""Sources of a package are asked at once, and none of them holds the page."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from evidence.errors import TimedOut
from evidence.hits import SearchPage
from evidence.work import Deadline, Each
from renderers.pool import WorkerPool
from service.sources.package import Child, PackageResourceServer
from service.pdpp.encode import body_of
from service.ports import Answer, ResourceServer, SearchQuery
from tests.helpers.sources import QUERY, SEALER, Crowd, ListServer, Plan

LONG = 30.0


class Waiting(ListServer):
    """A source that waits for something before it answers a search."""

    def __init__(self, wait: threading.Event | threading.Barrier) -> None:
        super().__init__("waiting", "waiting", Plan(hits=1))
        self.wait = wait

    def search(self, query: SearchQuery) -> Answer[SearchPage]:
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
    rows = body_of(package.search(SearchQuery(QUERY)))["meta"]["package"]["sources"]
    assert [row["state"] for row in rows] == ["answered"] * 8


def test_a_source_that_hangs_holds_the_page_for_its_share_and_is_asked_again(
    gate: threading.Event,
) -> None:
    crowd = Crowd([Plan(2), Plan(2), Plan(2)])
    healthy = crowd.children[1]
    waiting(crowd, 1, gate)
    pool, request = WorkerPool(4, "test"), Deadline.after(0.5)
    body = body_of(over(crowd.children, pool.map, request).search(SearchQuery(QUERY)))
    assert not request.expired()
    assert {hit["connection_id"] for hit in body["data"]} == {"source-0", "source-2"}
    states = [row["state"] for row in body["meta"]["package"]["sources"]]
    assert states == ["answered", "timed_out", "answered"]
    crowd.children[1] = healthy
    query = SearchQuery(QUERY, cursor=body["next_cursor"])
    later = body_of(over(crowd.children, pool.map, Deadline.after(LONG)).search(query))
    assert {hit["connection_id"] for hit in later["data"]} == {"source-1"}
    assert not later["has_more"]


def test_sources_that_hang_on_every_thread_leave_the_page_to_those_behind_them() -> None:
    crowd, pool = Crowd([Plan(1)] * 6), WorkerPool(2, "test")
    crowd.children = [
        *(replace(child, open=_hung) for child in crowd.children[:2]),
        *(replace(child, open=_in_time(child)) for child in crowd.children[2:]),
    ]
    found = body_of(over(crowd.children, pool.map, Deadline.after(1)).search(SearchQuery(QUERY)))
    shown = {hit["connection_id"] for hit in found["data"]}
    assert shown == {"source-2", "source-3", "source-4", "source-5"}
    states = [row["state"] for row in found["meta"]["package"]["sources"]]
    assert states == ["timed_out"] * 2 + ["answered"] * 4


def test_where_nobody_had_a_turn_the_search_is_late(gate: threading.Event) -> None:
    pool, crowd = WorkerPool(2, "test"), Crowd([Plan(1)] * 3)
    busy = threading.Barrier(3)

    def work(number: int) -> None:
        busy.wait(LONG)
        gate.wait(LONG)

    other = threading.Thread(target=pool.map, args=(work, range(2), Deadline.after(LONG)))
    other.start()
    busy.wait(LONG)
    with pytest.raises(TimedOut):
        over(crowd.children, pool.map, Deadline.after(0.2)).search(SearchQuery(QUERY))
    gate.set()
    other.join(LONG)
    assert not any(server.calls for server in crowd.servers)


def _hung(deadline: Deadline) -> ResourceServer:
    threading.Event().wait(deadline.left())
    raise TimedOut("This source hangs. Try again later.")


def _in_time(child: Child) -> Callable[[Deadline], ResourceServer]:
    """Opens a child as one behind a socket opens: not past the deadline."""

    def open(deadline: Deadline) -> ResourceServer:
        deadline.check("asking a source")
        return child.open(deadline)

    return open
