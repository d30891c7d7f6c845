"""A clock set forward and back: nothing ended is valid again, and new things end in time."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evidence.errors import Unavailable
from evidence.work import Deadline
from service.access.owner import LINK_SECONDS, TRIES, Owner
from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from tests.helpers import worlds
from tests.helpers.operated import Operated, operated
from tests.helpers.server import ROOT
from tests.helpers.shell import Shell
from tests.helpers.shifted import Clock, DatabaseClock, clock_of
from tests.helpers.signin import MAIL, Browser, Client, answer, call
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House
from tests.spec.sign_in.conftest import ON
from tests.spec.sign_in.test_busy_store import being_written

MINUTES, HOUR, YEAR = 600, 3_600, 365 * 86_400


@pytest.fixture
def house(tmp_path: Path) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path)


@pytest.fixture
def clock(house: House, tmp_path: Path) -> Clock | DatabaseClock:
    return clock_of(house.path, tmp_path, ROOT)


def soon(holds: Callable[[], bool]) -> bool:
    """Whether something holds within seconds: workers of a database look at its clock so often."""
    deadline = Deadline.after(WAIT_SECONDS)
    while not (found := holds()) and not deadline.expired():
        pass
    return found


@dataclass(frozen=True)
class Owned:
    """A server, and the shell of its owner, both with the clock of the store."""

    server: Operated
    shell: Shell

    def link(self) -> str:
        """The code of a new link."""
        done = self.shell.bash("rung owner link")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().partition("code=")[2]

    def grant(self, expires: str) -> str:
        """The token of a new grant."""
        done = self.shell.bash(f"rung grant create --connection mail-work --expires {expires}")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def status(self, token: str) -> int:
        return call(self.server.url, token, "/v1/streams").status_code

    def sign_in(self, secret: str) -> int:
        return Browser(self.server.url).sign_in(secret).status_code

    def arrive(self) -> "Arrival":
        browser, client = Browser(self.server.url), Client(self.server.url).register()
        assert browser.sign_in(self.link()).ok
        page = browser.post(client.path(), {"code": self.link()}).text
        form = browser.fill(page, MAIL, decision="allow")
        tokens = client.token(answer(browser.post(client.path(), form))["code"]).json()
        return Arrival(self, browser, client, **tokens)


class Arrival:
    """An owner who signed in, and a client that signed in then."""

    def __init__(self, owned: Owned, browser: Browser, client: Client, **tokens: str) -> None:
        self.owned, self.browser, self.client = owned, browser, client
        self.access, self.refresh_token = tokens["access_token"], tokens["refresh_token"]

    def is_in(self) -> bool:
        return "Sign out" in self.browser.get("/owner").text

    def refresh(self) -> int:
        answer = self.client.refresh(self.refresh_token)
        self.refresh_token = answer.json().get("refresh_token", self.refresh_token)
        return answer.status_code

    def is_dead(self) -> bool:
        dead = self.owned.status(self.access) == 401 and self.refresh() == 400
        return dead and not self.is_in()


@pytest.fixture
def owned(house: House, clock: Clock | DatabaseClock) -> Iterator[Owned]:
    env = {**house.environment, **ON, **clock.environment}
    with operated(env, workers=2) as server:
        yield Owned(server, Shell(env))


@pytest.mark.slow
def test_a_year_forward_and_back_revives_nothing_and_what_is_new_ends_in_time(
    owned: Owned, clock: Clock | DatabaseClock
) -> None:
    status, sign_in = owned.status, owned.sign_in
    old_link, old_token, lasting = owned.link(), owned.grant("30d"), owned.grant("800d")
    old = owned.arrive()
    clock.shift(YEAR)
    assert old.is_dead() and soon(lambda: status(old_token) == 401)
    assert status(lasting) == 200
    ahead, ahead_link = owned.arrive(), owned.link()
    assert 429 in [sign_in("a passphrase") for _ in range(TRIES + 1)]

    clock.shift(0)
    assert soon(lambda: "The clock was set back" in owned.server.said())
    assert old.is_dead() and status(old_token) == 401
    assert not ahead.is_in(), "all sessions have ended"
    assert sign_in(old_link) == 401
    assert sign_in("a passphrase") == 401, "rate windows roll on"
    new_link, new_token, new = owned.link(), owned.grant("12h"), owned.arrive()
    assert soon(lambda: status(new_token) == status(new.access) == 200)
    assert new.is_in() and new.refresh() == 200
    for _ in range(4):  # in both workers
        assert status(lasting) == 200 and status(old_token) == 401

    clock.shift(MINUTES + 1)
    assert sign_in(new_link) == sign_in(ahead_link) == 401
    assert new.is_in() and status(new.access) == 200

    clock.shift(HOUR + 1)
    assert status(new.access) == status(ahead.access) == 401
    assert new.refresh() == 200
    assert old.is_dead() and status(old_token) == 401

    clock.shift(12 * HOUR + 10)
    assert soon(lambda: status(new_token) == 401)
    listed = re.findall("active|expired", owned.shell.ok("grant", "list").output)
    assert listed == ["expired", "active", "expired", "active", "expired", "active"]


def test_no_link_is_made_while_grants_cannot_be_ended(house: House) -> None:
    """It would live until the mark that is still to be set back."""
    mark = "2098-01-01T00:00:00.000000+00:00"
    house.grant(expires_at="2097-01-01T00:00:00Z")
    entries = Entries(open_sidecar(house.path))
    with entries.changing() as kept:
        kept.put("test", "", {}, seconds=1)
    with open_sidecar(house.path).transaction() as rows:
        rows("UPDATE access_clock SET seen = ?", mark)
    with being_written(house), pytest.raises(Unavailable, match="Another process"):
        Owner(entries).new_code()
    Owner(entries).new_code()
    with entries.reading() as kept, open_sidecar(house.path).transaction(writes=False) as rows:
        ((last,),) = rows("SELECT max(expires_at) FROM access_entry WHERE kind = 'link'")
        assert kept.now < last <= kept.now + LINK_SECONDS
