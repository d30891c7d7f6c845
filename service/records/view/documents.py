"""Builds the `data` of a record and its related records from stored rows, within one grant.

`GrantedRecord.brief` is for MCP; `whole` and `in_full` are for REST, which returns larger values
whole. Omitted values become previews. Nested values in chunk rows stay JSON text, because parsed
they would take many times the memory.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from evidence.errors import InvalidRequest, TooLarge
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import Source
from evidence.records import Record, Related
from evidence.text import BASE64_MIN, looks_binary
from evidence.values import Base64, BlobRef, Preview, base64_of, field_window_read, is_reference
from evidence.values import previewed
from service.pdpp.encode import encode_value
from service.records.engine import Big, BlobRow, Order, Snapshot, Stored
from evidence.manifest import Expansion
from evidence.manifest.values import SORTABLE_CHARS, comparable
from service.records.view import View
from service.records.view.streams import StreamView

#: The most JSON bytes of a code point: in stored JSON, and escaped.
STORED_CHAR_BYTES, ESCAPED_CHAR_BYTES = 4, 6


def read_chunks(snapshot: Snapshot, big: Big, first: int = 0, last: int | None = None) -> str:
    """The text of these chunks."""
    return "".join(snapshot.chunks(big, first, last))


@dataclass(frozen=True, slots=True)
class GrantedRecord:
    """A record inside a grant. `grant` is the whole grant, `stream` the part with the record."""

    snapshot: Snapshot
    grant: View
    stream: StreamView
    stored: Stored

    @property
    def ref(self) -> RecordRef:
        return RecordRef(self.stream.name, self.stored.record_key, self.stream.connection_id)

    def record(self, data: dict[str, Any]) -> Record:
        """The record with the data to show."""
        stream = self.stream
        return Record(self.ref, stream.origin, stream.emitted_at(self.stored), data)

    def brief(self, fields: Iterable[str]) -> dict[str, Any]:
        """These fields of the record; large and binary values are described."""
        return {
            field: self._preview(field) if field in self.stored.big else self._value(field)
            for field in self._present_fields(fields)
        }

    def whole(self, fields: Iterable[str]) -> dict[str, Any]:
        """The same, but values up to 1 MiB are whole, as long as the record stays below 8 MiB.

        In a larger record, the largest values become previews. Reads no more than is shown.
        """
        present, most = self._present_fields(fields), BUDGETS.rest_page_bytes
        if self._most_bytes(present) <= most:
            return {field: self._up_to_whole(field) for field in present}
        values, costs, used = dict[str, Any](), dict[str, int](), 0
        for field in sorted(present, key=self._bytes):
            values[field] = self._up_to_whole(field) if used < most else self._shortened(field)
            costs[field] = self._json_bytes(field, values[field])
            used += costs[field]
        for field in reversed(costs):
            if used <= most:
                break
            values[field] = self._shortened(field)
            used -= costs[field] - self._json_bytes(field, values[field])
        return {field: values[field] for field in present}

    def in_full(self, fields: Iterable[str]) -> dict[str, Any]:
        """The same, but all values are whole, up to 32 MB together; raises `TooLarge` beyond."""
        data, big = self.stored.data, self.stored.big
        sizes = {field: self._bytes(field) for field in self._present_fields(fields)}
        if sum(sizes.values()) > CONTRACT.export_bytes:
            largest = max(sizes, key=lambda field: sizes[field])
            raise TooLarge(
                f"These fields contain {sum(sizes.values())} bytes; the limit is "
                f"{CONTRACT.export_bytes}. Request fewer fields, or read the largest field in "
                "windows with the field-window URL in `read`.",
                code="response_too_large",
                param="fields",
                read=field_window_read(*self.ref, largest),
            )
        return {
            field: self._linked(field, data[field]) if field in data else self._text(big[field])
            for field in sizes
        }

    def resolved(self, field: str, value: dict[str, Any]) -> BlobRef:
        """A reference to a blob in a field, available if an import delivered its bytes there.

        Size and media type are the stored ones, because the route returns them.
        """
        hidden = ("data_base64", "fetch_url", "available")
        attributes = {name: attribute for name, attribute in value.items() if name not in hidden}
        row = self.stored_blob(field, value["blob_id"], value.get("sha256"))
        if row is None:
            return BlobRef(attributes, available=False)
        stored = {"mime_type": row.media_type, "size_bytes": row.size_bytes, "sha256": row.sha256}
        return BlobRef.of(attributes | stored, row.sha256)

    def stored_blob(self, field: str, blob_id: str, sha256: Any) -> BlobRow | None:
        """The blob that the field delivered under a name, with this hash if the data has one."""
        return self.snapshot.blob_of(self.stored.seq, field, blob_id, sha256 or None)

    def _present_fields(self, fields: Iterable[str]) -> list[str]:
        stored = self.stored
        return [field for field in fields if field in stored.data or field in stored.big]

    def _json_bytes(self, field: str, value: Any) -> int:
        """The size of a field in a REST body."""
        return len(orjson.dumps({field: encode_value(value, self.ref, field)}))

    def _most_bytes(self, fields: Sequence[str]) -> int:
        """An upper bound, cheap to compute, of the bytes of these fields as JSON."""
        big = self.stored.big
        large = sum(big[field].chars for field in fields if field in big)
        return STORED_CHAR_BYTES * self.stored.chars + ESCAPED_CHAR_BYTES * large

    def _bytes(self, field: str) -> int:
        """The size of a value in UTF-8, before it is escaped."""
        if field in self.stored.big:
            return self.stored.big[field].bytes
        return len(orjson.dumps(self.stored.data[field]))

    def _up_to_whole(self, field: str) -> Any:
        """A value of up to 1 MiB whole; a description of a larger or binary one."""
        if field in self.stored.data:
            return self._value(field)
        big = self.stored.big[field]
        if big.bytes > CONTRACT.whole_bytes or looks_binary(read_chunks(self.snapshot, big, 0, 0)):
            return self._preview(field)
        return self._text(big)

    def _shortened(self, field: str) -> Any:
        """A preview of a value that is larger than a preview."""
        if field in self.stored.big:
            return self._preview(field)
        return previewed(self._value(field), most_bytes=BUDGETS.preview_chars)

    def _text(self, big: Big) -> Any:
        text = read_chunks(self.snapshot, big)
        return text if big.type == "string" else orjson.Fragment(text)

    def _value(self, field: str) -> Any:
        """A small value: base64 text is described, blob references get their stored metadata."""
        value = self.stored.data[field]
        if isinstance(value, str):
            if len(value) < BASE64_MIN or not looks_binary(value):
                return value
            return base64_of(value, declared=self.stream.manifest.fields[field].media_type)
        return self._linked(field, value)

    def _preview(self, field: str) -> Preview | Base64:
        big = self.stored.big[field]
        head = read_chunks(self.snapshot, big, 0, 0)
        if big.type == "string" and looks_binary(head):
            tail = read_chunks(self.snapshot, big, big.chunks - 1)
            declared = self.stream.manifest.fields[field].media_type
            return base64_of(head, chars=big.chars, tail=tail, declared=declared)
        return Preview(head[: BUDGETS.preview_chars], big.chars, big.type, big.bytes)

    def _linked(self, field: str, value: Any) -> Any:
        """A value in which references to blobs, alone or in a list, are resolved."""
        if isinstance(value, dict):
            return self.resolved(field, value) if is_reference(value) else value
        if isinstance(value, list):
            if any(isinstance(member, dict) and is_reference(member) for member in value):
                return [self._linked(field, member) for member in value]
        return value


SQLITE_DIGITS = 19


def expand(
    parent: GrantedRecord, names: tuple[str, ...], limit_of: dict[str, int]
) -> dict[str, Related]:
    """The related records of `parent`, by relation name.

    Raises 400 `invalid_expand` for limits that the stream does not declare, and for any name except
    that of a relation whose stream and joining key are granted.
    """
    followed = relations(parent.grant, parent.stream, names, limit_of)
    return {
        name: _related(parent, relation, target, limit)
        for name, (relation, target, limit) in followed.items()
    }


def relations(
    view: View, stream: StreamView, names: tuple[str, ...], limit_of: dict[str, int]
) -> dict[str, tuple[Expansion, StreamView, int]]:
    """The requested relations of a stream; raises as `expand` does."""
    usable_relations = usable(view, stream)
    _refuse_unknown(stream, usable_relations, (*names, *limit_of))
    return {
        name: (*usable_relations[name], _limit(usable_relations[name][0], limit_of.get(name)))
        for name in names
    }


def usable(view: View, stream: StreamView) -> dict[str, tuple[Expansion, StreamView]]:
    """The relations to streams of the same connection that the grant covers."""
    targets = {s.name: s for s in view.streams if s.connection_id == stream.connection_id}
    return {
        relation.name: (relation, targets[relation.stream])
        for relation in stream.manifest.expansions.values()
        if relation.stream in targets and relation.foreign_key in targets[relation.stream].ordinals
    }


def _refuse_unknown(stream: StreamView, relations: Collection[str], names: tuple[str, ...]) -> None:
    for name in names:
        if name not in relations:
            choices = ", ".join(sorted(relations)) or "none"
            raise InvalidRequest(
                f"The stream {stream.name!r} has no relation {name!r}. Relations: {choices}.",
                code="invalid_expand",
                param="expand",
            )


def _limit(relation: Expansion, requested: int | None) -> int:
    if requested is None:
        return relation.default_limit
    if requested > relation.max_limit:
        raise InvalidRequest(
            f"expand_limit for {relation.name!r} must be at most {relation.max_limit}.",
            code="invalid_expand",
            param="expand_limit",
            retry_arguments={"expand_limit": {relation.name: relation.max_limit}},
        )
    return requested


def _related(parent: GrantedRecord, relation: Expansion, target: StreamView, limit: int) -> Related:
    snapshot, key = parent.snapshot, parent.stored.record_key
    order = Order(by_cursor=target.sort_field is not None, descending=target.sort_field is not None)
    ordinal, keys = target.ordinals[relation.foreign_key], _keys(key)
    seqs = snapshot.related(target.selection(), ordinal, keys, order, limit + 1)
    stored = snapshot.load(seqs[:limit]).get()
    records = [_record(replace(parent, stream=target, stored=stored[seq])) for seq in seqs[:limit]]
    if relation.cardinality == "has_one":
        return Related(records[:1], single=True)
    follows = len(seqs) > limit
    is_filter = relation.foreign_key in target.manifest.exact_filters
    if not follows or not is_filter or len(key) > SORTABLE_CHARS:
        return Related(records, follows)
    listing = {
        "stream": target.name,
        "connection_id": target.connection_id,
        "filter": {relation.foreign_key: key},
    }
    return Related(records, follows, listing=listing)


def _keys(record_key: str) -> tuple[str, int | str]:
    """A record key in the forms that a foreign key may have: text or number."""
    text = comparable(record_key)
    return text, int(text) if text.isdecimal() and len(text) < SQLITE_DIGITS else text


def _record(granted: GrantedRecord) -> Record:
    source = Source(granted.stream.connection_id, None, None)
    return replace(granted.record(granted.brief(granted.stream.fields)), source=source)
