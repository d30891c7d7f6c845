"""What was read, as typed values: the words every surface and renderer shares.

Offsets and sizes are code points of the stored text. Continuations are derived from these values,
never stored beside them, so that all surfaces offer the same next step.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from evidence.binary import Bytes
from evidence.continuation import REPLACED_BY_CURSOR, Continuation
from evidence.handles import RecordRef
from evidence.limits import CONTRACT

READ_FIELD = "read_record_field"
GRANULARITIES = ("minute", "hour", "day", "week", "month", "quarter", "year")
#: The next larger size of a time bucket.
COARSER = dict(pairwise(GRANULARITIES))
#: Fields that a list names in the call which reads them; the call for more reads all fields.
FIELDS_NAMED = 20


class Source(NamedTuple):
    """Which configured connection something came from."""

    connection_id: str | None
    connector_key: str | None
    display_name: str | None

    @property
    def label(self) -> str:
        return self.display_name or self.connector_key or self.connection_id or ""


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


@dataclass(frozen=True, slots=True)
class Partial:
    """A value shown in part: `end` of `total` code points, and the call that reads it.

    `total` is None for bytes, of which no text is shown.
    """

    field_path: str
    end: int
    total: int | None
    read: Continuation


@dataclass(slots=True)
class RecordItem:
    """One record of a list. `data` is the projected payload; values in `partial` are previews.

    `left_out` are fields that are not shown at all, for want of room. `bytes` are the blobs and
    the base64 texts in `data`.
    """

    ref: RecordRef
    id: str
    source: Source
    emitted_at: str | None
    data: dict[str, Any]
    deleted: bool
    envelope: dict[str, Any]
    partial: list[Partial] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    related: list[Continuation] = field(default_factory=list)
    bytes: list[Bytes] = field(default_factory=list)

    def rest(self) -> Continuation | None:
        """The call that shows the fields left out, by name or with all the others."""
        if not self.left_out:
            return None
        few = len(self.left_out) <= FIELDS_NAMED
        names = {"fields": self.left_out} if few else {}
        return Continuation("fetch", {"id": self.id, **names}, "fields")


@dataclass(slots=True)
class RecordPage:
    """A page of one stream, or of its changes."""

    args: dict[str, Any]
    stream: str
    records: list[RecordItem]
    has_more: bool
    next_cursor: str | None
    next_changes_since: str | None
    count: dict[str, Any]
    warnings: list[dict[str, Any]]
    ended_early: bool = False

    def continuations(self) -> list[Continuation]:
        found = next_page("query_records", self.args, self.next_cursor)
        if self.has_more and not self.next_cursor and "connection_id" not in self.args:
            names = dict.fromkeys(item.source.connection_id for item in self.records)
            for name in filter(None, names):
                args = {**self.args, "connection_id": name}
                found.append(Continuation("query_records", args, "all_of_source"))
        if self.next_changes_since and not self.next_cursor:
            later = {**self.args, "changes_since": self.next_changes_since}
            later.pop("cursor", None)
            found.append(Continuation("query_records", later, "later_changes"))
        return found


@dataclass(slots=True)
class Document:
    """One record as a document: exactly the five members of the search-and-fetch contract.

    `metadata` also shows `next_read`, the calls in `more`, and the route of each of `bytes`.
    """

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]
    next_read: Continuation | None = None
    more: dict[str, Continuation] = field(default_factory=dict)
    bytes: list[Bytes] = field(default_factory=list)


@dataclass(slots=True)
class FieldRead:
    """A window of a field, or the metadata of a binary one (`binary` is set, `text` empty)."""

    ref: RecordRef
    id: str
    source: Source
    field_path: str
    type: str
    text: str
    start: int
    end: int
    total: int
    limit: int
    match_start: int | None = None
    match_end: int | None = None
    match: int | None = None
    next_match: int | None = None
    args: dict[str, Any] = field(default_factory=dict)
    media_type: str | None = None
    binary: dict[str, Any] | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    ended_early: bool = False

    @property
    def bytes(self) -> Bytes | None:
        """The blob or the base64 text, if the field is binary."""
        return None if self.binary is None else Bytes(self.id, self.field_path, self.binary)

    @property
    def complete(self) -> bool:
        return self.start == 0 and self.end >= self.total

    @property
    def step(self) -> int:
        """Size of the windows that follow: as asked for, less where this one did not fit."""
        asked = self.args.get("limit_chars") or CONTRACT.window_chars
        return max(1, min(asked, len(self.text))) if self.ended_early else int(asked)

    def continuations(self) -> list[Continuation]:
        """next, previous, the read of the end, and the next match, where there are any."""
        if self.binary is not None:
            return []
        found = []
        if self.end < self.total:
            found.append(self._window(self.end, "next"))
        if self.start > 0:
            found.append(self._window(max(0, self.start - self.step), "previous"))
        last = max(0, self.total - self.step)
        if self.end < last:
            found.append(self._window(last, "end"))
        if self.next_match is not None:
            args = {**self.args, "match": self.next_match}
            found.append(Continuation(READ_FIELD, args, "next_match"))
        return found

    def _window(self, offset: int, why: str) -> Continuation:
        """A window at an offset; a previous one ends where this one starts."""
        size = min(self.step, self.start) if why == "previous" else self.step
        args = {
            "id": self.id,
            "field_path": self.field_path,
            "offset_chars": offset,
            "limit_chars": size,
        }
        return Continuation(READ_FIELD, args, why)


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
