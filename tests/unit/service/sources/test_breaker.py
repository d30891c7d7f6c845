"""An upstream that fails is left alone, and what waits on upstreams leaves threads for the rest."""

import threading

import pytest

from evidence.errors import EvidenceError, NotFound, TimedOut, TooLarge, Unavailable
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.breaker import Breaker
from service.sources.remote.origin import Bulkhead, Permit
from tests.helpers.waiting import WAIT_SECONDS


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(lambda seconds: Deadline.after(seconds, clock))


def ask(breaker: Breaker, error: Exception | None = None) -> None:
    with breaker.guard():
        if error is not None:
            raise error


def fail(breaker: Breaker, times: int = BUDGETS.breaker_failures) -> None:
    for _ in range(times):
        with pytest.raises(TimedOut):
            ask(breaker, TimedOut("slow"))


def refused(breaker: Breaker) -> Unavailable:
    with pytest.raises(Unavailable) as raised:
        with breaker.guard():
            pytest.fail("nobody is let in")
    return raised.value


def test_after_some_failures_in_a_row_nobody_asks(breaker: Breaker) -> None:
    fail(breaker, BUDGETS.breaker_failures - 1)
    ask(breaker)
    assert not breaker.is_open
    fail(breaker)
    assert breaker.is_open
    error = refused(breaker)
    assert error.code == "upstream_unreachable"
    assert error.details["retry_after"] == BUDGETS.breaker_seconds


@pytest.mark.parametrize("error", [NotFound("gone"), TooLarge("big")])
def test_a_server_that_answers_does_not_fail(breaker: Breaker, error: EvidenceError) -> None:
    for _ in range(2 * BUDGETS.breaker_failures):
        with pytest.raises(type(error)):
            ask(breaker, error)
    ask(breaker)


def test_after_a_while_one_request_tries(breaker: Breaker, clock: Clock) -> None:
    fail(breaker)
    clock.now += BUDGETS.breaker_seconds
    with breaker.guard():
        assert refused(breaker).details["retry_after"] >= 1
    ask(breaker)


def test_a_try_that_fails_closes_the_way_again(breaker: Breaker, clock: Clock) -> None:
    fail(breaker)
    clock.now += BUDGETS.breaker_seconds
    fail(breaker, 1)
    refused(breaker)
    clock.now += BUDGETS.breaker_seconds
    ask(breaker)


def test_a_try_that_was_given_up_lets_another_one_try(breaker: Breaker, clock: Clock) -> None:
    fail(breaker)
    clock.now += BUDGETS.breaker_seconds
    with pytest.raises(KeyboardInterrupt), breaker.guard():
        raise KeyboardInterrupt
    ask(breaker)


def test_some_threads_never_wait() -> None:
    bulkhead = Bulkhead(threads=4)
    first, second, third = Permit(bulkhead), Permit(bulkhead), Permit(bulkhead)
    with first, second:
        with pytest.raises(Unavailable) as raised:
            with third:
                pytest.fail("no permit is free")
        assert raised.value.code == "upstream_busy"
        assert raised.value.details["retry_after"] == 1
    with third, first:
        pass


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_one_request_may_always_wait(threads: int) -> None:
    with Permit(Bulkhead(threads)):
        pass


def test_all_parts_of_a_request_share_its_seat() -> None:
    bulkhead = Bulkhead(threads=1)
    mine, other = Permit(bulkhead), Permit(bulkhead)
    inside, leave = threading.Barrier(9), threading.Event()

    def part() -> None:
        with mine:
            inside.wait(WAIT_SECONDS)
            leave.wait(WAIT_SECONDS)

    parts = [threading.Thread(target=part) for _ in range(8)]
    for each in parts:
        each.start()
    inside.wait(WAIT_SECONDS)
    with pytest.raises(Unavailable):
        other.__enter__()
    leave.set()
    for each in parts:
        each.join()
    with other:
        pass
