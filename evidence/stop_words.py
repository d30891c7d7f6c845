"""Function words of many languages, which are in nearly every question and carry no meaning there.

They are question words, articles, pronouns, prepositions, conjunctions and auxiliary verbs, and
nothing that a person would search for by itself.
"""

from functools import lru_cache

from evidence.fold import fold
from evidence.languages import LANGUAGES


@lru_cache(maxsize=None)
def stop_words(language: str) -> frozenset[str]:
    """The folded function words of a language, by its two-letter code; empty if it is unknown."""
    return frozenset(fold(LANGUAGES.get(language, {}).get("function_words", "")).split())
