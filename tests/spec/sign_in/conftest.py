"""A served store with sign-in, the browser of its owner, and a client that registered itself."""

from collections.abc import Iterator

import pytest

from tests.helpers import worlds
from tests.helpers.server import serving
from tests.helpers.signin import Browser, Client, new_code
from tests.helpers.worlds import House

WORKERS = 2
PROXIED = {"RUNG_TRUSTED_PROXY_HOPS": "1"}


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="package")
def base(house: House) -> Iterator[str]:
    environ = {**house.environment, **PROXIED, "RUNG_SIGN_IN": "on"}
    with serving("wsgi:app", environ, workers=WORKERS) as found:
        yield found


@pytest.fixture
def browser(base: str, house: House) -> Browser:
    found = Browser(base)
    assert found.sign_in(new_code(house.path)).status_code == 303
    return found


@pytest.fixture
def client(base: str) -> Client:
    return Client(base).register()
