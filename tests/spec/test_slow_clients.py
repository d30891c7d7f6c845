"""Clients that send half a request, or do not read their answer, hold up nobody else."""

import select
import socket
from collections.abc import Iterator
from time import monotonic

import orjson
import pytest

from tests.helpers import slow_clients as slow
from tests.helpers import worlds
from tests.helpers.operated import Operated, operated
from tests.helpers.slow_clients import BOUNDS
from tests.helpers.worlds import House

EACH = 100
#: The worker checks deadlines every half second, and this machine may be busy.
LATE = 4.0
IMPATIENT = "python:tests.helpers.impatient"
GROWTH_BYTES = 30_000_000
#: After the first bytes, until the connection ends.
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
    """When the server ended the connection, without reading from it."""
    ended = select.poll()
    ended.register(line, 0)  # errors only
    assert ended.poll(20_000)
    return monotonic()


def _drip(line: socket.socket) -> bytes:
    """What the server answered to a byte every tenth of a second."""
    line.settimeout(0.1)
    until = monotonic() + 20
    while monotonic() < until:
        line.sendall(b" ")
        try:
            return line.recv(4_096)
        except TimeoutError:
            continue
    raise AssertionError("the server waits for ever")
