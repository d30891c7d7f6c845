"""A served store with sign-in, the browser of its owner, and a client that registered itself."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from tests.helpers import worlds
from tests.helpers.asset_server import AssetServer, asset_server, certificate
from tests.helpers.server import serving
from tests.helpers.signin import REDIRECT, Browser, Client, new_code
from tests.helpers.worlds import House

WORKERS = 2
PROXIED = {"RUNG_TRUSTED_PROXY_HOPS": "1"}
#: Of documents that clients publish.
PATH = "/oauth/client.json"
JSON = "Content-Type: application/json"
ON = {**PROXIED, "RUNG_SIGN_IN": "on"}


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
    found = Browser(base, house.path)
    assert found.sign_in(new_code(house.path)).status_code == 200
    return found


@pytest.fixture
def client(base: str) -> Client:
    return Client(base).register()


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AssetServer]:
    """The site of an application, by https on loopback."""
    folder = tmp_path_factory.mktemp("site")
    trusted, tls = certificate(folder)
    with asset_server({}, tls=tls) as server:
        server.other = str(trusted)
        yield server


@pytest.fixture(scope="module")
def served(house: House, publisher: AssetServer) -> Iterator[str]:
    own = {"RUNG_CLIENT_DOCUMENTS": "loopback", "REQUESTS_CA_BUNDLE": publisher.other}
    proxy = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}
    with serving("wsgi:app", {**house.environment, **ON, **own, **proxy}, workers=2) as found:
        yield found


@pytest.fixture
def nothing_kept(house: House) -> None:
    """No document was fetched yet."""
    with Entries(open_sidecar(house.path)).changing() as kept:
        kept.end("document", "")
        kept.end("rate document", "")


def published(server: AssetServer, **changes: Any) -> str:
    """The URL of a document."""
    url = server.url + PATH
    document = {"client_id": url, "client_name": "Notebook", "redirect_uris": [REDIRECT]}
    sent = {key: value for key, value in {**document, **changes}.items() if value is not None}
    server.mode, server.header, server.paths[:] = "good", JSON, []
    server.files = {PATH: orjson.dumps(sent)}
    return url
