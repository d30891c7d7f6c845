"""Detects languages; finds stems, inflected forms and other spellings of words.

`languages.toml` has the properties of languages by their two-letter codes. Function words occur in
nearly every question and carry no meaning there: question words, articles, pronouns, prepositions,
conjunctions and auxiliary verbs. None of them is a word that a person would search for by itself.
"""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import islice, product
from os.path import commonprefix
from pathlib import Path
from threading import local
from typing import Any, Final

import Stemmer

from evidence.fold import fold

#: Properties of languages, by their two-letter codes.
LANGUAGES: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")
)


@lru_cache(maxsize=None)
def stop_words(language: str) -> frozenset[str]:
    """The folded function words of a language, by its two-letter code; empty if it is unknown."""
    return frozenset(fold(LANGUAGES.get(language, {}).get("function_words", "")).split())


#: A text counts as a language if at least this share of its words are function words of it.
_SHARE: Final = 0.12
#: The most languages of one collection in which word forms are searched.
MOST_LANGUAGES: Final = 4
_FEW_WORDS: Final = 4
#: Arabic prefixes: the article and prepositions.
_ARABIC_PREFIXES: Final = ("", "ال", "وال", "بال", "كال", "فال", "لل", "و", "ب", "ل", "ف", "ك")
_SHORT_STEM: Final = 4
#: Words with a shorter stem have no forms, as too many words have it by accident: `see` and `sea`
#: in French. English has few that are so short, such as `go`.
_SHORTEST_STEM: Final = 3
_FEW_SHORT_STEMS: Final = ("en",)
#: Words shorter than this are never repaired.
REPAIRED_CHARS: Final = 5
#: The most corrections used for one word, the most frequent first.
REPAIRS_MAX: Final = 4
_UMLAUTS: Final = (("ae", "a"), ("oe", "o"), ("ue", "u"))
_UMLAUTS_MAX: Final = 3
_local = local()


def stems(words: list[str], language: str) -> list[str]:
    """The stem of each folded word; the word itself if the language has no stemmer."""
    stemmer = _stemmer(language)
    return words if stemmer is None else list(stemmer.stemWords(words))


def _beginnings(stemmed: str, language: str) -> tuple[str, ...]:
    """The prefixes of the inflected forms of a stem: the stem without an ending that changes."""
    begin = stemmed[:-1] if len(stemmed) > _SHORT_STEM else stemmed
    if language == "ar":
        return tuple(prefix + begin for prefix in _ARABIC_PREFIXES)
    return (begin,)


class Inflections:
    """The words that have the stem of one of some words in one of some languages."""

    def __init__(self, words: Iterable[str], languages: Iterable[str]) -> None:
        words = list(words)
        self._stems = {
            language: {
                stem
                for stem in stems(words, language)
                if len(stem) >= _SHORTEST_STEM or language in _FEW_SHORT_STEMS
            }
            for language in languages
        }
        self._begins = {
            language: tuple({begin for stem in own for begin in _beginnings(stem, language)})
            for language, own in self._stems.items()
        }

    def prefixes(self, least: int = 1) -> list[str]:
        """Prefixes of `least` letters or more with which all of them begin."""
        prefixes = list[str]()
        for prefix in sorted(
            begin for group in self._begins.values() for begin in group if len(begin) >= least
        ):
            if not prefixes or not prefix.startswith(prefixes[-1]):
                prefixes.append(prefix)
        return prefixes

    def among(self, near: Collection[str]) -> set[str]:
        """Those among some words."""
        forms = set[str]()
        for language, own in self._stems.items():
            likely = [word for word in near if word.startswith(self._begins[language])]
            pairs = zip(likely, stems(likely, language))
            forms.update([word for word, stem in pairs if stem in own])
        return forms


def _stemmer(language: str) -> Any:
    """The stemmer of a language, one per thread, because stemmers have state."""
    stemmers: dict[str, Any] = _local.__dict__
    if language not in stemmers:
        name = LANGUAGES.get(language, {}).get("stemmer")
        # 0: no cache, because stemming is as fast as a lookup.
        stemmers[language] = None if name is None else Stemmer.Stemmer(name, 0)
    return stemmers[language]


