"""The end of a request is found however its bytes are split."""

import pytest
from gunicorn.http.errors import LimitRequestHeaders
from hypothesis import given, strategies as st

from evidence.limits import BUDGETS
from service.running.connection import BodyTooLarge, RequestBuffer

LINE = b"POST /mcp HTTP/1.1\r\nHost: x\r\n"
CHUNKED = LINE + b"Transfer-Encoding: Chunked\r\n\r\n"
WHOLE = [
    b"GET / HTTP/1.0\r\n\r\n",
    b"\r\n" + LINE + b"\r\n",
    LINE + b"content-length:  5 \r\n\r\nhello",
    LINE + b"Content-Length: 0\r\n\r\n",
    CHUNKED + b"0\r\n\r\n",
    CHUNKED + b"5\r\nhello\r\nA;name=value\r\n\r\n0\r\n\r\n123\r\n0\r\n\r\n",
    CHUNKED + b"1\r\n \r\n000\r\nTrailer: one\r\nMore: two\r\n\r\n",
    LINE + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
]
#: The parser refuses these; it gets them although no body is complete.
ODD = [
    b"GET / HTTP/1.1\n",
    b"GET /" + b"x" * 9_000,
    LINE + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
    LINE + b"Content-Length: -1\r\n\r\n",
    LINE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    LINE + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    LINE + b"Content-Length: 1\r\nExpect: more\r\n\r\n",
    LINE + b"Content-Length: 1048577\r\n\r\n",
    CHUNKED + b"not a size\r\n",
    CHUNKED + b"5" * 9_000,
    CHUNKED + b"100001\r\n" + b"x" * 1_048_577,
]


def feed(sent: bytes, cuts: set[int]) -> tuple[RequestBuffer, int]:
    """The buffer, and how many bytes it took until it was ready or refused."""
    buffer, start = RequestBuffer(BUDGETS, 8_190), 0
    for stop in sorted({cut for cut in cuts if 0 < cut < len(sent)} | {len(sent)}):
        buffer.feed(sent[start:stop])
        start = stop
        if buffer.ready or buffer.refusal:
            break
    return buffer, start


@given(sent=st.sampled_from(WHOLE), cuts=st.sets(st.integers(1, 200)))
def test_a_request_is_complete_with_its_last_byte(sent: bytes, cuts: set[int]) -> None:
    buffer, taken = feed(sent, cuts)
    assert (taken, buffer.ready, buffer.complete) == (len(sent), True, True)
    assert bytes(buffer.data) == sent


@pytest.mark.parametrize("sent", WHOLE)
def test_the_bytes_of_the_next_request_are_kept(sent: bytes) -> None:
    buffer, _ = feed(sent + WHOLE[0], set())
    assert buffer.complete and bytes(buffer.data) == sent + WHOLE[0]


@pytest.mark.parametrize("sent", ODD)
@pytest.mark.parametrize("step", [1, 65_536])
def test_what_the_parser_refuses_does_not_wait_for_more(sent: bytes, step: int) -> None:
    step = step if len(sent) < 10_000 else 65_536
    buffer, _ = feed(sent, set(range(0, len(sent), step)))
    assert buffer.ready and not buffer.complete and buffer.refusal is None


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (LINE + b"X: x\r\n" * 20_000, LimitRequestHeaders),
        (CHUNKED + (b"1;" + b"x" * 5_000 + b"\r\n \r\n") * 500, BodyTooLarge),
    ],
)
def test_a_head_and_the_framing_of_chunks_are_bounded(sent: bytes, error: type[Exception]) -> None:
    buffer, _ = feed(sent, set(range(0, len(sent), 4_096)))
    assert not buffer.ready and isinstance(buffer.refusal, error)


def test_a_body_has_to_come_at_its_rate() -> None:
    buffer = RequestBuffer(BUDGETS, 8_190)
    buffer.feed(LINE + b"Content-Length: 1000000\r\n\r\n")
    first = buffer.body_deadline().at
    buffer.feed(b" " * BUDGETS.body_rate_bytes)
    assert buffer.body_deadline().at == pytest.approx(first + 1)
    buffer.feed(b" " * 500_000)
    rest = BUDGETS.body_seconds - BUDGETS.body_grace_seconds
    assert buffer.body_deadline().at == pytest.approx(first + rest)
