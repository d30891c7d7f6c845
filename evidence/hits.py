"""Search pages and their hits as typed values: proven windows, next calls and MCP JSON.

The text channel has the same information.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from evidence.cached import cached_property
from evidence.fold import folded_words
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.model import DELETED_AT, Continuation, FanIn, Source, absolute, chars, known
from evidence.model import label_of, next_page, source_of
from evidence.text import clip, marked_texts, split

#: Calls for words that no window of a hit shows, besides those of its windows and the whole record.
CALLS_MAX: Final = 2
#: Words of questions and of marks, folded: many hits have the same ones.
_folded = lru_cache(maxsize=1024)(folded_words)
#: Optional members of a hit in `results`, in addition to its identity.
FACTS: Final = (
    *("at", "rank", "coverage"),
    *("matched_words", "missing_words", "forms", "matched_fields", DELETED_AT),
)
#: Cached properties of a hit that depend on its windows.
OF_WINDOWS: Final = frozenset({"hidden", "result", "rung"})


@dataclass
class Match:
    """A window that an upstream proved to contain the match. Without a proof there is no `Match`.

    `shown` is the text with balanced marks, control characters written out (`text.mark`). `start`,
    `total` and `match_*` are None if the upstream did not report them. `read` opens the field at
    the match.
    """

    field_path: str
    shown: str
    start: int | None
    end: int | None
    total: int | None
    match_start: int | None
    match_end: int | None
    complete: bool
    read: Continuation

    @cached_property
    def plain(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The text without its marks, and the marked ranges."""
        return split(self.shown)

    @cached_property
    def marked(self) -> list[str]:
        """The marked words and phrases, folded."""
        return list(map(_folded, marked_texts(self.shown)))

    @property
    def evidence(self) -> dict[str, Any]:
        """The position of the window; the hit's `evidence_preview` has the text of the first."""
        evidence: dict[str, Any] = {"field_path": self.field_path}
        if self.start is not None:
            evidence |= chars(self, "start", "end", "total")
        if self.match_start is not None:
            evidence |= chars(self, "match_start", "match_end")
        evidence["complete"] = self.complete
        if not self.complete:
            evidence["read"] = self.read.as_json
        return evidence


class Related(NamedTuple):
    """Why a record without a word of the question is shown: the field that is nearest in meaning.

    `begins` is the beginning of the record's text, whatever the question; `read` opens the field at
    the nearest passage. Nothing is proven.
    """

    field_path: str
    begins: str
    read: Continuation

    @property
    def as_json(self) -> dict[str, Any]:
        return {"field_path": self.field_path, "read": self.read.as_json}


class Hidden(NamedTuple):
    """Matched words that a hit does not show, and the call that shows them."""

    words: list[str]
    read: Continuation


