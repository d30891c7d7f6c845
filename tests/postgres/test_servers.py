"""Two servers over one database: what one of them suffers is no matter of the other."""

import http.client
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evidence.work import Deadline
from service.place import Database
from service.records.opening import open_writer
from tests.helpers import worlds
from tests.helpers.places import new_database
from tests.helpers.server import serving
from tests.helpers.two_owners import letters
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import Api, House
from tests.postgres.server import Cluster
from tests.postgres.test_writers import declared, put

ASKED, CLIENTS = 10, 4
SEARCH = "/v1/search?q=lantern"


@dataclass
class Load:
    """Clients that search at several servers in turn, and what they were answered."""

    bases: list[str]
    token: str
    #: (server, status) of each request, 0 if the connection broke.
    answers: list[tuple[str, int]] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    stop: threading.Event = field(default_factory=threading.Event)

    #: Rounds that each client has begun.
    rounds: list[int] = field(default_factory=lambda: [0] * CLIENTS)

    def ask(self, client: int) -> None:
        while not self.stop.is_set():
            self.rounds[client] += 1
            for base in list(self.bases):
                try:
                    answer = Api(base, self.token).get(SEARCH)
                    status = answer.status
                    if status != 200:
                        self.codes.add(answer.error["code"])
                except (OSError, http.client.HTTPException):
                    status = 0
                self.answers.append((base, status))

    def until(self, more: int, status: int = 200, base: str | None = None) -> None:
        """Returns once there are so many more answers of a status, from one server if named."""
        start, deadline = len(self.answers), Deadline.after(WAIT_SECONDS)
        while sum(s == status and b == (base or b) for b, s in self.answers[start:]) < more:
            assert not deadline.expired(), self.answers[-20:]
            self.stop.wait(0.01)

    def send_to(self, *bases: str) -> None:
        """Sends requests to these servers only; returns once all clients do so."""
        self.bases, before, deadline = list(bases), list(self.rounds), Deadline.after(WAIT_SECONDS)
        while any(now <= then for now, then in zip(self.rounds, before)):
            assert not deadline.expired()
            self.stop.wait(0.01)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.ask, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()


def test_cursors_and_revocation_hold_across_servers() -> None:
    place = new_database()
    worlds.fill(place, letters("home", 5))
    house = House(place)
    grant_id, token = house.grant()
    with serving("wsgi:app", house.environment) as one:
        with serving("wsgi:app", house.environment) as other:
            cursor = Api(other, token).get(f"{SEARCH}&limit=2").body["next_cursor"]
        # The other one is gone; its cursor goes on here.
        for _ in range(ASKED):
            rest = Api(one, token).get(f"{SEARCH}&limit=9&cursor={cursor}").body
            assert len(rest["data"]) == 3
        house.revoke(grant_id)
        assert Api(one, token).get(SEARCH).status == 401


def test_nobody_else_notices_that_a_server_is_killed_and_another_is_upgraded() -> None:
    place = new_database()
    worlds.fill(place, letters("home", 5))
    house = House(place)
    _, token = house.grant()
    groups = list[int]()
    with ExitStack() as servers, ExitStack() as old:
        dies = servers.enter_context(serving("wsgi:app", house.environment, started=groups))
        leaves = old.enter_context(serving("wsgi:app", house.environment))
        load = Load([dies, leaves], token)
        with load.running():
            for base in (dies, leaves):
                load.until(ASKED, base=base)
            os.killpg(groups[0], signal.SIGKILL)
            load.until(1, status=0, base=dies)
            load.send_to(leaves)  # as a router does after a request has failed
            new = servers.enter_context(serving("wsgi:app", house.environment))
            load.send_to(leaves, new)
            load.until(ASKED, base=new)
            load.send_to(new)
            old.close()
            load.until(ASKED, base=new)
    failed = [base for base, status in load.answers if status != 200]
    assert set(failed) == {dies} and not load.codes, load.answers[-20:]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with TemporaryDirectory(prefix="rung-postgres-") as folder, Cluster(Path(folder)) as own:
        yield own


def test_servers_recover_by_themselves_from_a_database_that_stops_under_load(
    cluster: Cluster,
) -> None:
    place = Database(cluster.url)
    declared(place, "c")
    put(place, "c", "before")
    house = House(place)
    _, token = house.grant()
    failed = list[BaseException]()

    def write() -> None:
        try:
            put(place, "c", "during", rounds=100_000)
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    with serving("wsgi:app", house.environment) as one, serving(
        "wsgi:app", house.environment
    ) as two:
        load = Load([one, two], token)
        with load.running():
            writer.start()
            load.until(ASKED)
            cluster.stop()
            writer.join()
            load.until(ASKED, status=503)
            cluster.start()
            for base in (one, two):
                load.until(ASKED, base=base)
    assert load.codes == {"store_unavailable"}
    assert {status for _, status in load.answers} == {200, 503}
    assert [type(error).__name__ for error in failed] == ["Unavailable"]
    # Each import writes two records in one batch: both are there, or none.
    with open_writer(place) as again:
        (count,) = again.counts()
    assert count.records > 0 and count.records % 2 == 0
