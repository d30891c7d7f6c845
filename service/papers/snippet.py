"""Builds the excerpt of a hit from the first text that proves it; shorter texts are tried first."""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evidence.find import Span, passages
from evidence.fold import folded_words
from evidence.limits import BUDGETS
from evidence.papers import Place
from evidence.ranking import Group
from evidence.text import excerpt, mark
from service.papers.names import unspaced
from service.papers.words import matches_row

_COLUMNS: dict[Place, str] = {"summary": "c2", "source": "c3", "translated": "c4"}

#: Cheapest first. The index is checked before a long text is read.
PLACES: tuple[Place, ...] = ("title", "summary", "metadata", "source", "translated")
LONG: tuple[Place, ...] = ("source", "translated")

_PARTED = re.compile(r'[\s"“”„«»]')
_SCRIPTS = {
    "ko": re.compile("[\uac00-\ud7af]"),
    "ja": re.compile("[\u3040-\u30ff]"),
    "zh": re.compile("[\u4e00-\u9fff]"),
}

#: The bytes of a long text that are read first; later up to `paper_proof_bytes`.
FIRST_BYTES = (16_384, 131_072)
#: The code points after which the search for a better passage stops.
ENOUGH_CHARS = 16_384


@dataclass(frozen=True, slots=True)
class Snippet:
    """Marked text and its place; without a proof `place` is None.

    `words` maps the folded spelling of each marked word to its spelling there.
    """

    text: str
    place: Place | None
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def find(self) -> str:
        """The marked words as a query that finds them there: those of a phrase in quotes."""
        return " ".join(
            f'"{key}"' if _PARTED.search(words) else words for key, words in self.words.items()
        )


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one full-text row; `title` and `metadata` are given, the others are read.

    `expression` gives the FTS5 expression of any of some terms.
    """

    db: sqlite3.Connection
    expression: Callable[..., str]
    rowid: int
    title: str
    metadata: str

    def of(self, field_name: Place) -> Iterator[str]:
        """A text; for a long one only the beginning at first, so that the rest is not loaded."""
        if field_name in _COLUMNS:
            for size in (*FIRST_BYTES, BUDGETS.paper_proof_bytes):
                text, complete = self._beginning(_COLUMNS[field_name], size)
                yield text
                if complete:
                    return
        else:
            yield self.title if field_name == "title" else self.metadata

    def promised(self, field_name: Place, groups: Sequence[Group]) -> list[Group]:
        """The groups that a text contains according to the index, without reading the text."""
        return [
            group
            for group in groups
            if matches_row(
                self.db, f"{field_name} : {self.expression(*group.spellings)}", self.rowid
            )
        ]

    def _beginning(self, column: str, size: int) -> tuple[str, bool]:
        """At most `size` bytes of a text, without a partial word, and whether this is all."""
        try:
            blob = self.db.blobopen("paper_fts_content", column, self.rowid, readonly=True)
        except sqlite3.OperationalError:  # NULL
            return "", True
        with blob:
            beginning, total = blob.read(size).decode("utf-8", "ignore"), len(blob)
        if total > size:
            beginning = beginning[: beginning.rfind(" ") + 1]
        return unspaced(beginning), total <= size


class _Proof(NamedTuple):
    """The best passage of a text; `worth` is the summed idf of the groups in it."""

    place: Place
    text: str
    span: Span
    worth: float


def snippet(
    texts: Texts, groups: Sequence[Group], in_title: Sequence[Group], preview: str
) -> Snippet:
    """The best passage of the first text that contains most of the paper's groups.

    `in_title` are groups that count only in the title.
    """
    best: _Proof | None = None
    most = 0.0
    for field_name in PLACES:
        field_groups = (*groups, *in_title) if field_name == "title" else groups
        promised = texts.promised(field_name, field_groups)
        worth = sum(group.idf for group in promised)
        if not promised or (best is not None and field_name in LONG and worth <= most):
            continue
        proof = _proof(texts, field_name, promised)
        if proof is not None:
            most = max(most, worth)
            best = proof if best is None or proof.worth > best.worth else best
    if best is None:
        return Snippet(plain(preview), None)
    words = (best.text[start:end] for start, end in best.span.marks)
    spellings = {folded_words(word): word for word in words}
    return Snippet(marked(best.text, best.span), best.place, spellings)


def _proof(texts: Texts, field_name: Place, groups: Sequence[Group]) -> _Proof | None:
    """The best passage of a text; more of it is read until a passage with all groups is found.

    A passage within `ENOUGH_CHARS` of text is enough.
    """
    best: _Proof | None = None
    for text in texts.of(field_name):
        for span, worth, present in passages(text, groups, limit=1):
            if best is None or worth > best.worth:
                best = _Proof(field_name, text, span, worth)
            if len(present) == len(groups):
                return best
        if best is not None and len(text) >= ENOUGH_CHARS:
            break
    return best


def marked(text: str, span: Span) -> str:
    """An excerpt around a span with its marks, at most about `paper_snippet_bytes`."""
    size = BUDGETS.paper_snippet_bytes
    while True:
        start, end = excerpt(text, span, size=size)
        marked_text, _ = mark(text, start=start, end=end, marks=span.marks)
        used = len(marked_text.encode())
        if used <= BUDGETS.paper_snippet_bytes or size == 1:
            before, after = "…" if start else "", "…" if end < len(text) else ""
            return f"{before}{marked_text}{after}"
        size = max(1, min(size - 1, size * BUDGETS.paper_snippet_bytes // used))


def plain(text: str) -> str:
    """The beginning of a text, escaped, without marks."""
    return marked(text, Span(0, 0, ()))


def language_of(text: str, languages: Sequence[str]) -> str:
    """The translation that a text comes from, detected by script, or else the first one.

    The index has all translations of a paper in one text.
    """
    script = next((code for code, letters in _SCRIPTS.items() if letters.search(text)), None)
    for lang in languages:
        code = lang[:2].lower()
        if code == script or (script is None and code not in _SCRIPTS):
            return lang
    return languages[0]
