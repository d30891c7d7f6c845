"""A standby that lacks the last commits becomes the primary: what was cached is forgotten."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest

from service.place import Database
from tests.helpers import places, worlds
from tests.helpers.places import new_database
from tests.helpers.two_owners import letters
from tests.helpers.worlds import Api, House

RECORDS = "/v1/streams/letters/records"
#: A standby is a copy of the database that gets the same address when the primary fails.
COPY = "CREATE DATABASE {0}_standby TEMPLATE {0} STRATEGY file_copy"
FAIL_OVER = ("DROP DATABASE {0} WITH (FORCE)", "ALTER DATABASE {0}_standby RENAME TO {0}")
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


@pytest.fixture
def house() -> House:
    place = new_database()
    worlds.fill(place, letters("home", 20))
    return House(place)


def database(house: House) -> str:
    assert isinstance(house.path, Database)
    return urlsplit(house.path.url).path.strip("/")


@contextmanager
def lost_commits(house: House) -> Iterator[None]:
    """The commits of the block are lost in a failover at its end."""
    name = database(house)
    with psycopg.connect(places.SERVER, autocommit=True) as db:
        db.execute(END, (name,))
        db.execute(COPY.format(name).encode())
        yield
        for statement in FAIL_OVER:
            db.execute(statement.format(name).encode())


def add(house: House, key: str) -> None:
    house.add("home", worlds.row("letters", key, body="one more lantern"))


def count_hits(api: Api) -> int:
    return len(api.rest("/v1/search", q="lantern", limit=100).body["data"])


def test_a_revoked_token_reads_nothing_if_commits_were_lost_and_counted_again(
    house: House,
) -> None:
    grant_id, token = house.grant()
    api = Api(house.app, token)
    with lost_commits(house):
        add(house, "lost")
        add(house, "too")
        assert count_hits(api) == 22
    house.revoke(grant_id)
    add(house, "new")  # as many commits as the application has seen
    assert api.rest("/v1/search", q="lantern").status == 401


@pytest.mark.parametrize("commits", [0, 1, 2, 3])
def test_nothing_of_the_lost_commits_is_answered(house: House, commits: int) -> None:
    _, token = house.grant()
    api = Api(house.app, token)
    with lost_commits(house):
        worlds.fill(house.path, letters("away", 3))
        worlds.fill(house.path, letters("abroad", 3))
        house.grant({"connection_id": "away"})
        assert count_hits(api) == 20
        every = house.api()
        assert count_hits(every) == 26
    for number in range(commits):
        add(house, f"new {number}")
    assert count_hits(api) == 20 + commits
    assert every.rest("/v1/search", q="lantern").status == 401
    every = house.api()
    streams = every.rest("/v1/streams").body["data"]
    assert {stream["connection_id"] for stream in streams} == {"home"}
    assert count_hits(every) == 20 + commits


def test_streams_of_lost_commits_are_not_taken_for_those_of_the_same_number(house: House) -> None:
    api = house.api()
    with lost_commits(house):
        worlds.fill(house.path, letters("away", 3))
        assert len(house.api().rest("/v1/streams").body["data"]) == 2
    worlds.fill(house.path, letters("abroad", 4))
    streams = house.api().rest("/v1/streams").body["data"]
    assert {stream["connection_id"] for stream in streams} == {"home", "abroad"}
    assert count_hits(house.api()) == 24 and count_hits(api) == 20


def test_a_bookmark_of_a_lost_commit_is_gone_and_others_go_on(house: House) -> None:
    api = house.api()

    def follow(bookmark: str) -> tuple[list[str], str]:
        body = api.rest(RECORDS, changes_since=bookmark, limit=100).body
        return worlds.keys_of(body["data"]), body["next_changes_since"]

    _, before = follow("beginning")
    with lost_commits(house):
        add(house, "lost")
        keys, lost = follow(before)
        assert keys == ["lost"]
    for number in range(3):
        gone = api.rest(RECORDS, changes_since=lost)
        assert (gone.status, gone.error["code"]) == (410, "cursor_expired")
        assert "changes_since=beginning" in gone.error["hint"]
        add(house, f"new {number}")
    assert follow(before)[0] == ["new 0", "new 1", "new 2"]
    assert follow("beginning")[0][-3:] == ["new 0", "new 1", "new 2"]


@pytest.mark.parametrize(
    "commit",
    [lambda house: add(house, "one"), lambda house: house.grant()],
    ids=["record", "grant"],
)
def test_a_replica_of_the_lost_primary_is_not_asked(
    house: House, commit: Callable[[House], object]
) -> None:
    grant_id, token = house.grant()
    name = database(house)
    with psycopg.connect(places.SERVER, autocommit=True) as db:
        db.execute(END, (name,))
        db.execute(COPY.format(name).encode())
        replica = Database(f"{house.path.url}_standby")  # type: ignore[union-attr]
        ahead = House(replica)
        for _ in range(3):
            commit(ahead)
        api = Api(House(house.path, {"RUNG_STORE_READ": replica.url}).app, token)
        assert api.rest("/v1/search", q="lantern").status == 200
        house.revoke(grant_id)
        assert api.rest("/v1/search", q="lantern").status == 401
        db.execute(f"DROP DATABASE {name}_standby WITH (FORCE)".encode())
