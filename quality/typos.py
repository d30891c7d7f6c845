"""Questions with one typing mistake each, the same in every run."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from random import Random
from string import ascii_lowercase

from quality.collections import Collection, Query

LONG = 5
LETTERS = re.compile(rf"[^\W\d_]{{{LONG},}}")

#: Returns the number of a group's documents that contain a word.
Count = Callable[[str, str], int]


def with_typos(collection: Collection, count: Count) -> list[Query]:
    """The queries, each with one mistake in its rarest long word that occurs in its group.

    The four kinds of mistake take turns. A query without such a word stays as it is.
    """
    kinds = cycle(KINDS)
    return [_mistype(query, next(kinds), count) for query in collection.queries]


def _mistype(query: Query, kind: Callable[[str, Random], str], count: Count) -> Query:
    words = [word for word in LETTERS.findall(query.text) if len(set(word[1:])) > 1]
    counts = {word: held for word in words if (held := count(query.group, word))}
    if not counts:
        return query
    word = min(counts, key=lambda word: counts[word])
    random = Random(query.id)
    while (wrong := kind(word, random)) == word:
        pass
    return replace(query, text=re.sub(rf"\b{word}\b", wrong, query.text, count=1))


def transpose(word: str, random: Random) -> str:
    """Swaps two neighbours; the first letter stays, as in all four kinds."""
    place = random.randrange(1, len(word) - 1)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def delete(word: str, random: Random) -> str:
    place = random.randrange(1, len(word))
    return word[:place] + word[place + 1 :]


def substitute(word: str, random: Random) -> str:
    place = random.randrange(1, len(word))
    return word[:place] + random.choice(ascii_lowercase) + word[place + 1 :]


def insert(word: str, random: Random) -> str:
    place = random.randrange(1, len(word) + 1)
    return word[:place] + random.choice(ascii_lowercase) + word[place:]


KINDS = (transpose, delete, substitute, insert)
