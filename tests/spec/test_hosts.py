"""`Host` is checked on every route: no page can rebind its name to this machine and read."""

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson
import pytest

from tests.helpers import worlds
from tests.helpers.server import serving
from tests.helpers.snapshots import DATA

EVIL = "evil.example:8000"
PUBLIC = "https://rung.example.com"
ROUTES = (
    "/",
    "/connect",
    "/try",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/llms.txt",
    "/docs/api",
    "/v1/schema",
    "/papers/v1/search?q=tides",
    "/static/pages/x/site.css",
    "/nowhere",
)
OWN = (
    "localhost",
    "localhost:8000",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "127.0.0.1:9",
    "127.9.9.9",
    "[::1]:8000",
    "10.0.0.7:8000",
)
LIST_TOOLS = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


class Site:
    """A server, reached over a socket under a given name."""

    def __init__(self, url: str, token: str) -> None:
        self.address, self.token = urlsplit(url).netloc, token

    def ask(self, path: str, host: str, verb: str = "GET", **headers: str) -> tuple[int, str]:
        """(status, code of the error) of a request."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.putrequest(verb, path, skip_host=True)
            sent = {"Host": host, "Authorization": f"Bearer {self.token}", **headers}
            if verb == "POST":
                sent |= {"Content-Type": "application/json", "Content-Length": str(len(LIST_TOOLS))}
            for name, value in sent.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(LIST_TOOLS if verb == "POST" else None)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        body = orjson.loads(raw) if is_json and raw else {}
        error = body.get("error", {}) if isinstance(body, dict) else {}
        return response.status, str(error.get("data", error).get("code", ""))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("hosts"))


def site(house: worlds.House, **environ: str) -> Iterator[Site]:
    papers = {"RUNG_PAPERS_DB": str(DATA / "papers" / "snapshot.db")}
    with serving("service.app:create_app()", {**house.environment, **papers, **environ}) as url:
        yield Site(url, house.grant()[1])


@pytest.fixture(scope="module")
def plain(house: worlds.House) -> Iterator[Site]:
    yield from site(house)


@pytest.fixture(scope="module")
def public(house: worlds.House) -> Iterator[Site]:
    yield from site(house, RUNG_PUBLIC_URL=PUBLIC, RUNG_TRUSTED_PROXY_HOPS="1")


@pytest.fixture(scope="module")
def proxied(house: worlds.House) -> Iterator[Site]:
    yield from site(house, RUNG_TRUSTED_PROXY_HOPS="1")


@pytest.fixture(scope="module")
def restricted(house: worlds.House) -> Iterator[Site]:
    yield from site(house, RUNG_ALLOWED_HOSTS="api.example", RUNG_PUBLIC_URL=PUBLIC)


REFUSED = (403, "host_not_allowed")


@pytest.mark.parametrize("path", ROUTES)
def test_a_name_that_was_rebound_to_loopback_reads_nothing(plain: Site, path: str) -> None:
    assert plain.ask(path, EVIL) == REFUSED
    assert plain.ask(path, EVIL, X_Forwarded_For="203.0.113.9") == REFUSED


@pytest.mark.parametrize("path", ["/mcp", "/mcp/papers", "/v1/search"])
def test_nor_does_it_post(plain: Site, path: str) -> None:
    assert plain.ask(path, EVIL, "POST") == REFUSED
    assert plain.ask(path, "localhost", "POST")[0] in (200, 400)


@pytest.mark.parametrize("host", OWN)
def test_own_names_and_addresses_pass_on_loopback(plain: Site, host: str) -> None:
    for path in ("/healthz", "/v1/schema"):
        assert plain.ask(path, host) == (200, "")
    assert plain.ask("/mcp", host, "POST") == (200, "")


def test_a_health_check_without_a_host_passes(plain: Site, restricted: Site) -> None:
    """A load balancer may speak HTTP/1.0. No browser leaves `Host` out."""
    for one in (plain, restricted):
        name, port = one.address.split(":")
        with socket.create_connection((name, int(port)), timeout=20) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert connection.recv(64).split()[1] == b"200"


@pytest.mark.parametrize("host", ["127.0.0.1.evil.example", "localhost.evil.example", "1.2.3.4.5"])
def test_a_name_that_only_looks_like_ours_is_refused(plain: Site, host: str) -> None:
    assert plain.ask("/v1/schema", host) == REFUSED


def test_the_checks_of_mcp_keep_their_order(plain: Site) -> None:
    foreign = {"Origin": "https://evil.example"}
    assert plain.ask("/mcp", EVIL, "POST", **foreign) == (403, "origin_not_allowed")
    assert plain.ask("/mcp", EVIL) == (405, "method_not_allowed")
    assert plain.ask("/mcp", EVIL, "POST", Authorization="Bearer x") == REFUSED


def test_a_proxy_on_this_machine_passes_on_the_public_name(public: Site) -> None:
    for host in ("rung.example.com", "rung.example.com:443", "RUNG.example.com", *OWN):
        assert public.ask("/v1/schema", host) == (200, ""), host
        assert public.ask("/mcp", host, "POST") == (200, ""), host
    client = {"X_Forwarded_For": "203.0.113.9"}
    assert public.ask("/v1/schema", "rung.example.com", **client) == (200, "")
    assert public.ask("/v1/schema", EVIL, **client) == REFUSED
    assert public.ask("/mcp", EVIL, "POST", **client) == REFUSED


def test_behind_a_trusted_proxy_without_a_public_address_any_name_passes(proxied: Site) -> None:
    for host in ("my-rung.herokuapp.com", "localhost"):
        assert proxied.ask("/v1/schema", host, X_Forwarded_For="203.0.113.9") == (200, "")


def test_named_hosts_are_the_only_ones_on_every_route(restricted: Site) -> None:
    for host in ("api.example", "api.example:1", "rung.example.com", "10.0.0.7:8000"):
        assert restricted.ask("/healthz", host) == (200, ""), host
        assert restricted.ask("/v1/schema", host) == (200, ""), host
    for host in ("localhost", EVIL):
        for path in ROUTES:
            assert restricted.ask(path, host) == REFUSED, (path, host)


def test_a_client_elsewhere_may_use_any_name(house: worlds.House) -> None:
    client = house.application().test_client()
    for peer, status in (("192.0.2.7", 200), ("127.0.0.1", 403), ("::1", 403), ("", 200)):
        answer = client.get(
            "/healthz", headers={"Host": EVIL}, environ_overrides={"REMOTE_ADDR": peer}
        )
        assert answer.status_code == status, peer
