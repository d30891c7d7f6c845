"""Buckets of local time by the calendar of Python, one time at a time."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

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
#: Days on which clocks changed in some zone, as year, month and day.
CHANGES = (
    *((1939, 9, 3), (1972, 1, 7), (2000, 10, 8), (2006, 10, 29)),
    *((2010, 11, 7), (2011, 12, 30), (2026, 3, 29), (2026, 10, 25)),
)


def micros(year: int, month: int, day: int) -> int:
    """Microseconds from 1970 to the beginning of a day in UTC."""
    return (datetime(year, month, day, tzinfo=UTC) - ZERO) // timedelta(microseconds=1)


def text(time: int) -> str:
    """A time in microseconds since 1970 as records have it."""
    return (ZERO + timedelta(microseconds=time)).isoformat()


def bucket(time: str, granularity: str, zone: str) -> str:
    """The key of the bucket of a time."""
    local = datetime.fromisoformat(time).astimezone(ZoneInfo(zone))
    if granularity == "minute":
        return local.strftime("%Y-%m-%dT%H:%M")
    if granularity == "hour":
        return local.strftime("%Y-%m-%dT%H:00")
    day = local.date()
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
