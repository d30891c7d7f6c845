"""Replicas answer reads with what the primary would answer, or leave them to it."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from evidence.work import Deadline
from service.place import Database
from tests.helpers import worlds
from tests.helpers.two_owners import letters
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import Api, House
from tests.postgres.server import Cluster

#: Sessions of Rung whose last statement was more than a look at how far the primary is, and no
#: commit of the sidecar.
READING = """
SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rung'
AND query NOT LIKE 'SELECT generation%' AND query <> 'COMMIT'
"""


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Cluster, Cluster]]:
    """A primary and its replica."""
    with (
        TemporaryDirectory(prefix="rung-postgres-") as first,
        TemporaryDirectory(prefix="rung-postgres-") as second,
        Cluster(Path(first)) as primary,
    ):
        replica = primary.follow(Path(second))
        try:
            yield primary, replica
        finally:
            replica.stop()


def value(server: Cluster, sql: str) -> object:
    with psycopg.connect(server.url, autocommit=True) as db:
        row = db.execute(sql.encode()).fetchone()
    return row and row[0]


def replayed(primary: Cluster, replica: Cluster) -> None:
    """Returns once the replica has all that the primary has."""
    position, deadline = value(primary, "SELECT pg_current_wal_lsn()"), Deadline.after(WAIT_SECONDS)
    while not value(replica, f"SELECT pg_last_wal_replay_lsn() >= '{position}'"):
        assert not deadline.expired()


def test_a_replica_answers_reads_and_never_with_less_than_the_primary_has(
    servers: tuple[Cluster, Cluster],
) -> None:
    primary, replica = servers
    place = Database(primary.url)
    worlds.fill(place, letters("home", 3))
    house = House(place, {"RUNG_STORE_READ": replica.url})
    grant_id, token = house.grant()
    api = Api(house.app, token)

    def hits() -> int:
        return len(api.rest("/v1/search", q="lantern").body["data"])

    replayed(primary, replica)
    assert hits() == 3
    assert value(primary, READING) == 0 and value(replica, READING), "the replica has answered"
    changes = "/v1/streams/letters/records"
    marked = api.rest(changes, changes_since="beginning").body["next_changes_since"]
    value(replica, "SELECT pg_wal_replay_pause()")
    house.add("home", worlds.row("letters", "new", body="one more lantern"))
    assert hits() == 4, "the primary has answered"
    (change,) = api.rest(changes, changes_since=marked).body["data"]
    assert worlds.keys_of([change]) == ["new"]
    house.revoke(grant_id)
    assert api.rest("/v1/search", q="lantern").status == 401
    value(replica, "SELECT pg_wal_replay_resume()")
    replayed(primary, replica)
    assert api.rest("/v1/search", q="lantern").status == 401
    api = house.api()
    replica.stop()
    assert hits() == 4, "the primary has answered"
    replica.start()


def test_a_replica_of_another_store_is_not_asked(servers: tuple[Cluster, Cluster]) -> None:
    primary, _ = servers
    with psycopg.connect(primary.url, autocommit=True) as db:
        db.execute("CREATE DATABASE other")
    other = Database(f"{primary.url.removesuffix('postgres')}other")
    for number in range(2):  # more commits than the store has
        worlds.fill(other, letters("away", 9))
    place = Database(primary.url)
    house = House(place, {"RUNG_STORE_READ": other.url})
    found = house.api().rest("/v1/streams")
    assert {one["connection_id"] for one in found.body["data"]} == {"home"}
