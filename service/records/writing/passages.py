"""Splits values that are too long to index whole into passages.

A passage is 2,048 code points long; the next one starts 1,536 later. No query is longer than the
overlap of two passages, so any match is whole in one of them.
"""

from collections.abc import Iterator
from typing import Final

from evidence.fold import fold
from evidence.limits import CONTRACT

CHARS: Final = CONTRACT.passage_chars
STRIDE: Final = CONTRACT.passage_stride_chars
OVERLAP: Final = CHARS - STRIDE


def starts(chars: int) -> range:
    """The starts of the passages of a text of this length; none if it is indexed whole."""
    return range(0, chars - OVERLAP, STRIDE) if chars > CHARS else range(0)


def fold_passage(text: str, start: int, inner: bool, last: bool) -> str:
    """The words of the passage at `start`, without those that its ends may cut.

    They are whole in the adjacent passage, because the overlap is longer than a word. Anything
    longer is data, not a word: its beginning stays, so that a prefix finds it.
    """
    folded = fold(text[start : start + CHARS])
    begin = folded.find(" ") if inner else 0
    if begin < 0:
        return ""
    end = -1 if last else folded.rfind(" ", max(begin, len(folded) - OVERLAP))
    return folded[begin:] if end < 0 else folded[begin:end]


def fold_passages(text: str) -> Iterator[str]:
    """The words of every passage of a long text, or of the fold of an ASCII text."""
    places = starts(len(text))
    for start in places:
        yield fold_passage(text, start, start > 0, start == places[-1])
