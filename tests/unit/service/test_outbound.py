"""Downloads end in time, stay small, go nowhere else and tell nothing of where they went."""

import inspect
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from evidence.errors import EvidenceError, NotFound, TimedOut, TooLarge, Unavailable
from evidence.work import Deadline
from service.sources.remote import connections, outbound
from tests.helpers.asset_server import AssetServer, Mode, asset_server, certificate
from tests.helpers.memory import peak_growth

PATH = "/md/the text.md"
BODY = "Anfang, 中間, end. ".encode() * 4_000
SECONDS = 20.0
SHORT = 0.3
PATIENCE = 5.0
CAP = 8_000_000


@pytest.fixture
def server() -> Iterator[AssetServer]:
    with asset_server({PATH: BODY, "/small": b"small"}) as server:
        yield server


def fetch(
    server: AssetServer, path: str = PATH, *, seconds: float = SECONDS, cap: int = CAP
) -> bytes:
    return b"".join(outbound.download(f"{server.url}{path}", seconds=seconds, most_bytes=cap))


def failing(server: AssetServer, path: str = PATH, **bounds: float) -> EvidenceError:
    """The error of a download, which came soon and says nothing of the server."""
    patience = Deadline.after(PATIENCE)
    with pytest.raises(EvidenceError) as raised:
        fetch(server, path, **bounds)
    assert not patience.expired()
    shown = str(raised.value.body()).lower()
    for secret in ("127.0.0.1", "http", "/md", "the text", str(server.server_address[1])):
        assert secret not in shown
    return raised.value


def test_a_body_comes_whole(server: AssetServer) -> None:
    assert fetch(server) == BODY


def test_all_addresses_of_a_host_are_tried(server: AssetServer) -> None:
    url = server.url.replace("127.0.0.1", "localhost")
    assert b"".join(outbound.download(f"{url}/small", seconds=SECONDS, most_bytes=CAP)) == b"small"


def test_nothing_is_asked_for_before_the_first_piece_is(server: AssetServer) -> None:
    body = outbound.download(f"{server.url}{PATH}", seconds=SECONDS, most_bytes=CAP)
    assert server.paths == []
    assert b"".join(body) == BODY


def test_connections_are_kept(server: AssetServer) -> None:
    for _ in range(3):
        assert fetch(server, "/small") == b"small"
    assert len(server.connections) == 1


def test_threads_do_not_share_connections(server: AssetServer) -> None:
    threads = [threading.Thread(target=fetch, args=(server, "/small")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.connections) == 3


def test_what_is_not_there_is_not_found(server: AssetServer) -> None:
    assert isinstance(failing(server, "/md/other.md"), NotFound)


@pytest.mark.parametrize(
    "mode", ["500", "reset", "wrong_length", "redirect_other", "redirect_loop"]
)
def test_servers_that_fail_are_unavailable(server: AssetServer, mode: Mode) -> None:
    server.mode = mode
    error = failing(server)
    assert isinstance(error, Unavailable) and error.code == "upstream_unreachable"


def test_a_server_that_is_gone_is_unavailable(server: AssetServer) -> None:
    server.end()
    server.socket.close()
    assert failing(server).code == "upstream_unreachable"


@pytest.mark.parametrize("mode", ["stall", "drip_head", "drip_body", "drip_open"])
def test_no_server_holds_a_reader_past_the_deadline(server: AssetServer, mode: Mode) -> None:
    server.mode = mode
    error = failing(server, seconds=SHORT)
    assert isinstance(error, TimedOut) and error.code == "upstream_timeout"


def test_a_connection_that_is_kept_is_watched_too(server: AssetServer) -> None:
    assert fetch(server, "/small") == b"small"
    server.mode = "drip_head"
    assert failing(server, seconds=SHORT).code == "upstream_timeout"
    assert len(server.connections) == 1
    server.mode = "good"
    assert fetch(server) == BODY


def test_a_server_that_never_accepts_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(8)]
        for line in waiting:
            line.setblocking(False)
            line.connect_ex(address)
        url = f"http://127.0.0.1:{address[1]}/"
        with pytest.raises(TimedOut):
            b"".join(outbound.download(url, seconds=SHORT, most_bytes=CAP))
        for line in waiting:
            line.close()


def test_a_handshake_that_never_ends_is_given_up(server: AssetServer) -> None:
    server.mode = "stall"
    url = server.url.replace("http:", "https:")
    with pytest.raises(TimedOut):
        b"".join(outbound.download(url, seconds=SHORT, most_bytes=CAP))


def test_redirects_on_the_same_server_are_followed(server: AssetServer) -> None:
    server.mode = "redirect_same"
    assert fetch(server, f"/moved{PATH}".replace(" ", "%20")) == BODY
    assert len(server.paths) == 2


def test_at_most_three_redirects_are_followed(server: AssetServer) -> None:
    server.mode = "redirect_same"
    assert fetch(server, "/moved/moved/moved/small") == b"small"
    assert failing(server, "/moved/moved/moved/moved/small").code == "upstream_unreachable"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_redirect_leads_to_another_server(server: AssetServer, scheme: str) -> None:
    with asset_server({PATH: BODY}) as other:
        server.mode = "redirect_other"
        server.other = other.url.replace("http", scheme)
        assert failing(server).code == "upstream_unreachable"
        assert other.paths == []


