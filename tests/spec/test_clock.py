"""A clock that is set back revives no token, neither in a running server nor after a restart."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from evidence.work import Deadline
from tests.helpers import worlds
from tests.helpers.operated import Operated, operated
from tests.helpers.server import ROOT
from tests.helpers.shell import Shell
from tests.helpers.shifted import Clock
from tests.helpers.two_owners import letters
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House

HOUR = 3_600


@pytest.fixture
def house(tmp_path: Path) -> House:
    return worlds.build(letters("home", 2), tmp_path)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path, ROOT)


def status(server: Operated, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return requests.get(f"{server.url}/v1/streams", headers=headers, timeout=30).status_code


def test_an_expired_token_stays_expired(house: House, clock: Clock) -> None:
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    env = {**house.environment, **clock.environment}
    token, lasting = house.grant(expires_at=ends)[1], house.grant()[1]
    with operated(env, workers=1) as server:
        assert status(server, token) == 200
        clock.shift(2 * HOUR)
        assert status(server, token) == 401
        clock.shift(0)
        assert status(server, token) == 401, "set back under a running server"
        assert status(server, lasting) == 200
        assert "The clock was set back" in server.said()
    listed = json.loads(Shell(house.environment).ok("grant", "list", "--json").stdout)
    assert sorted(one["state"] for one in listed["grants"]) == ["active", "expired"]
    with operated(env, workers=2) as server:
        assert {status(server, token) for _ in range(8)} == {401}, "and found so by the next one"
        assert status(server, lasting) == 200


def test_a_clock_that_runs_ahead_ends_what_it_reached_and_no_more(
    house: House, clock: Clock
) -> None:
    now = datetime.now(UTC)
    soon, later = (
        house.grant(expires_at=(now + timedelta(hours=hours)).isoformat())[1] for hours in (1, 9)
    )
    with operated({**house.environment, **clock.environment}, workers=1) as server:
        for hours, expected in (
            (0, (200, 200)),
            (2, (401, 200)),
            (-5, (401, 200)),
            (9, (401, 401)),
        ):
            clock.shift(hours * HOUR + 1)
            assert (status(server, soon), status(server, later)) == expected, hours


def test_a_clock_set_back_does_not_stretch_the_window_of_a_rate_limit(
    house: House, clock: Clock
) -> None:
    env = {**house.environment, **clock.environment, "RUNG_RATE_LIMIT_TOKEN": "2/second"}
    token = house.grant()[1]
    with operated(env, workers=1) as server:
        clock.shift(HOUR)
        while status(server, token) != 429:
            pass
        clock.shift(0)
        deadline = Deadline.after(WAIT_SECONDS)
        while status(server, token) != 200:
            assert not deadline.expired()
