"""Function words of many languages, which are in nearly every question and carry no meaning there.

`stop_words.toml` lists question words, articles, pronouns, prepositions, conjunctions and auxiliary
verbs. It has nothing that a person would search for by itself.
"""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Final

from evidence.fold import fold

_LISTS: Final[dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)

LANGUAGES: Final = tuple(_LISTS)


@lru_cache(maxsize=None)
def stop_words(language: str) -> frozenset[str]:
    """The folded function words of a language, by its two-letter code; none of an unknown one."""
    return frozenset(fold(_LISTS.get(language, "")).split())
