"""Answers about research papers, as typed values; offsets and sizes are in code points.

As with records, the next calls are derived from these values, so all surfaces offer the same.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evidence.model import Continuation, known, windows
from evidence.limits import BUDGETS
from evidence.text import clip

SEARCH = "search_papers"
BY_KEYWORD = "search_papers_by_keyword"
METADATA = "get_paper_metadata"
SUMMARY = "get_paper_summary"
SOURCE = "get_paper_source"
FACETS = "list_top_facets"

#: The fields by which papers can be counted: their own lists, and four others.
LISTED = ("author", "venue", "keyword", "institution", "tag")
CATEGORIES = (*LISTED, "year", "month", "template", "language")

#: Where a hit's snippet was proven, cheapest first; only the keyword search has `keywords`.
Place = Literal["title", "summary", "metadata", "source", "translated", "keywords"]


@dataclass(frozen=True, slots=True)
class PaperMatch:
    """The words of the query that a paper contains.

    `coverage` is the matched share of the query, weighted by the rarity of its words, 0 to 1.
    `forms` maps a word to its spelling in the paper: inflected or corrected.
    """

    coverage: float
    matched_words: list[str]
    missing_words: list[str]
    forms: dict[str, str]


@dataclass(frozen=True, slots=True)
class PaperCounts:
    """The counts of matching papers: `all` contain every word, `some` at least one."""

    all: int
    some: int


@dataclass(slots=True)
class PaperHit:
    """One paper of a search page.

    `snippet` is escaped text with balanced marks (`text.mark`), and `place` is where the match was
    proven. Without a proof `snippet` is the summary preview, unmarked, and `place` is None. `find`
    is the query that finds the match in the text of the paper, `lang` the translation it is in.
    `authors` are the first of `authors_total`. A `related` paper holds no word of the query.
    """

    paper_id: str
    title: str
    year: str
    venue: str
    authors: list[str]
    snippet: str
    place: Place | None
    find: str | None = None
    lang: str | None = None
    authors_total: int = 0
    match: PaperMatch | None = None  # of a search by words
    related: bool = False

    def continuations(self) -> list[Continuation]:
        """The call that finds the match if it is in the text, else the call for the metadata."""
        if self.find is None:
            return [Continuation(METADATA, {"paper_id": self.paper_id}, "metadata")]
        args = {"paper_id": self.paper_id, "lang": self.lang, "query": self.find}
        return [Continuation(SOURCE, known(args), "find")]


@dataclass(slots=True)
class PaperPage:
    """A page of either search. `args` are its arguments; `did_you_mean` are whole queries."""

    operation: str
    args: dict[str, Any]
    hits: list[PaperHit]
    offset: int
    has_more: bool
    next_cursor: str | None
    did_you_mean: list[str] = field(default_factory=list)
    ended_early: bool = False
    counts: PaperCounts | None = None  # of a search by words or fields
    ranking: str | None = None  # `words` or `words+meaning`, if the snapshot has vectors
    warnings: list[dict[str, Any]] = field(default_factory=list)

    def continuations(self) -> list[Continuation]:
        """The next page; without hits, the first page or queries that have hits."""
        arguments = {k: v for k, v in self.args.items() if k in ("query", "keyword", "limit")}
        if self.offset and not self.hits:
            return [Continuation(self.operation, arguments, "first_page")]
        if self.next_cursor is not None:
            return [
                Continuation(self.operation, {**arguments, "cursor": self.next_cursor}, "next_page")
            ]
        word = "query" if self.operation == SEARCH else "keyword"
        return [
            Continuation(self.operation, {word: near}, "did_you_mean") for near in self.did_you_mean
        ]


@dataclass(slots=True)
class Paper:
    """The metadata of a paper. Lists are complete unless `left_out` counts what is not shown."""

    paper_id: str
    title: str
    authors: list[str]
    year: str
    month: str
    publication_date: str
    venue: str
    doi: str | None
    arxiv_id: str | None
    bibtex_key: str | None
    keywords: list[str]
    institutions: list[str]
    tags: list[str]
    summary_preview: str
    preferred_summary_template: str
    available_summary_templates: list[str]
    languages: list[str]  # of translations
    output_language: str | None
    has_source: bool
    source_bytes: int | None
    has_pdf: bool
    bibtex: str | None
    left_out: dict[str, int] = field(default_factory=dict)

    def continuations(self) -> list[Continuation]:
        """The summaries, the source with its outline, the translations."""
        identity = {"paper_id": self.paper_id}
        calls = [Continuation(SUMMARY, identity, "summary")]
        for template in self.available_summary_templates:
            if template != self.preferred_summary_template:
                calls.append(Continuation(SUMMARY, {**identity, "template": template}, "summary"))
        if self.has_source:
            calls.append(Continuation(SOURCE, {**identity, "outline": True}, "outline"))
            calls.append(Continuation(SOURCE, identity, "source"))
        for lang in self.languages:
            calls.append(Continuation(SOURCE, {**identity, "lang": lang}, "translation"))
        return calls


@dataclass(slots=True, kw_only=True)
class PaperReading:
    """A reading of a paper's text: its source, or a translation to `lang`."""

    paper_id: str
    title: str
    lang: str | None
    total: int  # code points of the text

    def _call(self, why: str, **args: Any) -> Continuation:
        """A call for more of the same text."""
        identity = {"paper_id": self.paper_id, "lang": self.lang}
        return Continuation(SOURCE, known(identity | args), why)


