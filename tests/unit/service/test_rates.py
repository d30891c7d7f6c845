"""The counts of a worker's own rate limits."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.errors import RateLimited
from evidence.request_log import RequestLog
from service import settings
from service.access.rates import Rates


def test_a_limit_holds_for_each_token_and_counting_starts_no_thread() -> None:
    running = threading.active_count()
    rates = Rates(settings.load({"RUNG_STORE": "rung.db", "RUNG_RATE_LIMIT_TOKEN": "2/hour"}))
    assert [rates.opened("one", lambda: 1), rates.opened("one", lambda: 2)] == [1, 2]
    with pytest.raises(RateLimited):
        rates.opened("one", lambda: 3)
    assert rates.opened("another", lambda: 4) == 4
    assert threading.active_count() == running


class Clock:
    """Seconds since 1970, set by a test."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def budget(clock: Clock) -> Rates:
    return Rates(settings.load({"RUNG_STORE": "rung.db", "RUNG_WORK_SECONDS": "30"}), clock)


def refusal(rates: Rates, entry: RequestLog) -> RateLimited | None:
    try:
        rates.check_work(entry)
    except RateLimited as error:
        return error
    return None


#: (seconds until the next request, CPU seconds that it uses).
REQUESTS = st.lists(st.tuples(st.floats(0, 40), st.floats(0, 20)), max_size=12)


@given(start=st.floats(1e9, 1e9 + 60), requests=REQUESTS)
def test_a_budget_of_work_rolls_on_and_the_wait_it_names_is_enough(
    start: float, requests: list[tuple[float, float]]
) -> None:
    """The work of the fixed minute before counts by the part that is less than a minute ago."""
    clock, entry, done = Clock(start), RequestLog(payer="grant:g"), list[tuple[float, float]]()
    rates = budget(clock)
    for pause, seconds in requests:
        clock.now += pause
        minute, second = divmod(clock.now, 60)
        here, before = (
            sum(spent for at, spent in done if at // 60 == minute - ago) for ago in (0, 1)
        )
        used = here + before * (1 - second / 60)
        error = refusal(rates, entry)
        assert abs(used - 30) < 0.01 or (error is not None) == (used >= 30)
        if error is None:
            rates.charge(entry, seconds)
            done.append((clock.now, round(seconds, 3)))
            continue
        assert error.code == "rate_limited"
        assert abs(error.details["spent_seconds"] - used) < 0.1
        clock.now += error.details["retry_after"]
        assert refusal(rates, entry) is None
        assert error.details["retry_after"] <= 120


def test_each_payer_has_a_budget_and_unknown_addresses_share_one() -> None:
    rates = budget(Clock(1e9))
    for address in ("127.0.0.1", "10.0.0.7", "not an address"):
        rates.charge(RequestLog(address=address), 11.0)
    rates.charge(RequestLog(address="8.8.4.4"), 29.0)
    rates.charge(RequestLog(address="127.0.0.1", payer="grant:g"), 29.0)
    assert refusal(rates, RequestLog(address="192.168.0.9")) is not None
    others = (RequestLog(address="8.8.4.4"), RequestLog(payer="grant:g"))
    assert [refusal(rates, entry) for entry in others] == [None, None]
