"""Decides which answers a text proves. An agent answers only what a text it has read proves."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quality.evidence.tasks import Ask

_CODE = r"\b[A-Z]{2}-\d{4}-[A-Z]{2}\b"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|…")
_CLOSING = re.compile(rf"personal collection code is ({_CODE})")
#: Words between the two words of a question that are far apart.
NEAR_WORDS = 60


def has(word: str, text: str) -> bool:
    """Whether a whole word occurs in a text."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def shown(words: tuple[str, ...], text: str) -> int:
    """How many of the words occur in a text."""
    return sum(has(word, text) for word in words)


def answers(ask: "Ask", text: str) -> Iterator[str]:
    """The codes that a text proves to be the answer."""
    if ask.goal == "closing":
        yield from _CLOSING.findall(text)
    elif ask.goal == "sentence":
        for sentence in _SENTENCE_END.split(text):
            if shown(ask.words, sentence) == len(ask.words):
                yield from re.findall(_CODE, sentence)
    elif ask.goal == "beside":
        first, second = ask.words
        beside = rf"(?<!\w){re.escape(second)}(?!\w)[^.!?\n…]*?({_CODE})"
        for match in re.finditer(beside, text, re.IGNORECASE):
            if has(first, " ".join(text[: match.start()].split()[-NEAR_WORDS:])):
                yield match[1]
