"""Splits a text into windows for embedding: contiguous pieces that a model can read whole."""

import re
from collections.abc import Callable
from typing import Final

from evidence.fold import extends

CHARS: Final = 640
TOKENS: Final = 480
_SENTENCE_ENDS = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？]|\n+")
_SPACES = re.compile(r"\s+")


def windows(text: str, tokens: Callable[[str], int]) -> list[tuple[int, int]]:
    """(start, end) of each window in code points; together they cover the text exactly.

    A window has at most `CHARS` code points and `TOKENS` tokens. It ends after the last sentence
    or else the last space in its second half, or else between two characters.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        most = CHARS
        end = _end(text, start, most)
        while end - start > 1 and (count := tokens(text[start:end])) > TOKENS:
            most = max(1, min(end - start - 1, (end - start) * TOKENS // count))
            end = _end(text, start, most)
        spans.append((start, end))
        start = end
    return spans


def _end(text: str, start: int, most: int) -> int:
    """The best end of a window of at most `most` code points."""
    limit = start + most
    if limit >= len(text):
        return len(text)
    for boundary in (_SENTENCE_ENDS, _SPACES):
        ends = [match.end() for match in boundary.finditer(text, start + most // 2, limit)]
        if ends:
            return ends[-1]
    end = limit
    while end > start and (extends(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return end if end > start else limit  # a character of that many code points is cut
