"""Local times counted in slots, beside the clock of each time by itself."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.model import GRANULARITIES
from service.records.reading.local_time import DAY, MINUTE, SPAN, Clock, first_unit, key

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",  # clocks went back at one minute past midnight
    "Asia/Kathmandu",  # 5:45 ahead
    "Australia/Lord_Howe",  # half an hour of summer time
    "Pacific/Apia",  # left out a day in 2011
    "Africa/Casablanca",  # a month of other time each year
    "America/Boa_Vista",  # a week of summer time in 2000
    "Africa/Freetown",  # four days of it in 1939
    "Africa/Monrovia",  # 44 minutes and 30 seconds behind until 1972
    "Europe/Amsterdam",  # 19 minutes and 32 seconds ahead until 1937
)
ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def told(time: int, granularity: str, zone: str) -> str:
    """The bucket of one time, by the calendar of Python."""
    moment = (ZERO + timedelta(microseconds=time)).astimezone(ZoneInfo(zone))
    if granularity == "minute":
        return moment.strftime("%Y-%m-%dT%H:%M")
    if granularity == "hour":
        return moment.strftime("%Y-%m-%dT%H:00")
    day = moment.date()
    if granularity == "week":
        while day.isoweekday() != 1:
            day -= timedelta(days=1)
    if granularity in ("month", "quarter", "year"):
        day = day.replace(day=1)
    while granularity == "quarter" and day.month not in (1, 4, 7, 10):
        day = (day - timedelta(days=1)).replace(day=1)
    if granularity == "year":
        day = day.replace(month=1)
    return f"{day:%Y-%m-%d}"


def counted(times: list[int], granularity: str, zone: str) -> dict[str, int]:
    """The same of many times, slot by slot."""
    clock = Clock(granularity, ZoneInfo(zone), {time // SPAN for time in times})
    slots = Counter(time // clock.slot * clock.slot for time in times)
    counts = Counter[str]()
    for unit, _, count in clock.units(slots.items()):
        counts[key(granularity, first_unit(granularity, unit))] += count
    return counts


def micros(year: int, month: int, day: int) -> int:
    return (datetime(year, month, day, tzinfo=UTC) - ZERO) // timedelta(microseconds=1)


@given(
    times=st.lists(st.integers(micros(1901, 1, 1), micros(2099, 1, 1)), min_size=1, max_size=30),
    granularity=st.sampled_from(GRANULARITIES),
    zone=st.sampled_from(ZONES),
)
def test_slots_count_as_every_time_by_itself(times: list[int], granularity: str, zone: str) -> None:
    assert counted(times, granularity, zone) == Counter(told(t, granularity, zone) for t in times)


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_no_slot_runs_over_a_change_of_the_clocks(zone: str) -> None:
    days = [(1939, 9, 3), (1972, 1, 7), (2000, 10, 8), (2010, 11, 7), (2011, 12, 30), (2026, 3, 29)]
    for middle, granularity in product((micros(*day) for day in days), GRANULARITIES):
        times = [middle + minutes * MINUTE - 1 for minutes in range(-8_000, 8_000, 7)]
        slots = Counter(told(t, granularity, zone) for t in times)
        assert counted(times, granularity, zone) == slots, (middle, granularity)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_the_first_and_the_last_moment_there_are_can_be_counted(
    zone: str, granularity: str
) -> None:
    first, last = micros(1, 1, 1), micros(9999, 12, 31) + DAY - 1
    found = counted([first, first + 2 * DAY, last], granularity, zone)
    assert sum(found.values()) == 3
    assert min(found).startswith("0001-01-01") and max(found).startswith("9999-")


def test_slots_are_as_long_as_the_zone_allows() -> None:
    spans = [micros(2026, 1, 1) // SPAN]
    lengths = {zone: Clock("month", ZoneInfo(zone), spans).slot // MINUTE for zone in ZONES[:4]}
    assert lengths == {
        "UTC": 24 * 60,
        "Europe/Berlin": 60,
        "America/St_Johns": 30,
        "Asia/Kathmandu": 15,
    }
