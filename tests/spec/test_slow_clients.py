"""Clients that send half a request, or do not read their answer, do not delay other clients."""

import re
import select
import socket
from collections.abc import Iterator
from time import monotonic
from time import sleep as pause

import orjson
import pytest

from evidence.limits import BUDGETS
from tests.helpers import slow_clients as slow
from tests.helpers import worlds
from tests.helpers.operated import Operated, operated
from tests.helpers.slow_clients import BOUNDS
from tests.helpers.worlds import House

EACH = 100
#: The worker checks deadlines every half second, and the machine may be busy.
LATE = 4.0
IMPATIENT = "python:tests.helpers.impatient"
#: The memory for unsent answers, and a little for each connection.
GROWTH_BYTES = BUDGETS.unsent_bytes + 8_000_000
#: From the first bytes until the connection ends.
ENDS_AFTER = {
    "silent": BOUNDS.head_seconds,
    "half a head": BOUNDS.head_seconds,
    "half a body": BOUNDS.body_grace_seconds,
    "half a chunk": BOUNDS.body_grace_seconds,
    "dripping a body": BOUNDS.body_grace_seconds,
    "never reading": BOUNDS.answer_window_seconds,
    "idle": BOUNDS.idle_seconds,
}
ANSWERED = ("half a head", "half a body", "half a chunk", "dripping a body")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(slow.world(), tmp_path_factory.mktemp("slow"))


@pytest.fixture(scope="module")
def token(house: House) -> str:
    return house.grant()[1]


@pytest.fixture
def server(house: House) -> Iterator[Operated]:
    """As in production."""
    with operated(house.environment, workers=1, threads=2) as found:
        yield found


@pytest.fixture
def impatient(house: House) -> Iterator[Operated]:
    with operated(house.environment, workers=1, threads=2, config=IMPATIENT) as found:
        yield found


def test_others_are_answered_while_hundreds_of_clients_are_slow(
    server: Operated, token: str
) -> None:
    with slow.crowd(server, token, ["never reading"], 1):
        slow.seconds_of_health(server)
    before = slow.private_bytes(server)
    with slow.crowd(server, token, [*slow.KINDS], EACH):
        seconds = [slow.seconds_of_health(server) for _ in range(10)]
        grown = slow.private_bytes(server) - before
    assert max(seconds) < 1.0, seconds
    assert grown < GROWTH_BYTES


@pytest.mark.parametrize("kind", slow.KINDS)
def test_a_slow_client_is_disconnected_after_its_time(
    impatient: Operated, token: str, kind: str
) -> None:
    with slow.crowd(impatient, token, [kind], 1) as (line,):
        began, received = monotonic(), b""
        if kind == "never reading":
            ended = _reset(line)
        else:
            received = _drip(line) if kind == "dripping a body" else line.recv(4_096)
            ended = monotonic()
    assert ENDS_AFTER[kind] - 0.1 < ended - began < ENDS_AFTER[kind] + LATE
    if kind in ANSWERED:
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ") and b"\r\nConnection: close\r\n" in head
        assert orjson.loads(body)["error"]["code"] == "request_timeout"
    else:
        assert not received


def _reset(line: socket.socket) -> float:
    """The time when the server ended the connection, without reading from it."""
    ended = select.poll()
    ended.register(line, 0)  # errors only
    assert ended.poll(20_000)
    return monotonic()


def _drip(line: socket.socket) -> bytes:
    """The server's answer to a client that sends a byte every tenth of a second."""
    line.settimeout(0.1)
    until = monotonic() + 20
    while monotonic() < until:
        line.sendall(b" ")
        try:
            return line.recv(4_096)
        except TimeoutError:
            continue
    raise AssertionError("the server waits for ever")


# Clients that are slow, but not too slow.


def test_a_download_at_a_modest_rate_is_not_cut_off(impatient: Operated, token: str) -> None:
    """It takes several of the intervals in which the rate is measured."""
    with slow.connect(impatient) as line:
        line.sendall(slow.blob_request(token, close=True))
        received, began = bytearray(), monotonic()
        while monotonic() - began < 4 * BOUNDS.answer_window_seconds:
            received += line.recv(65_536)
            pause(0.02)
        while piece := line.recv(1_048_576):
            received += piece
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and body == slow.CONTENT


