"""What a hit shows: the match, proven in the cheapest text of the paper that holds it."""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evidence.find import Span, spans
from evidence.fold import fold
from evidence.limits import BUDGETS
from evidence.papers import Place
from evidence.query import Query, Term
from evidence.text import excerpt, mark
from service.papers.authors import unspaced
from service.papers.query import PaperQuery

_COLUMNS: dict[Place, str] = {"summary": "c2", "source": "c3", "translated": "c4"}

#: Cheapest first. The index is asked before a long one is read.
PLACES: tuple[Place, ...] = ("title", "summary", "metadata", "source", "translated")
LONG: tuple[Place, ...] = ("source", "translated")

_SCRIPTS = {
    "ko": re.compile("[\uac00-\ud7af]"),
    "ja": re.compile("[\u3040-\u30ff]"),
    "zh": re.compile("[\u4e00-\u9fff]"),
}

#: Bytes of a long text that are looked at before it is read up to `paper_proof_bytes`.
FIRST_BYTES = (16_384, 131_072)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Marked text and where it stands; without a proof `place` is None."""

    text: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one full-text row; `title` and `metadata` are at hand, the others are read.

    `spelled` gives the FTS5 expression of a term.
    """

    db: sqlite3.Connection
    spelled: Callable[[Term], str]
    rowid: int
    title: str
    metadata: str

    def of(self, place: Place) -> Iterator[str]:
        """A text, and where it is long its beginning first: what lies behind is not loaded."""
        if place in _COLUMNS:
            for size in (*FIRST_BYTES, BUDGETS.paper_proof_bytes):
                text, complete = self._beginning(_COLUMNS[place], size)
                yield text
                if complete:
                    return
        else:
            yield self.title if place == "title" else self.metadata

    def may_hold(self, place: Place, terms: tuple[Term, ...]) -> int:
        """How many terms stand in a text, by the index, without a look at the text."""
        return sum(self._indexed(place, term) for term in terms)

    def _indexed(self, place: Place, term: Term) -> bool:
        match = f"{place} : {self.spelled(term)}"
        found = self.db.execute(
            "SELECT 1 FROM paper_fts WHERE paper_fts MATCH ? AND rowid = ?", (match, self.rowid)
        )
        return found.fetchone() is not None

    def _beginning(self, column: str, size: int) -> tuple[str, bool]:
        """At most `size` bytes of a text without a word that is cut, and whether this is all."""
        try:
            blob = self.db.blobopen("paper_fts_content", column, self.rowid, readonly=True)
        except sqlite3.OperationalError:  # NULL
            return "", True
        with blob:
            piece, total = blob.read(size).decode("utf-8", "ignore"), len(blob)
        if total > size:
            piece = piece[: piece.rfind(" ") + 1]
        return unspaced(piece), total <= size


@dataclass(frozen=True, slots=True)
class _Proof:
    """A span of a text and how many of the wanted terms it holds."""

    place: Place
    text: str
    span: Span
    held: int
    complete: bool


def snippet(texts: Texts, query: PaperQuery, preview: str) -> Snippet:
    """The first text that holds all words of the query, else the one that holds most of them."""
    best: _Proof | None = None
    for place in PLACES:
        wanted = query.proof(title=place == "title")
        promised = len(wanted.wanted)
        if place in LONG:
            promised = texts.may_hold(place, wanted.wanted)
            if promised < len(wanted.wanted) and best and promised <= best.held:
                continue
        proof = _proof(texts, place, wanted, promised) if promised else None
        if proof and (proof.complete or best is None or proof.held > best.held):
            best = proof
        if proof and proof.complete:
            break
    if best is None:
        return Snippet(plain(preview), None)
    return Snippet(marked(best.text, best.span), best.place)


def _proof(texts: Texts, place: Place, query: Query, promised: int) -> _Proof | None:
    """The best proof in a text; the search ends where as many terms as promised are found."""
    best: _Proof | None = None
    for text in texts.of(place):
        for span in spans(text, query, limit=1, partial=True):
            held = _held(text, span, query)
            if best is None or held > best.held:
                best = _Proof(place, text, span, held, held == len(query.wanted))
        if best and best.held >= promised:
            break
    return best


def marked(text: str, span: Span) -> str:
    """An excerpt around a span with its marks, at most about `paper_snippet_bytes`."""
    size = BUDGETS.paper_snippet_bytes
    while True:
        start, end = excerpt(text, span, size=size)
        shown, _ = mark(text, start=start, end=end, marks=span.marks)
        used = len(shown.encode())
        if used <= BUDGETS.paper_snippet_bytes or size == 1:
            before, after = "…" if start else "", "…" if end < len(text) else ""
            return f"{before}{shown}{after}"
        size = max(1, min(size - 1, size * BUDGETS.paper_snippet_bytes // used))


def plain(text: str) -> str:
    """The beginning of a text, escaped, without marks."""
    return marked(text, Span(0, 0, ()))


def language_of(text: str, languages: Sequence[str]) -> str:
    """The translation that a text was taken from, by its script; the first where that says nothing.

    The index has the translations of a paper in one text.
    """
    script = next((code for code, letters in _SCRIPTS.items() if letters.search(text)), None)
    for lang in languages:
        code = lang[:2].lower()
        if code == script or (script is None and code not in _SCRIPTS):
            return lang
    return languages[0]


def _held(text: str, span: Span, query: Query) -> int:
    """How many terms a span holds."""
    found = f" {' '.join(fold(text[span.start : span.end]).split())} "
    return sum(_needle(term) in found for term in query.wanted)


def _needle(term: Term) -> str:
    return f" {' '.join(term.words)}{'' if term.prefix else ' '}"
