"""The counts of a worker's own rate limits."""

import threading

import pytest

from evidence.errors import RateLimited
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