@dataclass(slots=True, kw_only=True)
class PaperText(PaperReading):
    """A window of a summary (JSON), a source or a translation (Markdown).

    `version` are the first digits of the SHA-256 of the whole text: windows of one version belong
    together. `max_chars` is None if the caller asked for no size.
    """

    operation: str
    media_type: str
    text: str
    start: int
    version: str
    template: str | None
    max_chars: int | None
    size: int  # of the windows that follow: as asked for, or the default

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def complete(self) -> bool:
        return self.start == 0 and self.end >= self.total

    @property
    def marker(self) -> str:
        """The text appended to a truncated text, else ""."""
        remaining = self.total - self.end
        return f"\n[truncated: {remaining} more chars]" if remaining > 0 else ""

    def continuations(self) -> list[Continuation]:
        """The next and previous windows and the end, if there is text there."""
        calls = list[Continuation]()
        for why, offset, size in windows(self.start, self.end, self.total, self.size):
            most = size if why == "previous" else self.max_chars
            call = self._call(why, template=self.template, offset_chars=offset, max_chars=most)
            calls.append(replace(call, operation=self.operation))
        return calls


@dataclass(slots=True)
class TextMatch:
    """A proven match in a text: `shown` is escaped and marked, and covers `start`..`end`."""

    shown: str
    start: int
    end: int
    match_start: int
    match_end: int
    heading: str | None = None


@dataclass(slots=True, kw_only=True)
class PaperFinds(PaperReading):
    """The matches of a query in a source or a translation, in text order.

    `offset` is where the search began, `searched_to` where it stopped: at the end of the text,
    after a full page of matches, or at the deadline.
    """

    query: str
    offset: int
    searched_to: int
    matches: list[TextMatch]
    read_chars: int  # size of the window that opens a match
    read_before: int

    @property
    def complete(self) -> bool:
        return self.offset == 0 and self.searched_to >= self.total

    def read(self, match: TextMatch) -> Continuation:
        """The window around a match."""
        start = max(0, match.match_start - self.read_before)
        return self._call("read", offset_chars=start, max_chars=self.read_chars)

    def continuations(self) -> list[Continuation]:
        """The matches that follow, if the text was not searched to its end."""
        if self.searched_to >= self.total:
            return []
        return [self._call("next_match", query=self.query, offset_chars=self.searched_to)]


@dataclass(slots=True)
class Heading:
    """A heading: `start` is its offset, `size` extends to the next heading of its level."""

    title: str
    level: int
    start: int
    size: int


@dataclass(slots=True, kw_only=True)
class PaperOutline(PaperReading):
    """The headings of a text from `offset` on; `next_offset` if more follow."""

    offset: int
    headings: list[Heading]
    next_offset: int | None
    read_chars: int  # the most text that one read of a section requests

    def read(self, heading: Heading) -> Continuation:
        """The section under a heading, or as much of it as fits in one window."""
        size = max(1, min(heading.size, self.read_chars))
        return self._call("read", offset_chars=heading.start, max_chars=size)

    def continuations(self) -> list[Continuation]:
        """The headings that follow; the text itself if it has none."""
        if self.next_offset is not None:
            return [self._call("next", outline=True, offset_chars=self.next_offset)]
        return [] if self.headings else [self._call("source")]


@dataclass(slots=True)
class PaperFacets:
    """The most frequent values of a category: (value, papers), most papers first, then by value."""

    category: str
    values: list[tuple[str, int]]
    offset: int
    total: int  # values of the category
    args: dict[str, Any]
    ended_early: bool = False

    def search(self, value: str) -> Continuation:
        """The papers with a value."""
        if self.category in ("keyword", "tag"):
            return Continuation(BY_KEYWORD, {"keyword": value}, "papers")
        quoted = value.replace('"', " ")
        return Continuation(SEARCH, {"query": f'{self.category}:"{quoted}"'}, "papers")

    def continuations(self) -> list[Continuation]:
        """The values that follow; the first ones if the offset is past the end."""
        if self.offset and not self.values:
            arguments = {name: value for name, value in self.args.items() if name != "offset"}
            return [Continuation(FACETS, arguments, "first_page")]
        after = self.offset + len(self.values)
        if after >= self.total:
            return []
        return [Continuation(FACETS, {**self.args, "offset": after}, "next_page")]


def line(text: str) -> str:
    """A title, a name or similar for display, at most `BUDGETS.paper_line_chars` long."""
    return clip(text, BUDGETS.paper_line_chars)
