"""Where a query stands in one field, in the order a reader walks through its matches."""

import re
from collections.abc import Iterator

from evidence import query as queries
from evidence.find import literals, spans
from evidence.fold import fold
from evidence.query import Query, Term
from service.records.texts import Text

# Spans of separate words considered in one large value before the tightest is chosen.
SPANS_CONSIDERED = 64
# Signs that only a search for the very text can tell apart: not words, not spaces between them.
_PUNCTUATION = re.compile(r"[^\w\s]")


def matches(text: Text, needle: str) -> Iterator[tuple[int, int]]:
    """Ranges that match, in walking order.

    The text itself first, in whole words: with its punctuation where it has some, else as a
    phrase. Where that is nowhere, the tightest spans of its words; where those are nowhere, the
    text anywhere, inside words too.
    """
    query = queries.parse(needle)
    for finder in (_punctuated_matches, _phrase_matches, _word_matches, _inner_matches):
        first = True
        for found in finder(text, query):
            first = False
            yield found
        if not first:
            return


def _has_punctuation(query: Query) -> bool:
    return _PUNCTUATION.search(query.text) is not None


def _punctuated_matches(text: Text, query: Query) -> Iterator[tuple[int, int]]:
    words = tuple(fold(query.text).split())
    if not words or not _has_punctuation(query):
        return
    for base, piece, own in text.pieces(query, (Term(words, prefix=True),)):
        for start, end in literals(piece, query.text):
            if start < own and _starts_word(piece, start):
                yield base + start, base + end


def _phrase_matches(text: Text, query: Query) -> Iterator[tuple[int, int]]:
    words = tuple(fold(query.text).split())
    if not words:
        return
    phrase = Query(query.text, (Term(words),))
    for base, piece, own in text.pieces(query, phrase.terms):
        for start, end in sorted((s.start, s.end) for s in spans(piece, phrase, limit=len(piece))):
            if start < own:
                yield base + start, base + end


def _word_matches(text: Text, query: Query) -> Iterator[tuple[int, int]]:
    found = []
    if query.wanted:
        for base, piece, own in text.pieces(query, query.wanted):
            for span in spans(piece, query, limit=SPANS_CONSIDERED):
                if span.start < own:
                    found.append((base + span.start, base + span.end))
            if len(found) >= SPANS_CONSIDERED:
                break
    found.sort(key=lambda span: (span[1] - span[0], span[0]))
    yield from found


def _inner_matches(text: Text, query: Query) -> Iterator[tuple[int, int]]:
    for base, piece, own in text.pieces(query, ()):
        for start, end in literals(piece, query.text):
            if start < own:
                yield base + start, base + end


def _starts_word(text: str, start: int) -> bool:
    """Whether a word begins at `start`, as the index sees words."""
    if start == 0:
        return True
    before, here = fold(text[start - 1]), fold(text[start])
    return before.endswith(" ") or here.startswith(" ") or not before
