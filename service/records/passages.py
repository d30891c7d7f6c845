"""Passages: what the full-text index has of a value that is too long to be indexed whole.

A passage is 2,048 code points, the next one starts 1,536 further on. No query is longer than what
two of them share, so whatever it asks for stands whole in one of them.
"""

from collections.abc import Iterator
from typing import Final

from evidence.fold import fold
from evidence.limits import CONTRACT

CHARS: Final = CONTRACT.passage_chars
STRIDE: Final = CONTRACT.passage_stride_chars
OVERLAP: Final = CHARS - STRIDE


def starts(chars: int) -> range:
    """Where the passages of a text of so many code points start; none if it is indexed whole."""
    return range(0, chars - OVERLAP, STRIDE) if chars > CHARS else range(0)


def fold_passage(text: str, start: int, inner: bool, last: bool) -> str:
    """The words of the passage at `start`, without those that its ends may cut.

    They are whole in a neighbour, because it shares more than a word with this one. What is longer
    than that is no word but data: its beginning stays, so that a prefix finds it.
    """
    folded = fold(text[start : start + CHARS])
    begin = folded.find(" ") if inner else 0
    if begin < 0:
        return ""
    end = -1 if last else folded.rfind(" ", max(begin, len(folded) - OVERLAP))
    return folded[begin:] if end < 0 else folded[begin:end]


def fold_passages(text: str) -> Iterator[str]:
    """The words of every passage of a long text, or of the fold of an ASCII one."""
    places = starts(len(text))
    for start in places:
        yield fold_passage(text, start, start > 0, start == places[-1])
