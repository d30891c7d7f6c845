"""One question to one server: any status is an answer, and nothing goes anywhere else."""

import gzip
import socket
import threading
from pathlib import Path

import pytest

from evidence.errors import TimedOut, TooLarge, Unavailable
from evidence.work import Deadline
from service.sources.remote import outbound
from service.sources.remote.outbound import Answer, Cut
from tests.helpers.asset_server import Mode, asset_server
from tests.helpers.loopback import Asked, Loopback, Reply, answering
from tests.helpers.memory import peak_growth

BODY = '{"words": "東京 and more"}'.encode()
CAP = 1_000_000
TOKEN = "a-very-secret-token"


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds)


def ask(server: Loopback, path: str = "/v1/x", method: str = "GET", **more: object) -> Answer:
    given = {"deadline": soon(), "most_bytes": CAP, **more}
    return outbound.ask(method, server.url + path, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [200, 204, 401, 404, 409, 429, 500, 503])
def test_any_status_is_an_answer(status: int) -> None:
    body = b"" if status == 204 else BODY
    with answering(lambda asked: Reply(status, body, {"X-One": "1"})) as server:
        answer = ask(server)
    assert (answer.status, answer.body, answer.headers["x-oNE"]) == (status, body, "1")


def test_parameters_headers_and_forms_arrive_as_they_were_given() -> None:
    with answering(lambda asked: Reply()) as server:
        ask(server, params=[("fields", "a b"), ("fields", "c&d"), ("filter[x][gte]", "1+1")])
        ask(server, headers={"Authorization": f"Bearer {TOKEN}"})
        ask(server, method="POST", data={"token": "t&="})
    first, second, third = server.asked
    assert first.target == "/v1/x?fields=a+b&fields=c%26d&filter%5Bx%5D%5Bgte%5D=1%2B1"
    assert second.token == TOKEN
    assert (third.method, third.body) == ("POST", b"token=t%26%3D")


def test_a_percent_encoded_segment_stays_one() -> None:
    with answering(lambda asked: Reply()) as server:
        ask(server, "/v1/streams/a%2Fb/records/%252F%3F%23%2E%2E%2Fx")
    assert server.asked[0].target == "/v1/streams/a%2Fb/records/%252F%3F%23..%2Fx"


def test_compressed_bodies_count_as_what_they_hold() -> None:
    body, packed = BODY * 99, {"Content-Encoding": "gzip"}
    with answering(lambda asked: Reply(200, gzip.compress(body), packed)) as server:
        assert ask(server, most_bytes=len(body)).body == body
        with pytest.raises(TooLarge):
            ask(server, most_bytes=len(body) - 1)


def test_a_head_has_no_body_however_long_it_says_it_is() -> None:
    length = {"Content-Length": str(10**12)}
    with answering(lambda asked: Reply(200, b"", length)) as server:
        answer = ask(server, method="HEAD", most_bytes=0)
    assert answer.headers["Content-Length"] == str(10**12)


@pytest.mark.parametrize("target", ["/v1/y", "http://127.0.0.1:9/v1/x", "https://example.invalid/"])
def test_redirects_are_not_followed(target: str) -> None:
    with answering(lambda asked: Reply(302, b"", {"Location": target})) as server:
        with pytest.raises(Unavailable) as raised:
            ask(server)
    assert raised.value.code == "upstream_invalid_response"
    assert len(server.asked) == 1 and target not in str(raised.value.body())


def test_a_server_that_hangs_up_may_be_asked_again() -> None:
    with answering(lambda asked: Reply()) as server:
        url = server.url
        ask(server)
    with pytest.raises(Cut):
        outbound.ask("GET", url, deadline=soon(), most_bytes=CAP)


@pytest.mark.parametrize("mode", ["stall", "drip_head", "drip_body", "drip_open"])
def test_no_server_holds_an_asker_past_the_deadline(mode: Mode) -> None:
    with asset_server({"/x": BODY * 999}, mode) as server, pytest.raises(TimedOut) as raised:
        outbound.ask("GET", f"{server.url}/x", deadline=soon(0.3), most_bytes=CAP)
    assert raised.value.code == "upstream_timeout"


@pytest.mark.parametrize("mode", ["gzip_bomb", "huge", "chunked_huge"])
def test_a_huge_body_does_not_fill_memory(mode: Mode) -> None:
    with asset_server({"/x": BODY}, mode) as server:

        def refused() -> None:
            with pytest.raises(TooLarge):
                outbound.ask("GET", f"{server.url}/x", deadline=soon(), most_bytes=CAP)

        refused()
        assert peak_growth(refused) < 16 * 1_048_576


def test_a_passed_deadline_asks_nobody() -> None:
    with answering(lambda asked: Reply()) as server, pytest.raises(TimedOut):
        ask(server, deadline=soon(0))
    assert server.asked == []


def test_neither_cookies_nor_netrc_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with answering(lambda asked: Reply(200, b"", {"Set-Cookie": "a=b; Path=/"})) as server:
        for _ in range(2):
            ask(server, headers={"Authorization": f"Bearer {TOKEN}"})
        ask(server)
    assert [asked.token for asked in server.asked] == [TOKEN, TOKEN, ""]
    assert not any("cookie" in asked.headers for asked in server.asked)


def test_a_token_that_cannot_be_sent_stands_in_no_error() -> None:
    with answering(lambda asked: Reply()) as server, pytest.raises(Unavailable) as raised:
        ask(server, headers={"Authorization": f"Bearer {TOKEN}\n"})
    error: BaseException | None = raised.value
    assert TOKEN not in repr(error) and error is not None and error.__suppress_context__


def test_connections_are_kept_by_thread() -> None:
    with answering(lambda asked: Reply(200, BODY)) as server:
        for _ in range(3):
            ask(server)
        thread = threading.Thread(target=ask, args=(server,))
        thread.start()
        thread.join()
        assert len(server.lines) == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_kept_connection_that_proves_dead_is_replaced(method: str) -> None:
    def answer(asked: Asked) -> Reply:
        if len(server.asked) == 2:  # the second request over the first connection
            server.lines[0].shutdown(socket.SHUT_RDWR)
        return Reply(200, b"" if method == "HEAD" else BODY)

    with answering(answer) as server:
        assert ask(server, method=method).status == 200
        assert ask(server, method=method).status == 200
    assert len(server.lines) == 2 and len(server.asked) == 3


def test_a_new_connection_that_proves_dead_is_an_error() -> None:
    def answer(asked: Asked) -> Reply:
        server.lines[-1].shutdown(socket.SHUT_RDWR)
        return Reply()

    with answering(answer) as server, pytest.raises(Cut):
        ask(server)
    assert len(server.asked) == 1


def test_a_body_can_be_read_in_pieces() -> None:
    with answering(lambda asked: Reply(206, BODY * 9_999)) as server:
        with outbound.opened("GET", server.url, deadline=soon()) as found:
            pieces = list(found.pieces(CAP))
    assert found.status == 206 and b"".join(pieces) == BODY * 9_999 and len(pieces) > 1
