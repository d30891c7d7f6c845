"""Typed values that all surfaces and renderers share: sources, aggregates and next calls.

Offsets and sizes are code points of the stored text. Continuations are derived from these values,
never stored with them, so that all surfaces offer the same next step.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from evidence.cached import cached_property
from evidence.limits import BUDGETS, CONTRACT
from evidence.text import clip, json_line

#: Arguments that a cursor replaces. With the bookmark, a feed would start over.
REPLACED_BY_CURSOR = ("cursor", "changes_since")


@dataclass(frozen=True, slots=True)
class MemberStream:
    """One stream of one connection in a member of a package."""

    stream: str
    connection_id: str
    connector_key: str | None = None
    display_name: str | None = None


@dataclass
class Continuation:
    """A complete call of one operation: `args` are its arguments as MCP spells them.

    `why` is its purpose: read, next, previous, next_match, end, fetch, next_page, narrow,
    schema, retry.
    """

    operation: str
    args: dict[str, Any]
    why: str

    @cached_property
    def key(self) -> str:
        """Equal for equal calls."""
        return f"{self.operation} {sorted(self.args.items())}"

    @cached_property
    def line(self) -> str:
        """The call as one line: tool name, space, JSON."""
        return f"{self.operation} {json_line(self.args)}"

    @property
    def as_json(self) -> dict[str, Any]:
        """The call as data: `{"tool": …, "args": {…}, "why": …}`."""
        return {"tool": self.operation, "args": self.args, "why": self.why}


def spelled(continuation: Continuation) -> str:
    """A call as one line, as MCP spells it."""
    return continuation.line


T = TypeVar("T")
K = TypeVar("K")

READ_FIELD = "read_record_field"
GRANULARITIES = ("minute", "hour", "day", "week", "month", "quarter", "year")
#: The next larger size of a time bucket.
COARSER = dict(pairwise(GRANULARITIES))


class SyncStatus(NamedTuple):
    """How up to date a connection is. Times are RFC 3339; None if there was no success yet.

    `complete_until` is the start of the last round that read everything. `is_stale` if it is late
    or failed.
    """

    state: str
    synced_at: str | None = None
    complete_until: str | None = None
    is_stale: bool = False


#: The field of a record that its source has deleted, if the owner keeps such records.
DELETED_AT = "deleted_at_source"
#: The states of a connection, the worst first, and the members of a status in JSON.
SYNC_STATES = ("failed", "paused", "late", "ok")
SYNC_MEMBERS = ("state", "complete_until", "synced_at")
#: The most bytes of the stale connections that an answer lists, unless the first takes more.
AS_OF_BYTES = 2_000


class Source(NamedTuple):
    """The configured connection that the data came from.

    `sync` only in a schema and in `as_of`, if a source fills the connection.
    """

    connection_id: str | None
    connector_key: str | None
    display_name: str | None
    sync: SyncStatus | None = None

    @property
    def label(self) -> str:
        name = clip(self.display_name, BUDGETS.label_chars) if self.display_name else None
        return name or self.connector_key or self.connection_id or ""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What one source of a package contributed to a page.

    `state` is answered, failed or timed_out; `hits` counts its hits on the page; `next_step` is
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
    """The `members` of a package that were asked for a page; `waiting` ones will be asked later."""

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


@lru_cache(maxsize=512)
def label_of(source: Source) -> str:
    """The label of a source in a line of text, in which an id may be too long."""
    return clip(source.label, BUDGETS.label_chars)


@lru_cache(maxsize=512)
def source_of(source: Source) -> dict[str, Any]:
    """The source as JSON; shared, so never modify it."""
    names = {
        "connection_id": source.connection_id,
        "connector_key": source.connector_key,
        "display_name": source.display_name and clip(source.display_name, BUDGETS.label_chars),
    }
    return known(names)


def as_of_json(sources: Sequence[Source]) -> list[dict[str, Any]] | None:
    """The stale connections of an answer as JSON, as many as fit; None if there are none."""
    entries = [source_of(source) | known(members(source.sync, *SYNC_MEMBERS)) for source in sources]
    sizes = (len(json_line(entry).encode()) for entry in entries)
    return entries[: count_fitting(sizes, AS_OF_BYTES)] or None


def known(members: dict[K, Any]) -> dict[K, Any]:
    """The members that are not None, in their order."""
    return {name: value for name, value in members.items() if value is not None}


def members(instance: object, *names: str) -> dict[str, Any]:
    """The attributes of a value that have the same names in JSON."""
    return {name: getattr(instance, name) for name in names}


def chars(instance: object, *names: str) -> dict[str, Any]:
    """Offsets and sizes of a value with their JSON names: `{"start_chars": instance.start}`."""
    return {f"{name}_chars": getattr(instance, name) for name in names}


def absolute(base_url: str, path: str) -> str:
    """The public address of a REST path; empty if no public URL is known."""
    if path.startswith(("http://", "https://")):
        return path
    return base_url + path if base_url and path else ""


@dataclass(frozen=True, slots=True)
class Group:
    """The records that share a value of a field or a bucket of time, and their `value` if computed.

    A sum, an average or an extreme of numbers that JSON numbers cannot represent exactly is text.
    """

    key: Any
    count: int | None
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """An aggregate: one value, or a page of at most `limit` groups and the counts of the rest.

    `other_count` counts the records of later groups, `group_count` all groups. `as_of` are its
    connections that are not up to date.
    """

    stream: str
    metric: str
    field: str | None = None
    value: Any = None
    groups: tuple[Group, ...] | None = None
    group_by: str | None = None
    group_by_time: str | None = None
    granularity: str | None = None
    time_zone: str | None = None
    approximate: bool = False
    filtered_record_count: int | None = None
    limit: int | None = None
    other_count: int | None = None
    group_count: int | None = None
    next_cursor: str | None = None
    warnings: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    as_of: tuple[Source, ...] = ()
    args: dict[str, Any] = dataclasses.field(default_factory=dict)
    ended_early: bool = False

    @property
    def group_members(self) -> tuple[str, ...]:
        """The members of a group."""
        return ("key", "count") if self.metric == "count" else ("key", "count", "value")

    @property
    def is_cut(self) -> bool:
        """True if some groups are missing and no cursor reaches them."""
        return any(warning.get("param") == "cursor" for warning in self.warnings)

    def continuations(self) -> list[Continuation]:
        """The call for the next groups; without a cursor, the call that shows the most groups."""
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


def window_read(id: str, field_path: str, window: dict[str, Any]) -> Continuation:
    """The call that opens a field at a window, with `window` as arguments of read_record_field."""
    return Continuation(READ_FIELD, {"id": id, "field_path": field_path, **window}, "read")


def windows(start: int, end: int, total: int, size: int) -> Iterator[tuple[str, int, int]]:
    """(why, offset, size) of the windows after and before a window of a text, and at its end."""
    if end < total:
        yield "next", end, size
    if start > 0:
        before = min(size, start)
        yield "previous", start - before, before
    last = max(0, total - size)
    if end < last:
        yield "end", last, size


def distinct(items: Iterable[T]) -> list[T]:
    """The items in order, each once; they need not be hashable."""
    entries = list(items)
    return [item for position, item in enumerate(entries) if item not in entries[:position]]


def count_fitting(sizes: Iterable[int], room: int) -> int:
    """How many items of these sizes, in their order, fit into `room`: at least one, if any."""
    count = 0
    for size in sizes:
        room -= size
        if room < 0 and count:
            break
        count += 1
    return count


def next_page(operation: str, args: dict[str, Any], cursor: str | None) -> list[Continuation]:
    """The call of the next page: the same arguments with the cursor."""
    if not cursor:
        return []
    arguments = {name: value for name, value in args.items() if name not in REPLACED_BY_CURSOR}
    return [Continuation(operation, {**arguments, "cursor": cursor}, "next_page")]


def paged(
    data: dict[str, Any], calls: Sequence[Continuation], ended_early: bool = False
) -> dict[str, Any]:
    """The members that have a value, with the next calls."""
    if calls:
        data["next"] = [call.as_json for call in calls]
    if ended_early:
        data["ended_early"] = True
    return known(data)
