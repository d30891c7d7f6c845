"""Invented, consistent weather: each day follows from the day before."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from math import cos, pi
from random import Random

COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
WET, WET_IN_WINTER = ("drizzle", "rain", "rain"), ("snow showers", "sleet", "hail")
SEAS = ("smooth", "slight", "moderate", "rather rough", "rough", "very rough", "high")
NORMAL, LOWEST, HIGHEST = 29.85, 28.3, 30.7  # inches of mercury


@dataclass(frozen=True, slots=True)
class Weather:
    """One day at one place: pressure in inches, wind by compass and Beaufort force."""

    day: date
    glass: float
    tendency: str
    wind: str
    force: int
    sky: str
    fog_hours: int

    @property
    def sea(self) -> str:
        return SEAS[min(self.force * 3 // 4, len(SEAS) - 1)]

    @property
    def warm(self) -> bool:
        return 5 <= self.day.month <= 9


def weather(random: Random, first: date, last: date) -> Iterator[Weather]:
    """The days from first to last."""
    glass, direction = NORMAL, 5
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        winter = (1 + cos(2 * pi * (day.timetuple().tm_yday - 15) / 365)) / 2
        change = random.gauss(0, 0.14 + 0.16 * winter) - 0.25 * (glass - NORMAL)
        glass = min(HIGHEST, max(LOWEST, glass + change))
        direction = (direction + random.choice((-1, 0, 0, 1, 1))) % len(COMPASS)
        steep = abs(change) * 9 + max(0.0, NORMAL - glass) * 4
        force = min(11, round(steep + random.random() * 3 + winter))
        fog = force <= 3 and random.random() < 0.22 - 0.12 * winter
        yield Weather(
            day=day,
            glass=glass,
            tendency="rising" if change > 0.05 else "falling" if change < -0.05 else "steady",
            wind=COMPASS[direction],
            force=force,
            sky="fog" if fog else _sky(random, glass, day),
            fog_hours=random.randint(2, 19) if fog else 0,
        )


def _sky(random: Random, glass: float, day: date) -> str:
    if glass > NORMAL + 0.15:
        return random.choice(("clear", "clear", "fair", "high cloud", "hazy"))
    wet = WET_IN_WINTER if day.month in (12, 1, 2) else WET
    if glass < NORMAL - 0.25:
        return random.choice(("rain", "squalls", "showers", *wet))
    return random.choice(("cloudy", "overcast", "fair", "showers", wet[0]))