def detect(texts: Iterable[str]) -> tuple[str, ...]:
    """The languages of some texts, the clearest first; see `evident`."""
    leads = Counter[str]()
    for text in texts:
        leads.update(lead(text))
    return evident(leads)


def evident(leads: Counter[str]) -> tuple[str, ...]:
    """Languages by their leads in some texts; those with less than a twentieth are left out."""
    total = leads.total()
    return tuple(language for language, n in leads.most_common(MOST_LANGUAGES) if n * 20 >= total)


def lead(text: str) -> dict[str, int]:
    """The language of a text and its lead: how many more function words it has than any other.

    Languages share short words, so a lead of 1 in a title may be chance. Empty if the text has few
    function words of any language.
    """
    words = fold(text).split()
    if len(words) < _FEW_WORDS:
        return {}
    hits = function_words(words)
    (best, most), (_, second) = hits.most_common(2)
    return {best: most - second} if most >= _SHARE * len(words) else {}


def function_words(words: Iterable[str]) -> Counter[str]:
    """How many of some folded words are function words of each language."""
    counts, languages = Counter(dict.fromkeys(LANGUAGES, 0)), _languages_of_words()
    for word in words:
        for language in languages.get(word, ()):
            counts[language] += 1
    return counts


@lru_cache(maxsize=1)
def _languages_of_words() -> dict[str, list[str]]:
    """The languages of each function word."""
    languages = defaultdict[str, list[str]](list)
    for language in LANGUAGES:
        for word in stop_words(language):
            languages[word].append(language)
    return dict(languages)


def is_repairable(word: str) -> bool:
    """Whether a word can be misspelled, or be what was meant: a number or an id cannot."""
    return word.isalpha() or 2 * sum(map(str.isnumeric, word)) < len(word)


def shortened(word: str) -> set[str]:
    """A word without one of its letters, for each of them but the first."""
    return {word[:position] + word[position + 1 :] for position in range(1, len(word))}


def is_one_edit(word: str, candidate: str) -> bool:
    """Whether one edit turns a word into another one; see `edits`."""
    start = len(commonprefix((word, candidate)))
    rest, candidate_rest = word[start:], candidate[start:]
    end = len(commonprefix((rest[::-1], candidate_rest[::-1])))
    rest, candidate_rest = rest[: len(rest) - end], candidate_rest[: len(candidate_rest) - end]
    swapped = len(rest) == 2 and rest == candidate_rest[::-1]
    return (
        start > 0
        and rest != candidate_rest
        and (swapped or max(len(rest), len(candidate_rest)) == 1)
    )


def edits(word: str, letters: Iterable[str]) -> frozenset[str]:
    """Every word one edit away: a letter dropped, changed or added, or two adjacent ones swapped.

    The first letter stays. `letters` are those that may be added.
    """
    alphabet = tuple(letters)
    cuts = [(word[:position], word[position:]) for position in range(1, len(word) + 1)]
    dropped = (start + rest[1:] for start, rest in cuts if rest)
    swapped = (start + rest[1] + rest[0] + rest[2:] for start, rest in cuts if len(rest) > 1)
    changed = (start + letter + rest[1:] for start, rest in cuts if rest for letter in alphabet)
    inserted = (start + letter + rest for start, rest in cuts for letter in alphabet)
    return frozenset((*dropped, *swapped, *changed, *inserted)) - {word}


def umlauts(word: str) -> frozenset[str]:
    """A folded word with its umlauts written out, and the reverse: `schlussel`, `schluessel`.

    Varies at most three places of a word.
    """
    pieces: list[tuple[str, ...]] = []
    position = varied = 0
    while position < len(word):
        long = next((pair for pair in _UMLAUTS if word.startswith(pair[0], position)), None)
        short = next((pair for pair in _UMLAUTS if word[position] == pair[1]), None)
        pair = long or short
        if pair is None or varied == _UMLAUTS_MAX:
            pieces.append((word[position],))
            position += 1
            continue
        pieces.append(pair)
        position += len(pair[0] if long else pair[1])
        varied += 1
    spellings = ("".join(parts) for parts in product(*pieces))
    return frozenset(islice(spellings, 2**_UMLAUTS_MAX)) - {word}
