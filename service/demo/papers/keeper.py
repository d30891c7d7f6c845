"""The log of an invented lighthouse: an entry for every night, a table for every month."""

import calendar
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from random import Random
from statistics import mean

from service.demo.papers import almanac
from service.demo.papers.weather import Weather, weather

SEED = 19280101
FIRST, LAST = date(1928, 1, 1), date(1931, 12, 31)
LITRES_AN_HOUR = 0.72
REMARKS: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("remarks.toml").read_text(encoding="utf-8")
)

LAST_ENTRY = (
    "At sunset I lit the lamp and at ten I put it out for the last time, as ordered; the valve on"
    " the new mast has it now. The brass key hangs on the third nail, left of the glass. The cat"
    " comes with me. Maren Østergård, keeper."
)


class Remarks:
    """Draws remarks at random; none repeats before all others of its kind were used."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._left: dict[str, list[str]] = {}

    def draw(self, kind: str) -> str:
        left = self._left.setdefault(kind, [])
        if not left:
            left.extend(REMARKS[kind])
            self._random.shuffle(left)
        return left.pop()


def log() -> Iterator[tuple[str, str]]:
    """(heading, text) of each month, in order."""
    random = Random(SEED)
    remarks = Remarks(random)
    days = weather(random, FIRST, LAST)
    for (year, month), nights in groupby(days, key=lambda day: (day.day.year, day.day.month)):
        kept = list(nights)
        entries = [_entry(remarks, random, day) for day in kept]
        yield f"{calendar.month_name[month]} {year}", "\n\n".join((*entries, _table(kept)))


def _entry(remarks: Remarks, random: Random, day: Weather) -> str:
    night = almanac.night(day.day)
    waters = " and ".join(map(almanac.clock, almanac.high_waters(day.day)))
    remark = LAST_ENTRY if day.day == LAST else _remark(remarks, random, day)
    return (
        f"**{calendar.day_abbr[day.day.weekday()]} {day.day.day}.** {day.wind} {day.force},"
        f" sea {day.sea}, {day.sky}. Glass {day.glass:.2f}, {day.tendency}."
        f" Lamp out {almanac.clock(night.sunrise)}, lit {almanac.clock(night.sunset)},"
        f" oil {night.hours * LITRES_AN_HOUR:.1f} l. High water {waters},"
        f" {almanac.high_water_metres(day.day):.1f} m; Moon {almanac.moon_age(day.day):.0f} days."
        f" {remark}"
    )


def _remark(remarks: Remarks, random: Random, day: Weather) -> str:
    return remarks.draw(_kind(random, day)).format(
        n=random.randint(12, 89),
        hour=random.randint(1, 11),
        hours=day.fog_hours,
        wind=day.wind,
        part=random.choice(REMARKS["parts"]),
        place=random.choice(REMARKS["places"]),
        ship=random.choice(REMARKS["ships"]),
    )


def _kind(random: Random, day: Weather) -> str:
    if day.fog_hours:
        return "fogs"
    if day.force >= 8:
        return "gales"
    if day.day.month in (3, 4, 10) and random.random() < 0.3:
        return "birds"
    return "calms" if day.warm and day.force <= 3 and random.random() < 0.5 else "days"


def _table(days: Sequence[Weather]) -> str:
    glasses = [day.glass for day in days]
    hours = sum(almanac.night(day.day).hours for day in days)
    highest = max(days, key=lambda day: almanac.high_water_metres(day.day)).day
    rows = (
        ("mean glass", f"{mean(glasses):.2f} in"),
        ("lowest and highest", f"{min(glasses):.2f} and {max(glasses):.2f} in"),
        ("days of gale", str(sum(day.force >= 8 for day in days))),
        ("hours of fog signal", str(sum(day.fog_hours for day in days))),
        ("hours of light", f"{hours:.0f}"),
        ("oil burned", f"{hours * LITRES_AN_HOUR:.0f} l"),
        ("highest water", f"day {highest.day}, {almanac.high_water_metres(highest):.1f} m"),
    )
    lines = (f"| {name} | {value} |" for name, value in rows)
    return "\n".join(("| of the month | |", "|---|---|", *lines))