def test_the_body_of_a_redirect_is_not_read(server: AssetServer) -> None:
    server.mode = "redirect_body"
    assert peak_growth(lambda: failing(server, "/small")) < 16 * 1_048_576


@pytest.mark.parametrize("mode", ["huge", "chunked_huge", "gzip_bomb"])
def test_a_huge_body_is_cut_off_without_filling_memory(server: AssetServer, mode: Mode) -> None:
    server.mode = mode
    assert isinstance(failing(server), TooLarge)
    assert peak_growth(lambda: failing(server)) < 16 * 1_048_576


def test_a_body_that_says_it_is_too_large_is_not_read(server: AssetServer) -> None:
    body = outbound.download(f"{server.url}{PATH}", seconds=SECONDS, most_bytes=len(BODY) - 1)
    with pytest.raises(TooLarge):
        next(body)
    assert fetch(server, cap=len(BODY)) == BODY


def test_the_cap_counts_decoded_bytes(server: AssetServer) -> None:
    server.mode = "gzip"
    assert fetch(server, cap=len(BODY)) == BODY
    assert server.headers[-1]["accept-encoding"] == "identity"
    assert isinstance(failing(server, cap=len(BODY) - 1), TooLarge)


def test_a_body_that_ends_with_its_connection_comes_whole(server: AssetServer) -> None:
    server.mode = "close"
    assert fetch(server) == BODY


def test_cookies_are_not_kept(server: AssetServer) -> None:
    server.mode = "cookie"
    for _ in range(2):
        fetch(server, "/small")
        assert "cookie" not in server.headers[-1]


def test_the_header_that_was_given_wins_over_netrc(
    server: AssetServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    fetch(server, "/small")
    assert "authorization" not in server.headers[-1]
    given = {"Authorization": "Bearer ours"}
    deadline = Deadline.after(SECONDS)
    url = f"{server.url}/small"
    outbound.ask("GET", url, deadline=deadline, most_bytes=CAP, headers=given)
    assert server.headers[-1]["authorization"] == "Bearer ours"


def test_credentials_of_the_address_are_sent(server: AssetServer) -> None:
    url = server.url.replace("//", "//reader:secret@")
    b"".join(outbound.download(f"{url}/small", seconds=SECONDS, most_bytes=CAP))
    assert server.headers[-1]["authorization"].startswith("Basic ")


def test_the_proxy_of_the_environment_is_used(
    server: AssetServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://papers.invalid/md/a.md"
    server.files = {url: b"through the proxy"}
    monkeypatch.setenv("http_proxy", server.url)
    assert b"".join(outbound.download(url, seconds=SECONDS, most_bytes=CAP)) == b"through the proxy"
    server.mode = "drip_head"
    with pytest.raises(TimedOut):
        b"".join(outbound.download(url, seconds=SHORT, most_bytes=CAP))


def test_the_certificates_of_the_environment_are_trusted_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tls = certificate(tmp_path)
    with asset_server({PATH: BODY}, tls=tls) as server:
        assert "certificate" in failing(server).message
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(path))
    with asset_server({PATH: BODY}, tls=tls) as server:
        assert fetch(server) == BODY
        server.mode = "drip_body"
        assert isinstance(failing(server, seconds=SHORT), TimedOut)


@pytest.mark.parametrize(
    "url", ["", "nonsense", "ftp://a/b", "http://", "http://a:x/", "http://*.a/"]
)
def test_what_is_no_address_is_unavailable(url: str) -> None:
    with pytest.raises(Unavailable):
        b"".join(outbound.download(url, seconds=SECONDS, most_bytes=CAP))


def test_every_fault_of_the_library_is_expected() -> None:
    raised = [
        error
        for _, error in inspect.getmembers(requests.exceptions, inspect.isclass)
        if issubclass(error, Exception) and not issubclass(error, Warning)
    ]
    assert len(raised) > 20
    assert [error for error in raised if not issubclass(error, connections.FAULTS)] == []


def test_no_connection_is_opened_if_one_address_of_a_host_is_not_accepted(
    server: AssetServer,
) -> None:
    url = server.url.replace("127.0.0.1", "localhost") + "/small"
    *_, last = (str(found[4][0]) for found in socket.getaddrinfo("localhost", 80))
    deadline = Deadline.after(SECONDS)
    with pytest.raises(Unavailable):
        with outbound.opened("GET", url, deadline=deadline, accepts=lambda one: one != last):
            pass
    assert server.connections == []


def test_a_connection_that_is_kept_is_not_used_if_addresses_are_checked(
    server: AssetServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fetch(server, "/small") == b"small"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    deadline = Deadline.after(SECONDS)
    with pytest.raises(Unavailable):
        with outbound.opened(
            "GET", f"{server.url}/small", deadline=deadline, accepts=lambda _: False
        ):
            pass
    with outbound.opened(
        "GET", f"{server.url}/small", deadline=deadline, accepts=lambda _: True
    ) as got:
        assert got.read(CAP) == b"small"
    assert len(server.connections) == 2
