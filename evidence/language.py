"""Stems of words by language, and the language that a text is in."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from threading import local
from typing import Any, Final

import Stemmer

from evidence.fold import fold
from evidence.stop_words import LANGUAGES, stop_words

#: The Snowball algorithm of each language that has one.
_ALGORITHMS: Final = {
    "ar": "arabic", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "fa": "persian", "fi": "finnish", "fr": "french", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "it": "italian", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip
#: A text is taken to be in a language when this share of its words are its function words.
_SHARE: Final = 0.12
#: Languages of one collection that forms of words are looked for in.
MOST_LANGUAGES: Final = 4
_FEW_WORDS: Final = 4
#: What Arabic puts before a word, article and prepositions.
_ARABIC_PREFIXES: Final = ("", "ال", "وال", "بال", "كال", "فال", "لل", "و", "ب", "ل", "ف", "ك")
_SHORT_STEM: Final = 4
#: Stems of recent words: the same words of a vocabulary are looked at for many questions.
_STEMS_KEPT: Final = 32_768
_local = local()


@lru_cache(maxsize=_STEMS_KEPT)
def stem(word: str, language: str) -> str:
    """The stem of a folded word; the word itself where the language has no stemmer."""
    stemmer = _stemmer(language)
    return word if stemmer is None else str(stemmer.stemWord(word))


def forms_begin(stemmed: str, language: str) -> tuple[str, ...]:
    """How the inflected forms of a stem begin: the stem less an ending that changes."""
    begin = stemmed[:-1] if len(stemmed) > _SHORT_STEM else stemmed
    if language == "ar":
        return tuple(prefix + begin for prefix in _ARABIC_PREFIXES)
    return (begin,)


def _stemmer(language: str) -> Any:
    """The stemmer of a language, one for each thread: they keep state while they work."""
    known: dict[str, Any] = _local.__dict__
    if language not in known:
        name = _ALGORITHMS.get(language)
        known[language] = None if name is None else Stemmer.Stemmer(name)
    return known[language]


def detect(texts: Iterable[str]) -> tuple[str, ...]:
    """The languages of some texts, most frequent first, by their function words.

    A language that fewer than one text in twenty is in is left out.
    """
    found = Counter[str]()
    for text in texts:
        words = fold(text).split()
        if len(words) < _FEW_WORDS:
            continue
        hits = {one: sum(word in stop_words(one) for word in words) for one in LANGUAGES}
        best = max(hits, key=lambda one: hits[one])
        if hits[best] >= _SHARE * len(words):
            found[best] += 1
    total = found.total()
    return tuple(one for one, n in found.most_common(MOST_LANGUAGES) if n * 20 >= total)
