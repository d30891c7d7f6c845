"""The log of an invented lighthouse: an entry for every night, a table for every month."""

import calendar
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from random import Random
from statistics import mean

from service.demo.papers import almanac
from service.demo.papers.weather import Weather, weather

SEED = 19280101
FIRST, LAST = date(1928, 1, 1), date(1931, 12, 31)
LITRES_AN_HOUR = 0.72

LAST_ENTRY = (
    "At sunset I lit the lamp and at ten I put it out for the last time, as ordered; the valve on"
    " the new mast has it now. The brass key hangs on the third nail, left of the glass. The cat"
    " comes with me. Maren Østergård, keeper."
)

GALES = (
    "Green water over the landing; the boat is lashed twice.",
    "Spray on the lantern glass, thirty-six metres up. Salt washed off at daybreak.",
    "The tower hums. Cups moved on the shelf.",
    "Lost {n} slates from the store. Canvas nailed over the hole.",
    "The relief boat turned back at the {place}.",
    "Door of the oil store stove in at {hour} o'clock; made fast with the spare oar.",
)
FOGS = (
    "Signal sounded {hours} hours. Pressure held at {n} pounds.",
    "Heard a steamer's whistle to the {wind}, close. It went off slowly.",
    "Signal {hours} hours. The gulls walk about on the gallery like passengers.",
    "Could not see the rail from the door. Signal {hours} hours without a stop.",
    "Answered a horn from the {place} for half of the night.",
)
CALMS = (
    "Painted the {part}, first coat.",
    "{n} seals on the skerry below the store.",
    "Mainland hills clear to the {wind}. Counted {n} sails.",
    "Caught {n} saithe from the landing. The cat had two.",
    "Line with washing from tower to store; all dry by noon.",
    "A whale blew off the {place} and kept the same course for an hour.",
)
BIRDS = (
    "{n} redwings on the gallery this morning, eleven alive. Let them go.",
    "A short-eared owl sat on the rail from two until four.",
    "Terns back on the north ledge. I make it {n} pairs.",
    "Thrushes around the beams all night. None struck.",
    "First puffin of the year, alone, looking offended.",
    "Geese going {wind}, {n} of them, talking.",
)
DAYS = (
    "Trimmed and cleaned as usual. Brass done on the {part}.",
    "Clockwork ran {n} seconds slow in the night; oiled the {part}.",
    "Changed the mantle at {hour} o'clock. {n} left in the box.",
    "Strained the mercury. A spoonful short of the last time.",
    "Wrote to the office about the {part}, the third letter.",
    "Read the old log of 18{n}. They had the same leak.",
    "Steamer {ship} passed at {hour}, inward bound, dipped her flag.",
    "Schooner {ship} hove to off the {place} to ask for the time. Gave it.",
    "Trawler {ship} sheltering under the {place}.",
    "Saw the {place} light at its proper times. It saw us, I suppose.",
    "Bread failed. The yeast is {n} days old and knows it.",
    "Chess by lamp signal with the {place} light: move {n}. I am a bishop down.",
    "Chess: lost the bishop's avenger too. Blamed the haze.",
    "Assistant ashore on leave; both watches mine until the boat comes.",
    "Rain water in the cistern {n} inches. Good for a month, less if the assistant washes.",
    "Wound at {hour} instead of the hour before: fell asleep over the almanac. Written down.",
    "Small crack in a prism of the third ring. It was there before me.",
    "Shore lamps at the fair seen to the {wind}; heard the fiddle, or wished to.",
    "Cat missing since {hour}. Found in the flour.",
    "Inspector's cutter passed and did not call. {n} minutes of fear for nothing.",
    "Stores landed: oil, flour, {n} eggs of which one broken, and newspapers of last month.",
    "Assistant's tooth drawn with the small pliers. He was brave; the tooth was not the one.",
    "Letter from my sister. She asks if it is lonely. Answered that there is the cat.",
)
PARTS = ("lens carriage", "gallery rail", "stair", "winch", "signal house", "door", "vane")
PLACES = ("Stack", "Kelda Bank", "Horse of Skerra", "Outer Holm", "Sound", "Maiden Reef")
SHIPS = (
    "Aurora of Bergen",
    "Good Intent",
    "Marie-Claire",
    "Vesta",
    "Clan Tarbert",
    "Söderhamn",
    "Провидѣніе",
    "Aghios Nikolaos",
    "Kittiwake",
    "Hedwig Brandt",
)


class Remarks:
    """Draws remarks so that none comes again before all others of its kind were used."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._left: dict[Sequence[str], list[str]] = {}

    def draw(self, kind: Sequence[str]) -> str:
        left = self._left.setdefault(kind, [])
        if not left:
            left.extend(kind)
            self._random.shuffle(left)
        return left.pop()


def log() -> Iterator[tuple[str, str]]:
    """(heading, text) of each month, in order."""
    random = Random(SEED)
    remarks = Remarks(random)
    days = weather(random, FIRST, LAST)
    for (year, month), found in groupby(days, key=lambda day: (day.day.year, day.day.month)):
        kept = list(found)
        entries = [_entry(remarks, random, day) for day in kept]
        yield f"{calendar.month_name[month]} {year}", "\n\n".join((*entries, _table(kept)))


def _entry(remarks: Remarks, random: Random, day: Weather) -> str:
    night = almanac.night(day.day)
    waters = " and ".join(map(almanac.clock, almanac.high_waters(day.day)))
    said = LAST_ENTRY if day.day == LAST else _remark(remarks, random, day)
    return (
        f"**{calendar.day_abbr[day.day.weekday()]} {day.day.day}.** {day.wind} {day.force},"
        f" sea {day.sea}, {day.sky}. Glass {day.glass:.2f}, {day.tendency}."
        f" Lamp out {almanac.clock(night.sunrise)}, lit {almanac.clock(night.sunset)},"
        f" oil {night.hours * LITRES_AN_HOUR:.1f} l. High water {waters},"
        f" {almanac.high_water_metres(day.day):.1f} m; Moon {almanac.moon_age(day.day):.0f} days."
        f" {said}"
    )


def _remark(remarks: Remarks, random: Random, day: Weather) -> str:
    return remarks.draw(_kind(random, day)).format(
        n=random.randint(12, 89),
        hour=random.randint(1, 11),
        hours=day.fog_hours,
        wind=day.wind,
        part=random.choice(PARTS),
        place=random.choice(PLACES),
        ship=random.choice(SHIPS),
    )


def _kind(random: Random, day: Weather) -> Sequence[str]:
    if day.fog_hours:
        return FOGS
    if day.force >= 8:
        return GALES
    if day.day.month in (3, 4, 10) and random.random() < 0.3:
        return BIRDS
    return CALMS if day.warm and day.force <= 3 and random.random() < 0.5 else DAYS


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
