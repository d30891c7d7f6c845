"""Units of local time, beside the calendar of each time by itself."""

from itertools import product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.records.reading.local_time import DAY, MINUTE, SPAN, Clock, key
from tests.helpers.local_times import CHANGES, ZONES, bucket, micros, text

UNITS = ("minute", "hour", "day")


def unit_of(clock: Clock, time: int) -> int:
    """The local unit that a time is in."""
    (offset,) = [offset for begin, offset in clock.offsets if begin <= time][-1:]
    return (time + offset) // clock.unit


def check(times: list[int], granularity: str, zone: str) -> None:
    """Each time has the unit of the calendar, and is in the spans of its unit alone."""
    clock = Clock(granularity, ZoneInfo(zone), {time // SPAN for time in times})
    units = {time: unit_of(clock, time) for time in times}
    for time, unit in units.items():
        assert key(granularity, unit) == bucket(text(time), granularity, zone)
    first, last = min(units.values()), sorted(units.values())[len(units) // 2]
    for begin, end in ((first, first), (first, last), (last, last)):
        spans = clock.spans(begin, end)
        assert all(stop < start for (_, stop), (start, _) in zip(spans, spans[1:]))
        for time, unit in units.items():
            assert any(start <= time < stop for start, stop in spans) == (begin <= unit <= end)


@given(
    times=st.lists(st.integers(micros(1901, 1, 1), micros(2099, 1, 1)), min_size=1, max_size=30),
    granularity=st.sampled_from(UNITS),
    zone=st.sampled_from(ZONES),
)
def test_units_are_those_of_the_calendar(times: list[int], granularity: str, zone: str) -> None:
    check(times, granularity, zone)


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_units_are_right_around_each_change_of_the_clocks(zone: str) -> None:
    for middle, granularity in product((micros(*day) for day in CHANGES), UNITS):
        check([middle + n * MINUTE - 1 for n in range(-8_000, 8_000, 7)], granularity, zone)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("granularity", UNITS)
def test_the_first_and_the_last_moment_there_are_have_units(zone: str, granularity: str) -> None:
    first, last = micros(1, 1, 1), micros(9999, 12, 31) + DAY - 1
    clock = Clock(granularity, ZoneInfo(zone), [first // SPAN, last // SPAN])
    assert key(granularity, unit_of(clock, first)).startswith("0001-01-01")
    assert key(granularity, unit_of(clock, last)).startswith("9999-12-31")
