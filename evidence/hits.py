"""Search results as typed values: hits with their proven windows, and their page."""

from dataclasses import dataclass, field
from typing import Any, Final

from evidence.continuation import Continuation
from evidence.handles import RecordRef
from evidence.limits import BUDGETS
from evidence.model import Source, next_page
from evidence.text import clip

#: Arguments that limit what is searched.
LIMITING: Final = ("filter", "since", "until", "streams", "connection_id")


@dataclass(slots=True)
class Match:
    """A window an upstream proved to hold the match. Without a proof there is no `Match`.

    `shown` is the text with balanced marks, control characters written out (`text.mark`).
    `start`, `total` and `match_*` are None if the upstream did not report them. `read` lands on the
    match.
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


@dataclass(slots=True)
class Hit:
    """One search hit. `id` is the printed handle of `ref`, `rank` its number among all hits.

    `coverage` is the share of the question the record holds, 0 to 1, None if the source does not
    report it; `forms` maps a word of the question to the form of it that the text has.
    """

    ref: RecordRef
    id: str
    title: str | None
    authored_at: str | None
    emitted_at: str | None
    source: Source
    url: str
    matched_fields: list[str]
    matches: list[Match]
    rank: int | None = None
    coverage: float | None = None
    matched_words: list[str] = field(default_factory=list)
    missing_words: list[str] = field(default_factory=list)
    forms: dict[str, str] = field(default_factory=dict)

    @property
    def at(self) -> str | None:
        """The time of the event, in short form; never the time of import."""
        return clip(self.authored_at, BUDGETS.time_chars) if self.authored_at else None

    @property
    def fetch(self) -> Continuation:
        return Continuation("fetch", {"id": self.id}, "fetch")


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The part of one source of a package in a page.

    `state` is answered, failed or timed_out; `hits` are those it has on the page; `next_step` says
    what to do if it did not answer.
    """

    name: str
    state: str
    hits: int = 0
    grant_id: str | None = None
    code: str | None = None
    message: str | None = None
    next_step: str | None = None


@dataclass(frozen=True, slots=True)
class FanIn:
    """The `members` of a package that were asked for a page; `waiting` ones come later."""

    members: int
    waiting: int
    sources: list[SourceReport]

    def of(self, state: str) -> list[SourceReport]:
        return [source for source in self.sources if source.state == state]

    @property
    def silent(self) -> list[SourceReport]:
        """The sources that did not answer."""
        return [source for source in self.sources if source.state != "answered"]

    @property
    def incomplete(self) -> bool:
        """True if hits of some source may be missing so far."""
        return bool(self.silent) or self.waiting > 0


@dataclass(frozen=True, slots=True)
class Counts:
    """Records that hold every wanted word, and at least one; lower bounds unless `exact`."""

    all: int | None
    some: int
    exact: bool


@dataclass(slots=True)
class SearchPage:
    """A page of hits. `args` are the arguments that asked for it; `fan_in` is there in packages.

    `absent_words` occur nowhere in the grant, `nearest_words` are those spelled most like them.
    `retry` are arguments in place of which the search has hits; None leaves one out. `tail_cut`
    says that the page ends where the scores fall off, `left_out` how many matching records
    `sort: newest` does not show. `repaired_query` is the query with corrected words, if there are.
    """

    args: dict[str, Any]
    hits: list[Hit]
    has_more: bool
    next_cursor: str | None
    counts: Counts | None
    recall: dict[str, Any]
    warnings: list[dict[str, Any]]
    absent_words: list[str] = field(default_factory=list)
    nearest_words: dict[str, list[str]] = field(default_factory=dict)
    retry: dict[str, Any] | None = None
    tail_cut: bool = False
    left_out: int | None = None
    ended_early: bool = False
    fan_in: FanIn | None = None
    repaired_query: str | None = field(default=None, compare=False)

    def numbered(self) -> list[tuple[int, Hit]]:
        """The hits with their ranks; with their places on the page if they have none."""
        return [(hit.rank or place, hit) for place, hit in enumerate(self.hits, start=1)]

    def continuations(self) -> list[Continuation]:
        if self.next_cursor:
            return next_page("search", self.args, self.next_cursor)
        if self.hits:
            return self._narrower()
        streams = Continuation("schema", {}, "streams")
        if self.retry is None:
            return [streams]
        return [Continuation("search", self._again(self.retry), "retry"), streams]

    def _again(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The arguments for the first page, with some changed; None leaves one out."""
        args = {**self.args, **changes, "cursor": None}
        return {name: value for name, value in args.items() if value is not None}

    def _narrower(self) -> list[Continuation]:
        """The call that needs every word, at the end of a list that leaves matches out."""
        bounded = self.recall.get("ranking_scope") == "candidate_window"
        none = self.counts is not None and self.counts.all == 0 and self.counts.exact
        if not bounded or none or self.args.get("words") == "all":
            return []
        repaired = {"query": self.repaired_query} if self.repaired_query else {}
        args = self._again({**repaired, "words": "all"})
        return [Continuation("search", args, "narrow")]
