"""Sun, Moon and tide of one place for any day, by simple astronomy.

Times are minutes after midnight, local solar time. The place is invented.
"""

from dataclasses import dataclass
from datetime import date
from math import acos, cos, degrees, pi, radians, sin, tan

LATITUDE = radians(58.6)
TILT = radians(23.44)
SUNRISE_BELOW_HORIZON = radians(0.833)  # refraction and half of the disc

NEW_MOON = date(2000, 1, 6).toordinal() + 0.76
SYNODIC_DAYS = 29.530588
HALF_LUNAR_DAY = 745.2  # minutes from one high water to the next
ESTABLISHMENT = 620  # minutes from the Moon's passage to high water
MEAN_HIGH_WATER, SPRING_EXTRA = 3.6, 0.8  # metres

DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Night:
    """The lamp is lit at sunset and put out at sunrise of the same calendar day."""

    sunset: int
    sunrise: int

    @property
    def hours(self) -> float:
        return (DAY - self.sunset + self.sunrise) / 60


def night(day: date) -> Night:
    """When the sun rises and sets."""
    declination = -TILT * cos(2 * pi * (day.timetuple().tm_yday + 10) / 365.24)
    low = -sin(SUNRISE_BELOW_HORIZON) / (cos(LATITUDE) * cos(declination))
    half_day = degrees(acos(low - tan(LATITUDE) * tan(declination))) * 4
    return Night(sunset=round(DAY / 2 + half_day), sunrise=round(DAY / 2 - half_day))


def moon_age(day: date) -> float:
    """Days since new moon at noon."""
    return (day.toordinal() + 0.5 - NEW_MOON) % SYNODIC_DAYS


def high_waters(day: date) -> list[int]:
    """The one or two high waters between midnight and midnight."""
    passage = moon_age(day) / SYNODIC_DAYS * DAY
    first = (passage + ESTABLISHMENT) % HALF_LUNAR_DAY
    return [round(time) for time in (first, first + HALF_LUNAR_DAY) if time < DAY - 0.5]


def high_water_metres(day: date) -> float:
    """Height of the day's high waters: greatest at new and full Moon, least at the quarters."""
    return MEAN_HIGH_WATER + SPRING_EXTRA * cos(4 * pi * moon_age(day) / SYNODIC_DAYS)


def clock(minutes: int) -> str:
    """`04.12`, as keepers wrote it."""
    return f"{minutes // 60:02}.{minutes % 60:02}"
