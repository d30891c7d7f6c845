"""Local times in a time zone, counted by minute, hour or day.

Times are integer microseconds since 1970 UTC, within the years 1 to 9999. Local minutes, hours and
days are also numbered from the beginning of 1970, in wall-clock time.
"""

from bisect import bisect_left
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from evidence.cached import cached_property
from evidence.times import EPOCH

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: The first moment of the year 1.
FIRST = -62_135_596_800 * SECOND
#: Clock changes are looked up for a span of this length at a time.
SPAN = 400 * DAY
SPANS_CACHED = 512

_ZERO = datetime(1970, 1, 1)
_ZERO_DAY = date(1970, 1, 1).toordinal()
# No zone has returned to an offset sooner: the shortest period was four days.
_PROBED = 3 * DAY


class _Change(NamedTuple):
    """From `begin` until the next change, local time is `offset` microseconds ahead of UTC."""

    begin: int
    offset: int


class Clock:
    """Local times, in the unit of a granularity: minutes, hours, or days for all longer ones.

    `spans` are the numbers of the periods of `SPAN` since 1970 that contain the times to convert.
    """

    def __init__(self, granularity: str, zone: ZoneInfo, spans: Iterable[int]) -> None:
        self.unit = _unit(granularity)
        self._changes = sorted(change for span in spans for change in _changes(zone, span * SPAN))

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """(begin, microseconds ahead of UTC from then on) of each period with another offset."""
        changes = self._changes
        return [
            (change.begin, change.offset)
            for before, change in zip([None, *changes], changes)
            if before is None or before.offset != change.offset
        ]

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """The times of some local units as (start, stop): twice if clocks go back at an end."""
        start, stop = first * self.unit, (last + 1) * self.unit
        before = max(bisect_left(self.offsets, (start - DAY,)) - 1, 0)
        near = self.offsets[before : bisect_left(self.offsets, (stop + DAY,))]
        ends = [*(begin for begin, _ in near[1:]), stop + DAY]
        spans = list[tuple[int, int]]()
        for (begin, offset), end in zip(near, ends):
            begin, end = max(begin, start - offset), min(end, stop - offset)
            if spans and begin == spans[-1][1] and begin < end:
                spans[-1] = spans[-1][0], end
            elif begin < end:
                spans.append((begin, end))
        return spans


def key(granularity: str, first: int) -> str:
    """The name of the bucket with this first unit: a day, with hour and minute if short."""
    if _unit(granularity) == DAY:
        return date.fromordinal(_ZERO_DAY + first).isoformat()
    begin = _ZERO + timedelta(microseconds=first * _unit(granularity))
    return begin.isoformat(timespec="minutes")


def _unit(granularity: str) -> int:
    return {"minute": MINUTE, "hour": HOUR}.get(granularity, DAY)


@lru_cache(SPANS_CACHED)
def _changes(zone: ZoneInfo, begin: int) -> list[_Change]:
    """The local time offset at `begin`, and its changes over a span."""
    probed, offset = begin, _offset(zone, begin)
    changes = [_Change(begin, offset)]
    while probed < begin + SPAN:
        before, probed = probed, probed + _PROBED
        if _offset(zone, probed) != offset:
            seconds = range(before // SECOND, probed // SECOND)
            index = bisect_left(seconds, True, key=lambda at: _offset(zone, at * SECOND) != offset)
            probed = (seconds.start + index) * SECOND
            offset = _offset(zone, probed)
            changes.append(_Change(probed, offset))
    return changes


def _offset(zone: ZoneInfo, time: int) -> int:
    """Microseconds from UTC to local time; none outside the supported years."""
    try:
        offset = (EPOCH + timedelta(microseconds=time)).astimezone(zone).utcoffset()
    except OverflowError:
        return 0
    return (offset or timedelta()) // timedelta(microseconds=1)
