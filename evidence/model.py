"""What was read, as typed values: the words every surface and renderer shares.

Offsets and sizes are code points of the stored text. Continuations are derived from these values,
never stored beside them, so that all surfaces offer the same next step.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from evidence.continuation import REPLACED_BY_CURSOR, Continuation
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.text import clip

READ_FIELD = "read_record_field"
GRANULARITIES = ("minute", "hour", "day", "week", "month", "quarter", "year")
#: The next larger size of a time bucket.
COARSER = dict(pairwise(GRANULARITIES))


class Source(NamedTuple):
    """Which configured connection something came from."""

    connection_id: str | None
    connector_key: str | None
    display_name: str | None

    @property
    def label(self) -> str:
        named = clip(self.display_name, BUDGETS.label_chars) if self.display_name else None
        return named or self.connector_key or self.connection_id or ""


@dataclass(slots=True)
class Match:
    """A window an upstream proved to hold the match. Without a proof there is no `Match`.

    `shown` is the text with balanced marks, control characters written out (`text.mark`).
    `start`, `total` and `match_*` are None where the upstream did not say. `read` lands on the
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
    """One search hit. `id` is the printed handle of `ref`."""

    ref: RecordRef
    id: str
    title: str | None
    at: str | None
    source: Source
    url: str
    matched_fields: list[str]
    matches: list[Match]

    @property
    def fetch(self) -> Continuation:
        return Continuation("fetch", {"id": self.id}, "fetch")


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What one source of a package did for a page.

    `state` is answered, failed or timed_out; `hits` are those it has on the page; `next_step` says
    what to do where it did not answer.
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
    """Which of the `members` of a package were asked for a page; `waiting` ones are later."""

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
        """Whether hits of some source may be missing so far."""
        return bool(self.silent) or self.waiting > 0


@dataclass(frozen=True, slots=True)
class WordsAlone:
    """Words of a query without hits: which occur alone and which do not; `query` has hits."""

    found: list[str]
    missing: list[str]
    query: str | None = None


@dataclass(slots=True)
class SearchPage:
    """A page of hits. `args` are the arguments that asked for it; `fan_in` is there in packages.

    `words` is there where nothing was found and the upstream looked for single words.
    """

    args: dict[str, Any]
    hits: list[Hit]
    has_more: bool
    next_cursor: str | None
    count: int | None
    count_accuracy: str | None
    recall: dict[str, Any]
    warnings: list[dict[str, Any]]
    ended_early: bool = False
    fan_in: FanIn | None = None
    words: WordsAlone | None = None

    def continuations(self) -> list[Continuation]:
        if not self.hits and not self.next_cursor:
            streams = Continuation("schema", {}, "streams")
            if self.words is None or self.words.query is None:
                return [streams]
            fewer = {**self.args, "query": self.words.query}
            fewer.pop("cursor", None)
            return [Continuation("search", fewer, "retry"), streams]
        return next_page("search", self.args, self.next_cursor)


@dataclass(slots=True)
class Buckets:
    """An aggregate: one value, or a page of groups with what it leaves out."""

    args: dict[str, Any]
    stream: str
    metric: str
    field: str | None
    value: Any
    groups: list[dict[str, Any]] | None
    group_by: str | None
    granularity: str | None
    time_zone: str | None
    other_count: int | None
    group_count: int | None
    next_cursor: str | None
    filtered_record_count: int | None
    warnings: list[dict[str, Any]]
    envelope: dict[str, Any]
    ended_early: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether groups are missing that no cursor leads to."""
        return any(one.get("param") == "cursor" for one in self.warnings)

    def continuations(self) -> list[Continuation]:
        """The further groups; from a source without cursors, the call that shows most of them."""
        if self.next_cursor or not self.is_cut:
            return next_page("aggregate", self.args, self.next_cursor)
        limit = self.args.get("limit") or CONTRACT.groups_default
        if limit < CONTRACT.page_items and not self.ended_early:
            args = {**self.args, "limit": CONTRACT.page_items}
            return [Continuation("aggregate", args, "more_groups")]
        if self.granularity in COARSER:
            args = {**self.args, "granularity": COARSER[self.granularity]}
            return [Continuation("aggregate", args, "coarser")]
        return [Continuation("schema", {"stream": self.stream}, "narrow")]


@dataclass(slots=True)
class StreamRow:
    """A stream as the schema shows it: `fields` maps names to capability flags."""

    name: str
    connector_key: str | None
    label: str | None
    connections: list[Source]
    fields: dict[str, str]
    relations: list[dict[str, Any]]
    views: list[dict[str, Any]]
    primary_key: list[str]
    cursor_field: str | None
    envelope: dict[str, Any]


@dataclass(slots=True)
class SchemaIndex:
    """The schema of a grant: an index, or the details of one stream."""

    args: dict[str, Any]
    rows: list[StreamRow]
    detail: str
    warnings: list[dict[str, Any]]
    envelope: dict[str, Any]


def window_read(id: str, field_path: str, window: dict[str, Any]) -> Continuation:
    """The call that opens a field at a window; `window` in the words of read_record_field."""
    return Continuation(READ_FIELD, {"id": id, "field_path": field_path, **window}, "read")


def next_page(operation: str, args: dict[str, Any], cursor: str | None) -> list[Continuation]:
    """The call of the next page: the same arguments with the cursor."""
    if not cursor:
        return []
    kept = {name: value for name, value in args.items() if name not in REPLACED_BY_CURSOR}
    return [Continuation(operation, {**kept, "cursor": cursor}, "next_page")]
