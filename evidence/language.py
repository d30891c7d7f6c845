"""Detects languages; finds stems, inflected forms and other spellings of words.

`languages.toml` has the properties of languages by their two-letter codes. Function words are in
nearly every question and carry no meaning there: question words, articles, pronouns, prepositions,
conjunctions and auxiliary verbs, and nothing that a person would search for by itself.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice, product
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


#: A text is taken to be in a language when this share of its words are its function words.
_SHARE: Final = 0.12
#: Languages of one collection that forms of words are looked for in.
MOST_LANGUAGES: Final = 4
_FEW_WORDS: Final = 4
#: Arabic prefixes: the article and prepositions.
_ARABIC_PREFIXES: Final = ("", "ال", "وال", "بال", "كال", "فال", "لل", "و", "ب", "ل", "ف", "ك")
_SHORT_STEM: Final = 4
#: Stems of recent words: the same words of a vocabulary are looked at for many questions.
_STEMS_KEPT: Final = 32_768
#: Words shorter than this are never repaired.
REPAIRED_CHARS: Final = 5
#: Corrections of one word that are used, the most frequent first.
REPAIRS_MAX: Final = 4
_UMLAUTS: Final = (("ae", "a"), ("oe", "o"), ("ue", "u"))
_UMLAUTS_MAX: Final = 3
_local = local()


@lru_cache(maxsize=_STEMS_KEPT)
def stem(word: str, language: str) -> str:
    """The stem of a folded word; the word itself where the language has no stemmer."""
    stemmer = _stemmer(language)
    return word if stemmer is None else str(stemmer.stemWord(word))


def _beginnings(stemmed: str, language: str) -> tuple[str, ...]:
    """The prefixes of the inflected forms of a stem: the stem without a changing ending."""
    begin = stemmed[:-1] if len(stemmed) > _SHORT_STEM else stemmed
    if language == "ar":
        return tuple(prefix + begin for prefix in _ARABIC_PREFIXES)
    return (begin,)


def inflected(
    words: Iterable[str],
    languages: Iterable[str],
    beginning: Callable[[list[str]], Iterable[str]],
    *,
    least: int = 1,
) -> set[str]:
    """The words that have the stem of one of these words in one of these languages.

    `beginning` returns all words that begin with one of some prefixes, of `least` letters or more.
    """
    words = list(words)
    stems = {language: {stem(word, language) for word in words} for language in languages}
    begins = {
        language: tuple({begin for one in known for begin in _beginnings(one, language)})
        for language, known in stems.items()
    }
    prefixes = list[str]()
    for prefix in sorted(one for each in begins.values() for one in each if len(one) >= least):
        if not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    forms = set[str]()
    for word in beginning(prefixes):
        for language, known in stems.items():
            if word.startswith(begins[language]) and stem(word, language) in known:
                forms.add(word)
                break
    return forms


def _stemmer(language: str) -> Any:
    """The stemmer of a language, one for each thread: they keep state while they work."""
    known: dict[str, Any] = _local.__dict__
    if language not in known:
        name = LANGUAGES.get(language, {}).get("stemmer")
        # 0 words are kept: `stem` keeps those of all threads.
        known[language] = None if name is None else Stemmer.Stemmer(name, 0)
    return known[language]


def detect(texts: Iterable[str]) -> tuple[str, ...]:
    """The languages of some texts, most frequent first; see `frequent`."""
    return frequent(Counter(map(language_of, texts)))


def frequent(counts: Counter[str]) -> tuple[str, ...]:
    """The most frequent of counted languages. One of fewer than a text in twenty is left out."""
    known = Counter({one: n for one, n in counts.items() if one})
    total = known.total()
    return tuple(one for one, n in known.most_common(MOST_LANGUAGES) if n * 20 >= total)


def language_of(text: str) -> str:
    """The language of a text by its function words; an empty text if it is unclear."""
    words = fold(text).split()
    if len(words) < _FEW_WORDS:
        return ""
    hits = {one: sum(map(stop_words(one).__contains__, words)) for one in LANGUAGES}
    best = max(hits, key=lambda one: hits[one])
    return best if hits[best] >= _SHARE * len(words) else ""


def edits(word: str, letters: Iterable[str]) -> frozenset[str]:
    """Every word one edit away: a letter dropped, changed, added, or two neighbours swapped.

    The first letter stays. `letters` are those that may come in.
    """
    alphabet = tuple(letters)
    cuts = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    dropped = (start + rest[1:] for start, rest in cuts if rest)
    swapped = (start + rest[1] + rest[0] + rest[2:] for start, rest in cuts if len(rest) > 1)
    changed = (start + letter + rest[1:] for start, rest in cuts if rest for letter in alphabet)
    added = (start + letter + rest for start, rest in cuts for letter in alphabet)
    return frozenset((*dropped, *swapped, *changed, *added)) - {word}


def umlauts(word: str) -> frozenset[str]:
    """A folded word with its umlauts written out, and the reverse: `schlussel`, `schluessel`.

    At most three places of a word are varied.
    """
    pieces: list[tuple[str, ...]] = []
    place = varied = 0
    while place < len(word):
        long = next((pair for pair in _UMLAUTS if word.startswith(pair[0], place)), None)
        short = next((pair for pair in _UMLAUTS if word[place] == pair[1]), None)
        pair = long or short
        if pair is None or varied == _UMLAUTS_MAX:
            pieces.append((word[place],))
            place += 1
            continue
        pieces.append(pair)
        place += len(pair[0] if long else pair[1])
        varied += 1
    spelled = ("".join(parts) for parts in product(*pieces))
    return frozenset(islice(spelled, 2**_UMLAUTS_MAX)) - {word}
