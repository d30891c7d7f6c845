"""A trace is continued where a `traceparent` is one, and begins anew where it is none."""

import pytest

from evidence import request_log
from evidence.request_log import RequestLog, Trace, continued

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{PARENT}-01"


@pytest.mark.parametrize(
    "told", [GOOD, f" {GOOD} ", f"cc-{TRACE}-{PARENT}-01", f"cc{GOOD[2:]}-more"]
)
def test_a_trace_is_continued_with_a_span_of_our_own(told: str) -> None:
    trace = continued(told)
    assert trace is not None and trace.trace_id == TRACE and trace.span_id != PARENT
    assert trace.header == f"00-{TRACE}-{trace.span_id}-01"


@pytest.mark.parametrize(
    "told",
    [
        *(None, 7, "", "00", GOOD.upper(), f"{GOOD}-more", f"ff{GOOD[2:]}", GOOD[:-1], "0" * 55),
        *(f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01", f"cc{GOOD[2:]}-{'x' * 600}"),
    ],
)
def test_what_is_no_traceparent_continues_nothing(told: object) -> None:
    assert continued(told) is None


def test_flags_other_than_sampled_are_not_passed_on() -> None:
    found = continued(f"00-{TRACE}-{PARENT}-fe")
    assert found is not None and found.header.endswith("-00")


def test_a_trace_that_begins_here_can_be_continued() -> None:
    begun = Trace.begun()
    assert begun != Trace.begun()
    found = continued(begun.header)
    assert found is not None and found.trace_id == begun.trace_id


def test_the_header_wins_over_the_message() -> None:
    in_header, in_message = continued(GOOD), f"00-{'c' * 32}-{PARENT}-01"
    assert in_header is not None
    traced, untraced = RequestLog(trace=in_header, traced=True), RequestLog()
    traced.join(in_message)
    untraced.join(in_message)
    untraced.join("nonsense")
    assert (traced.trace.trace_id, untraced.trace.trace_id) == (TRACE, "c" * 32)


def test_an_account_is_there_while_it_is_open() -> None:
    request_log.end()
    assert request_log.headers() == {}
    opened = RequestLog("req_1")
    request_log.begin(opened)
    try:
        assert request_log.current() is opened
        assert request_log.headers() == {"Request-Id": "req_1", "traceparent": opened.trace.header}
    finally:
        request_log.end()
    assert request_log.current() is not opened and request_log.headers() == {}
