"""A trace is continued where a `traceparent` is one, and begins anew where it is none."""

import pytest

from evidence import account
from evidence.account import Account, Trace, continued

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
    told, untold = Account(trace=in_header, told=True), Account()
    told.join(in_message)
    untold.join(in_message)
    untold.join("nonsense")
    assert (told.trace.trace_id, untold.trace.trace_id) == (TRACE, "c" * 32)


def test_an_account_is_there_while_it_is_open() -> None:
    account.end()
    assert account.headers() == {}
    opened = Account("req_1")
    account.begin(opened)
    try:
        assert account.current() is opened
        assert account.headers() == {"Request-Id": "req_1", "traceparent": opened.trace.header}
    finally:
        account.end()
    assert account.current() is not opened and account.headers() == {}