@dataclass
class Hit:
    """One search hit. `id` is the printed handle of `ref`, `rank` its number among all hits.

    `deleted_at` is when its source deleted the record, if the owner keeps such records.
    `coverage` is the share of the question that the record contains, 0 to 1, None if the source
    does not report it; `forms` maps a word of the question to its form in the text. `uncut` are
    its windows before some were cut or left out to fit a page. A `related` hit holds no word of the
    question and has no windows.
    """

    ref: RecordRef
    id: str
    title: str | None
    authored_at: str | None
    emitted_at: str | None
    source: Source
    url: str
    matched_fields: list[str] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    rank: int | None = None
    coverage: float | None = None
    matched_words: list[str] = field(default_factory=list)
    missing_words: list[str] = field(default_factory=list)
    forms: dict[str, str] = field(default_factory=dict)
    related: Related | None = None
    deleted_at: str | None = None
    uncut: Sequence[Match] = field(default=(), compare=False)

    def showing(self, matches: list[Match], uncut: Sequence[Match] | None = None) -> "Hit":
        """The hit with other windows. It keeps what was computed and does not depend on them."""
        hit = object.__new__(Hit)
        computed = vars(self).items()
        vars(hit).update((name, value) for name, value in computed if name not in OF_WINDOWS)
        hit.matches = matches
        if uncut is not None:
            hit.uncut = uncut
            vars(hit).pop("_words_uncut", None)
        return hit

    @cached_property
    def at(self) -> str | None:
        """The time of the event, in short form; never the time of import."""
        return clip(self.authored_at, BUDGETS.time_chars) if self.authored_at else None

    @property
    def deleted_at_source(self) -> str | None:
        """When its source deleted the record, in short form."""
        return clip(self.deleted_at, BUDGETS.time_chars) if self.deleted_at else None

    @cached_property
    def heading(self) -> str:
        """Its title, or else a description: `label · stream · time`."""
        parts = (label_of(self.source), self.ref.stream, self.at)
        return clip(self.title or " · ".join(filter(None, parts)), BUDGETS.title_chars)

    @cached_property
    def hidden(self) -> list[Hidden]:
        """The words that are neither in the heading nor marked in a window, each with its call."""
        if not self.matches or self.uncut == self.matches:
            return []
        heading = self._folded_heading
        visible = {word for word in self.matched_words if f" {_folded(word)} " in heading}
        words_of = dict(zip(map(id, self.uncut), self._words_uncut))
        for match in self.matches:
            visible |= words_of[id(match)] if id(match) in words_of else self._words(match)
            visible.update(self._alike(match))
        calls = {match.read.key: Hidden([], match.read) for match in self.matches}
        most = len(calls) + CALLS_MAX
        for match, words_uncut in zip(self.uncut, self._words_uncut):
            if words := words_uncut - visible:
                read = self.fetch if len(calls) >= most else match.read
                calls.setdefault(read.key, Hidden([], read)).words.extend(sorted(words))
                visible |= words
        return [entry for entry in calls.values() if entry.words]

    @property
    def has_every_word(self) -> bool:
        """Whether one window marks every word of the question."""
        words = {*self.matched_words}
        return not self.missing_words and any(words <= self._words(match) for match in self.matches)

    @property
    def names_words(self) -> bool:
        """Whether the heading holds a word of the question."""
        forms = (self.forms.get(word, word) for word in self.matched_words)
        return any(f" {_folded(form)} " in self._folded_heading for form in forms)

    @cached_property
    def _folded_heading(self) -> str:
        return f" {folded_words(self.heading)} "

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """The words of the question by their folded forms, and by themselves."""
        spellings = {_folded(word): word for word in self.matched_words}
        if not self.forms:
            return spellings
        forms = {_folded(self.forms.get(word, word)): word for word in self.matched_words}
        return forms | spellings

    @cached_property
    def _words_uncut(self) -> list[set[str]]:
        """The words of the question that each window marked before some were cut."""
        return list(map(self._words, self.uncut))

    def _words(self, match: Match) -> set[str]:
        """The words of the question that a window marks, as far as it is known which they are."""
        spellings = self._spellings
        return {spellings[run] for run in match.marked if run in spellings}

    def _alike(self, match: Match) -> Iterator[str]:
        """Words of which the text has forms, if a window may mark further forms of them."""
        for word in self.forms:
            folded = _folded(word)
            if any(run[:1] == folded[:1] or folded in run for run in match.marked):
                yield word

    @property
    def fetch(self) -> Continuation:
        return Continuation("fetch", {"id": self.id}, "fetch")

    @cached_property
    def result(self) -> dict[str, Any]:
        """The hit in `results`: what it is, how it matches, and its first window.

        Shared, so never modify it. Its `url` is relative.
        """
        if not self.matches:
            return self._record | self.kind
        return self._record | {"evidence_preview": self.matches[0].shown} | self.kind

    @cached_property
    def _record(self) -> dict[str, Any]:
        """What the hit is, and how it matches."""
        facts = ((name, getattr(self, name)) for name in FACTS)
        return {
            "id": self.id,
            "title": self.heading,
            "url": self.url,
            **source_of(self.source),
            "stream": self.ref.stream,
            "record_id": self.ref.record_id,
            **{name: value for name, value in facts if value not in (None, [], {})},
        }

    @property
    def kind(self) -> dict[str, Any]:
        """What a related hit has instead of evidence."""
        if self.related is None:
            return {}
        related = self.related
        return {"kind": "related", "begins": related.begins, "related": related.as_json}

    def addressed(self, base_url: str) -> dict[str, Any]:
        """The same with the public address of the record."""
        return {**self.result, "url": absolute(base_url, self.url)}

    @cached_property
    def rung(self) -> dict[str, Any]:
        """The hit in the ladder: positions and calls of its windows. Shared, so never modify it."""
        if self.related is not None:
            return {"id": self.id, "read": self.related.read.as_json}
        if not self.matches:
            return {"id": self.id, "fetch": self.fetch.as_json}
        first, *rest = self.matches
        further = [{**match.evidence, "preview_text": match.shown} for match in rest]
        rung = {
            "id": self.id,
            "evidence_preview": first.shown,
            "evidence": [first.evidence, *further],
        }
        if self.hidden:
            rung["not_shown"] = [
                {"words": entry.words, "read": entry.read.as_json} for entry in self.hidden
            ]
        return rung


