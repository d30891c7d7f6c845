"""A made-up corpus that is the same for the same seed.

Words follow Zipf's law, and rare words fall off faster, as in natural text. The most frequent words
are English function words; the others are made up. Lengths are log-normal, with a few very long
records. A record repeats the words of its subject. One record in ten has words with accents, and
some of these have a few words of Chinese or Japanese.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from evidence.language import stop_words

SEED = 20_260_801
WORDS, COMMON_WORDS = 40_000, 8_000
CONNECTIONS = 64
STREAMS = ("messages", "notes", "documents", "tickets")
KINDS = ("draft", "sent", "received", "archived")

TITLE_CHARS = 60
MEDIAN_CHARS, SIGMA = 700, 1.1
SHORTEST, LONGEST = 200, 20_000
HUGE_SHARE, HUGE_CHARS = 0.002, (20_000, 200_000)
ACCENTED_SHARE, CJK_SHARE = 0.10, 0.25
CHARS_PER_WORD = 6.9  # a word with its space and its share of punctuation
SUBJECT_WORDS = 6

#: English function words, the most frequent first.
FUNCTION_WORDS: tuple[str, ...] = tuple("""
the of and to a in that is was he for it with as his on be at by i this had not are but from or
have an they which you were her all she there would their we him been has when who will more no if
out so what up its about into than them can only other some could these then do any my such our
over me most after also did many before must through where much your down should each those how
too very own here between both being under same while might us off against
""".split())
FIRST_FUNCTION_WORDS = 20  # they come before any other word

_ONSETS: tuple[str, ...] = (
    "",
    "b",
    "br",
    "c",
    "ch",
    "d",
    "f",
    "g",
    "h",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
)
_ONSETS += ("t", "tr", "v", "w")
_VOWELS = ("a", "e", "i", "o", "u", "ea", "io", "ou")
_CODAS = ("", "", "", "l", "n", "nd", "r", "rt", "s", "st", "t")
_ACCENTS = str.maketrans("aeiouc", "áéïöüç")
_CJK = ("東京の会議", "数据库", "検索結果", "北京大学", "契約書", "発表資料")
_ENDS = (". ", ". ", ". ", "? ", ": ", ".\n\n")
_FIRST_DAY = datetime(2021, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a stream of a connection. `words` are the words of its text, each once."""

    connection: int
    stream: str
    id: str
    title: str
    body: str
    sent_at: str
    kind: str
    words: frozenset[str]


def vocabulary(rng: random.Random, size: int = WORDS) -> list[str]:
    """`size` different words that could be English, the shorter ones mostly first."""
    words: dict[str, None] = {}
    reserved = stop_words("en")
    while len(words) < size:
        syllables = 1 + (len(words) > 300) + (len(words) > 6_000) * (rng.random() < 0.5)
        parts = (rng.choice(part) for _ in range(syllables) for part in (_ONSETS, _VOWELS, _CODAS))
        word = "".join(parts)
        if word not in reserved:
            words[word] = None
    return list(words)


def ranked(made_up: Sequence[str]) -> list[str]:
    """All words, the most frequent first: later function words take every second rank."""
    words = list(made_up)
    for place, word in enumerate(FUNCTION_WORDS):
        words.insert(max(place, 2 * place - FIRST_FUNCTION_WORDS), word)
    return words


def records(count: int, seed: int = SEED) -> Iterator[Record]:
    """Yields `count` records. A smaller corpus is the beginning of a larger one."""
    rng = random.Random(seed)
    words = ranked(vocabulary(rng))
    weights = list(accumulate(map(_weight, range(1, len(words) + 1))))
    for number in range(count):
        yield _record(rng, number, words, weights)


def _weight(rank: int) -> float:
    """The relative frequency of the word with this rank, by Zipf's law with two slopes."""
    return min(1.0, COMMON_WORDS / rank) / (rank + 2.7)


def _record(
    rng: random.Random, number: int, vocabulary: Sequence[str], weights: Sequence[float]
) -> Record:
    count = max(8, round(_length(rng) / CHARS_PER_WORD))
    drawn = rng.choices(vocabulary, cum_weights=weights, k=count)
    subject = rng.sample(drawn, SUBJECT_WORDS)
    for _ in range(count // 12):
        drawn[int(rng.random() * count)] = subject[int(rng.random() * len(subject))]
    found = frozenset(drawn)
    if rng.random() < ACCENTED_SHARE:
        _accent(rng, drawn)
    return Record(
        connection=rng.randrange(CONNECTIONS),
        stream=rng.choice(STREAMS),
        id=f"r{number:06d}",
        title=" ".join(subject).capitalize()[:TITLE_CHARS].rstrip(),
        body=_text(rng, drawn),
        sent_at=_moment(rng),
        kind=rng.choice(KINDS),
        words=found,
    )


def _length(rng: random.Random) -> float:
    if rng.random() < HUGE_SHARE:
        return math.exp(rng.uniform(math.log(HUGE_CHARS[0]), math.log(HUGE_CHARS[1])))
    return min(LONGEST, max(SHORTEST, rng.lognormvariate(math.log(MEDIAN_CHARS), SIGMA)))


def _accent(rng: random.Random, words: list[str]) -> None:
    """Adds accents to one word in thirty, and to some texts a Chinese or Japanese word."""
    for _ in range(1 + len(words) // 30):
        place = rng.randrange(len(words))
        words[place] = words[place].translate(_ACCENTS)
    if rng.random() < CJK_SHARE:
        words[rng.randrange(len(words))] = rng.choice(_CJK)


def _text(rng: random.Random, words: Sequence[str]) -> str:
    """The words as sentences."""
    parts, start = [], 0
    while start < len(words):
        end = start + 5 + int(rng.random() * 15)
        sentence = " ".join(words[start:end])
        parts += [sentence[0].upper(), sentence[1:], _ENDS[int(rng.random() * len(_ENDS))]]
        start = end
    return "".join(parts).rstrip()


def _moment(rng: random.Random) -> str:
    found = _FIRST_DAY + timedelta(seconds=rng.randrange(5 * 365 * 86_400))
    return found.isoformat().replace("+00:00", "Z")


def frequencies(found: Iterable[Record]) -> Counter[str]:
    """The number of records that contain each word."""
    counted: Counter[str] = Counter()
    for record in found:
        counted.update(record.words)
    return counted
