"""Typed answers about records: a record, a page of a stream, a document or a window of a field.

`data` holds JSON values, or the types of `evidence.values` for values not shown whole.
Offsets and sizes are code points of the stored text.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import orjson

from evidence.cached import cached_property
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import READ_FIELD, Continuation, Source, count_fitting, next_page, windows
from evidence.text import escape
from evidence.values import Binary, Bytes, bytes_in, data_as_json

#: The times of a record that a page shows, if they exist.
TIMES: Final = ("deleted_at", "emitted_at", "authored_at")


@dataclass(frozen=True, slots=True)
class Partial:
    """A partly shown value: `end` of `total` code points, and the call that reads it.

    `total` is None for bytes, of which no text is shown.
    """

    field_path: str
    end: int
    total: int | None
    read: Continuation

    @property
    def entry(self) -> dict[str, Any]:
        """The field in the ladder of a page."""
        sizes = {} if self.total is None else {"shown_chars": self.end, "total_chars": self.total}
        return {"field_path": self.field_path, **sizes, "read": self.read.as_json}


@dataclass(frozen=True, slots=True)
class Related:
    """The records of one relation. `single` relations have at most one record.

    `listing` has the arguments of the `query_records` call that lists all of them, if the relation
    has more records and they can be listed.
    """

    records: list["Record"]
    has_more: bool = False
    single: bool = False
    listing: dict[str, Any] | None = None

    def within(self, room: int) -> "Related":
        """The relation with as many records, at least one, as ids of `room` bytes name."""
        sizes = (len(orjson.dumps(record.id)) + 1 for record in self.records)
        count = count_fitting(sizes, room)
        if count == len(self.records):
            return self
        return replace(self, records=self.records[:count], has_more=True)

    @property
    def entry(self) -> dict[str, Any]:
        """The ids of the records; each one can be fetched."""
        return {"ids": [record.id for record in self.records], "has_more": self.has_more}

    @property
    def rest(self) -> Continuation | None:
        """The call that lists all records of the relation."""
        if self.listing is None:
            return None
        return Continuation("query_records", self.listing, "related")


@dataclass(frozen=True)
class Record:
    """One record as the grant shows it.

    `roles` name the fields that are its title, text and time. `title` and `text` are those that a
    source returns in addition to the fields. `warnings` are those of its source. Renderers fill
    `partial`, `left_out` and `relations_left`: the values shown as previews, and the fields and
    relations that do not fit on a page.
    """

    ref: RecordRef
    source: Source
    emitted_at: str | None
    data: dict[str, Any]
    authored_at: str | None = None
    roles: dict[str, str] = field(default_factory=dict)
    title: str | None = None
    text: str | None = None
    deleted: bool = False
    deleted_at: str | None = None
    expanded: dict[str, Related] = field(default_factory=dict)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    partial: list[Partial] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    relations_left: list[str] = field(default_factory=list)

    @cached_property
    def id(self) -> str:
        """The printed handle."""
        return str(self.ref)

    @cached_property
    def bytes(self) -> list[Bytes]:
        """The blobs and base64 texts in `data`."""
        return bytes_in(self.data, self.ref)

    @cached_property
    def shown(self) -> dict[str, Any]:
        """The JSON of `data`; shared, so never modify it."""
        return data_as_json(self.data, self.ref)

    @cached_property
    def entry(self) -> dict[str, Any]:
        """The record in the `data` of a page; shared, so never modify it."""
        ref, entry = self.ref, dict[str, Any](object="record")
        entry |= {"id": ref.record_id, "stream": ref.stream}
        if self.deleted:
            entry["deleted"] = True
        about = {name: getattr(self, name) for name in TIMES} | self.source._asdict()
        entry |= {name: value for name, value in about.items() if value is not None}
        if self.expanded:
            entry["expanded"] = self.relations
        if not self.deleted:
            entry["data"] = self.shown
        return entry

    @cached_property
    def payload(self) -> tuple[str, int]:
        """(the JSON that is shown as model-visible text, the number of escapes in it)."""
        body = {**self.shown, "expanded": self.relations} if self.expanded else self.shown
        return escape(orjson.dumps(body).decode())

    @property
    def relations(self) -> dict[str, Any]:
        """The related records, by relation."""
        return {name: related.entry for name, related in self.expanded.items()}

    @cached_property
    def rung(self) -> dict[str, Any]:
        """The record in the ladder of a page: fields that continue. Shared, so never modify it."""
        rung: dict[str, Any] = {"id": self.id}
        if contents := self.bytes:
            rung["bytes"] = [content.entry for content in contents]
        if self.partial:
            rung["fields"] = [part.entry for part in self.partial]
        if rest := self.rest:
            rung["left_out"] = len(self.left_out)
            rung["next"] = rest.as_json
        if calls := self.related:
            rung["related"] = [call.as_json for call in calls]
        return rung

    @property
    def text_field(self) -> str | None:
        """The field of `data` whose declared role makes it the text of the record."""
        name = self.roles.get("primary-text")
        return name if name in self.data else None

    @cached_property
    def rest(self) -> Continuation | None:
        """The call that shows the fields left out, by name or together with all others."""
        if not self.left_out:
            return None
        few = len(self.left_out) <= BUDGETS.names_shown
        names = {"fields": self.left_out} if few else {}
        return Continuation("fetch", {"id": self.id, **names}, "fields")

    @cached_property
    def related(self) -> list[Continuation]:
        """The calls that list the records of partly shown relations."""
        calls = [rest for relation in self.expanded.values() if (rest := relation.rest)]
        if self.relations_left:
            args = {"id": self.id, "expand": self.relations_left}
            calls.append(Continuation("fetch", args, "expand"))
        return calls

    def with_relations(self, room: int) -> "Record":
        """The record with relations, and ids of related records, of at most `room` bytes.

        Both channels list the ids and the calls of the others.
        """
        if not self.expanded:
            return self
        relations, names = dict[str, Related](), list(self.expanded)
        room -= len(orjson.dumps(names)) + len(self.id.encode()) + 60
        for name, relation in self.expanded.items():
            fitted = relation.within(room - len(orjson.dumps(name)))
            room -= len(orjson.dumps([name, fitted.entry, fitted.rest and fitted.rest.as_json]))
            if room < 0 and relations:
                break
            relations[name] = fitted
        omitted = names[len(relations) :]
        cut = [
            name
            for name in relations
            if len(relations[name].records) < len(self.expanded[name].records)
        ]
        omitted += [name for name in cut if relations[name].rest is None and len(names) > 1]
        if not cut and not omitted:
            return self
        return replace(self, expanded=relations, relations_left=omitted)


class Count(NamedTuple):
    """The number of matching records; `kind` is exact, or none if they were not counted."""

    kind: str = "none"
    value: int | None = None


class TimeSpan(NamedTuple):
    """The number of records on all pages, and the times they span."""

    total: int
    earliest_at: str | None = None
    latest_at: str | None = None


@dataclass(frozen=True, slots=True)
class RecordPage:
    """A page of one stream, or of its changes. `args` are the arguments of the request.

    `as_of` are its connections that are not up to date.
    """

    stream: str
    records: list[Record]
    has_more: bool
    next_cursor: str | None = None
    next_changes_since: str | None = None
    count: Count = Count()
    span: TimeSpan | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    as_of: tuple[Source, ...] = ()
    args: dict[str, Any] = field(default_factory=dict)
    ended_early: bool = False

    def continuations(self) -> list[Continuation]:
        calls = next_page("query_records", self.args, self.next_cursor)
        if self.has_more and not self.next_cursor and "connection_id" not in self.args:
            names = dict.fromkeys(item.source.connection_id for item in self.records)
            for name in filter(None, names):
                args = {**self.args, "connection_id": name}
                calls.append(Continuation("query_records", args, "all_of_source"))
        if self.next_changes_since and not self.next_cursor:
            later = {**self.args, "changes_since": self.next_changes_since}
            later.pop("cursor", None)
            calls.append(Continuation("query_records", later, "later_changes"))
        return calls


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


@dataclass(frozen=True, slots=True)
class FieldRead:
    """A window of a field, or the description of a binary one (`binary` set, `text` empty).

    `match` is the number of the match that the window was opened at. `args` are the arguments of
    the request.
    """

    ref: RecordRef
    source: Source
    field_path: str
    type: str
    text: str = ""
    start: int = 0
    total: int = 0
    limit: int = CONTRACT.window_chars
    match_start: int | None = None
    match_end: int | None = None
    match: int | None = None
    next_match: int | None = None
    media_type: str | None = None
    binary: Binary | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    args: dict[str, Any] = field(default_factory=dict)
    ended_early: bool = False

    @property
    def id(self) -> str:
        """The printed handle of the record."""
        return str(self.ref)

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def bytes(self) -> Bytes | None:
        """The blob or the base64 text, if the field is binary."""
        return None if self.binary is None else Bytes(self.ref, self.field_path, self.binary)

    @property
    def complete(self) -> bool:
        return self.start == 0 and self.end >= self.total

    @property
    def step(self) -> int:
        """The size of the following windows: as requested, or less if this one did not fit."""
        limit = self.args.get("limit_chars") or CONTRACT.window_chars
        return max(1, min(limit, len(self.text))) if self.ended_early else int(limit)

    def continuations(self) -> list[Continuation]:
        """The calls for the next, the previous and the last window, and for the next match."""
        if self.binary is not None:
            return []
        location = {"id": self.id, "field_path": self.field_path}
        calls = [
            Continuation(READ_FIELD, {**location, "offset_chars": offset, "limit_chars": size}, why)
            for why, offset, size in windows(self.start, self.end, self.total, self.step)
        ]
        if self.next_match is not None:
            args = {**self.args, "match": self.next_match}
            calls.append(Continuation(READ_FIELD, args, "next_match"))
        return calls
