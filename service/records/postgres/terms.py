"""Words as PostgreSQL keeps and seeks them: lexemes with positions, written by us.

A word of a script without spaces is one character, which says little. Two adjacent ones are a
lexeme too, at the position of the first, and a phrase of such characters is one of pairs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from evidence.question import Term, is_unspaced
from service.records.engine import Spellings

#: The longest lexeme that PostgreSQL takes.
LEXEME_BYTES: Final = 2_046


def vector(folded: str, marks: Iterable[str]) -> str:
    """The `tsvector` of a folded text; `marks` are lexemes for its scope.

    PostgreSQL keeps the first 256 places of a word.
    """
    placed: dict[str, str] = {}
    words, before = folded.split(), ""
    for place, word in enumerate(words, start=1):
        at = placed.get(word)
        placed[word] = f"{at},{place}" if at else f"{_quoted(word)}:{place}"
    for place, word in enumerate(() if folded.isascii() else words):
        if before and is_unspaced(word) and is_unspaced(before):
            at = placed.get(before + word)
            placed[before + word] = f"{at},{place}" if at else f"'{before}{word}':{place}"
        before = word
    return " ".join([*placed.values(), *(f"'{mark}'" for mark in marks)])


def query(groups: Sequence[Spellings], *scopes: str) -> str:
    """The `tsquery` that a row holds one term of every group, and is in every scope."""
    parts = [" | ".join(map(_phrase, group)) for group in groups]
    return " & ".join(f"({part})" for part in (*parts, *filter(None, scopes)))


def _phrase(term: Term) -> str:
    """One term: lexemes as far apart as its words stand."""
    spelled, last = "", 0
    for place, lexeme in _lexemes(term.words):
        spelled += f" <{place - last}> {lexeme}" if spelled else lexeme
        last = place
    return f"({spelled}{':*' if term.prefix else ''})"


def _lexemes(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    for place, word in enumerate(words):
        alone = not is_unspaced(word)
        if not alone and place + 1 < len(words) and is_unspaced(words[place + 1]):
            yield place, _quoted(word + words[place + 1])
        elif alone or place == 0 or not is_unspaced(words[place - 1]):
            yield place, _quoted(word)


def _quoted(word: str) -> str:
    """A folded word, which has no quotes; of one that is too long, the beginning."""
    if len(word) * 4 > LEXEME_BYTES:
        word = word.encode()[:LEXEME_BYTES].decode(errors="ignore")
    return f"'{word}'"