@dataclass(frozen=True, slots=True)
class Counts:
    """Records that contain every wanted word, and at least one; lower bounds unless `exact`."""

    all: int | None
    some: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a page would end if it were cut: after this many hits, with a cursor for the others."""

    hits: int
    next_cursor: str


@dataclass
class SearchPage:
    """A page of hits. `args` are the arguments of the request; packages have `fan_in`.

    `absent_words` occur nowhere in the grant; `nearest_words` are spelled most like them. `retry`
    are replacement arguments with which the search has hits; None removes one. `tail_cut` means
    that the page ends where the scores fall off; `tail` is where an uncut page would end.
    `left_out` is how many matching records `sort: newest` does not show. `repaired_query` is the
    query with corrected words, if any. `ranking` is what orders the page, `words`, `meaning` or
    `words+meaning`, and `model` the one that the meaning is by; None at other servers.
    `retrieval_mode` is `semantic` or `hybrid` on PDPP's routes for these. `first_hits` makes the
    page with this many of its hits, fewer than it has; None if it has to be asked for. `as_of` are
    its connections that are not up to date.
    """

    args: dict[str, Any]
    hits: list[Hit]
    has_more: bool
    next_cursor: str | None
    counts: Counts | None
    recall: dict[str, Any]
    warnings: list[dict[str, Any]]
    as_of: tuple[Source, ...] = ()
    absent_words: list[str] = field(default_factory=list)
    nearest_words: dict[str, list[str]] = field(default_factory=dict)
    retry: dict[str, Any] | None = None
    tail_cut: bool = False
    tail: Tail | None = None
    left_out: int | None = None
    ended_early: bool = False
    fan_in: FanIn | None = None
    ranking: str | None = None
    model: str | None = None
    retrieval_mode: str | None = field(default=None, compare=False)
    repaired_query: str | None = field(default=None, compare=False)
    first_hits: Callable[[int], "SearchPage"] | None = field(default=None, compare=False)

    @cached_property
    def proven(self) -> list[Hit]:
        """The hits that hold a word, without related ones."""
        return [hit for hit in self.hits if hit.related is None]

    @property
    def shows_whole_fields(self) -> bool:
        """True if a window of the page is a whole field, and so has no call."""
        return any(match.complete for hit in self.hits for match in hit.matches)

    def numbered(self) -> list[tuple[int, Hit]]:
        """The hits with their ranks, or with their positions on the page if they have none."""
        return [(hit.rank or position, hit) for position, hit in enumerate(self.hits, start=1)]

    def continuations(self) -> list[Continuation]:
        if self.next_cursor:
            return next_page("search", self.args, self.next_cursor)
        if self.proven:
            return self._narrower()
        streams = Continuation("schema", {}, "streams")
        if self.retry is None:
            return [streams]
        return [Continuation("search", self._again(self.retry), "retry"), streams]

    def _again(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The arguments for the first page, with some changed; None leaves one out."""
        return known({**self.args, **changes, "cursor": None})

    def _narrower(self) -> list[Continuation]:
        """A narrower search, for the end of a list that leaves matches out.

        It requires every word, or else ends before the earliest hit of the page.
        """
        if self.recall.get("ranking_scope") != "candidate_window":
            return []
        none = self.counts is not None and self.counts.all == 0 and self.counts.exact
        words = len(self.proven[0].matched_words) + len(self.proven[0].missing_words)
        if self.args.get("words") != "all" and words != 1 and not none:
            changes = {"words": "all"}
            if self.repaired_query:
                changes["query"] = self.repaired_query
        elif earliest := self.recall.get("earliest_event_time"):
            changes = {"until": earliest}
        else:
            return []
        return [Continuation("search", self._again(changes), "narrow")]
