"""The server goes away under load and comes back: typed errors meanwhile, and no restart after."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evidence.errors import TimedOut
from evidence.work import Deadline
from service.place import Database
from service.records.opening import open_reader
from tests.helpers import worlds
from tests.helpers.two_owners import letters
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House
from tests.postgres.server import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with TemporaryDirectory(prefix="rung-postgres-") as folder, Cluster(Path(folder)) as own:
        yield own


def test_a_server_that_stops_gives_typed_errors_and_is_used_again_when_it_is_back(
    cluster: Cluster,
) -> None:
    place = Database(cluster.url)
    worlds.fill(place, letters("home", 5))
    api = House(place).api()
    assert len(api.rest("/v1/search", q="lantern").body["data"]) == 5
    cluster.stop()
    away = api.rest("/v1/search", q="lantern")
    assert (away.status, away.error["code"]) == (503, "store_unavailable")
    assert "postgres" not in away.error["message"]
    cluster.start()
    deadline = Deadline.after(WAIT_SECONDS)
    back = api.rest("/v1/search", q="lantern")
    while back.status == 503 and not deadline.expired():
        back = api.rest("/v1/search", q="lantern")
    assert back.status == 200 and len(back.body["data"]) == 5


def test_connections_that_were_lost_while_idle_fail_no_request(cluster: Cluster) -> None:
    place = Database(cluster.url)
    worlds.fill(place, letters("home", 5))
    api = House(place).api()
    assert api.rest("/v1/search", q="lantern").status == 200
    cluster.stop()
    cluster.start()
    assert api.rest("/v1/search", q="lantern").status == 200


def test_a_statement_that_takes_too_long_is_a_timeout(cluster: Cluster) -> None:
    place = Database(cluster.url)
    worlds.fill(place, letters("home", 1))
    reader = open_reader(place)
    with pytest.raises(TimedOut), reader.snapshot(0.2) as snapshot:
        snapshot.run("SELECT pg_sleep(?)", 5)
    with reader.snapshot() as snapshot:
        assert snapshot.meta("layout")
    reader.close()
