"""Builds sentences in several languages from the word lists in `words.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from random import Random


@dataclass(frozen=True, slots=True)
class Language:
    """Sentence templates, and the words for their slots; `gap` separates sentences."""

    code: str
    templates: list[str]
    things: list[str]
    places: list[str]
    days: list[str]
    gap: str = " "


_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PEOPLE: list[str] = _WORDS.pop("people")
LANGUAGES = tuple(Language(code, **lists) for code, lists in _WORDS.items())
ENGLISH, GERMAN, FRENCH, JAPANESE, CHINESE, ARABIC, EMOJI = LANGUAGES
_MIX = (ENGLISH,) * 10 + (GERMAN,) * 4 + (FRENCH,) * 2 + (JAPANESE, CHINESE) * 2 + (ARABIC, EMOJI)


def choose_language(random: Random) -> Language:
    """A language; English half of the time."""
    return random.choice(_MIX)


def sentence(random: Random, language: Language) -> str:
    """One sentence."""
    return random.choice(language.templates).format(
        person=random.choice(PEOPLE),
        thing=random.choice(language.things),
        place=random.choice(language.places),
        day=random.choice(language.days),
        number=random.randint(12, 9_800),
    )


def prose(random: Random, language: Language, sentences: int) -> str:
    """A text of that many sentences, in paragraphs of about five."""
    parts: list[str] = []
    for number in range(1, sentences + 1):
        parts += (sentence(random, language), "\n\n" if number % 5 == 0 else language.gap)
    return "".join(parts).strip()


def fill(random: Random, chars: int, *languages: Language) -> str:
    """A text of at least `chars` code points, changing between the languages."""
    parts: list[str] = []
    length = 0
    while length < chars:
        part = prose(random, languages[len(parts) % len(languages)], 20) + "\n\n"
        parts.append(part)
        length += len(part)
    return "".join(parts)