def test_a_body_at_a_modest_rate_is_answered(impatient: Operated) -> None:
    """It takes longer than a body below the required rate may."""
    piece = b" " * (BOUNDS.body_rate_bytes // 2)
    pieces = [b'{"q": "x"}', *[piece] * 10]
    with slow.connect(impatient) as line:
        line.sendall(slow.HEAD + b"Content-Length: %d\r\n\r\n" % sum(map(len, pieces)))
        for piece in pieces:
            line.sendall(piece)
            pause(0.2)
        assert line.recv(4_096).startswith(b"HTTP/1.1 401")


def test_an_answer_that_was_begun_is_sent_whole_by_a_server_that_stops(
    server: Operated, token: str
) -> None:
    with slow.connect(server) as line:
        line.sendall(slow.blob_request(token))
        received = bytearray(line.recv(4_096))
        server.stop()
        while "Handling signal: term" not in server.said() or len(received) < 1_000_000:
            received += line.recv(4_096)
            pause(0.01)
        while piece := line.recv(1_048_576):
            received += piece
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: %d\r\n" % slow.BLOB_BYTES in head + b"\r\n"
    assert body == slow.CONTENT


# Bounds of all clients together.


def test_more_clients_than_connections_keep_nobody_out(impatient: Operated, token: str) -> None:
    with slow.crowd(impatient, token, ["silent", "half a body", "idle"], EACH):
        assert max(slow.seconds_of_health(impatient) for _ in range(10)) < 1.0


def test_half_sent_bodies_are_refused_before_they_fill_the_memory(
    impatient: Operated, token: str
) -> None:
    slow.seconds_of_health(impatient)
    before = slow.private_bytes(impatient)
    head = slow.HEAD + b"Content-Length: 1000000\r\n\r\n"
    with slow.crowd(impatient, token, ["silent"], 40) as lines:
        for line in lines:
            line.sendall(head + b" " * 900_000)
        assert slow.seconds_of_health(impatient) < 1.0
        grown = slow.private_bytes(impatient) - before
        first = lines[0].recv(4_096)
        small = slow.HEAD + b"Content-Length: 10\r\nConnection: close\r\n\r\n"
        with slow.connect(impatient) as line:
            line.sendall(small + b'{"q": "x"}')
            assert line.recv(4_096).startswith(b"HTTP/1.1 401")
    assert first.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in first
    assert orjson.loads(first.partition(b"\r\n\r\n")[2])["error"]["code"] == "overloaded"
    assert grown < 4 * BOUNDS.received_bytes


# Requests that arrive in unusual pieces.


def test_requests_in_one_packet_are_answered_in_their_order(server: Operated) -> None:
    body = b'{"q": "x"}'
    posted = slow.HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    chunked = slow.HEAD + b"Transfer-Encoding: chunked\r\n\r\na;x=y\r\n" + body + b"\r\n0\r\n\r\n"
    asked = slow.KINDS["idle"]
    last = b"GET /healthz HTTP/1.0\r\n\r\n"
    with slow.connect(server) as line:
        line.sendall(asked + posted + chunked + asked + posted + last)
        received = line.makefile("rb").read()
    statuses = re.findall(rb"HTTP/1\.[01] (\d+) ", received)
    assert statuses == [b"200", b"401", b"401", b"200", b"401", b"200"]


def test_a_client_is_asked_for_its_body_once(server: Operated) -> None:
    head = slow.HEAD + b"Connection: close\r\nExpect: 100-Continue\r\n"
    with slow.connect(server) as line:
        line.sendall(head + b"Content-Length: 10\r\n\r\n")
        assert line.recv(4_096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(b'{"q": "x"}')
        assert line.makefile("rb").read().startswith(b"HTTP/1.1 401")
    with slow.connect(server) as line:
        line.sendall(head + b"Content-Length: 10000000\r\n\r\n")
        assert line.makefile("rb").read().startswith(b"HTTP/1.1 401")
