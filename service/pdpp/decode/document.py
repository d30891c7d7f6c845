"""A record envelope -> `Document`: declared roles only, and calls for what is left out."""

from collections.abc import Sequence
from typing import Any

import orjson

from evidence import binary, pointer, wire
from evidence.continuation import Continuation
from evidence.envelope import Envelope
from evidence.handles import RecordRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.binary import Bytes
from evidence.model import READ_FIELD, Document, Source
from service.pdpp.decode import (
    number_of,
    object_of,
    short,
    source_of,
    text_of,
    warnings_of,
    without,
)
from service.pdpp.decode.records import handles_of, rest_of_related
from evidence.size import fit_json, json_bytes

LISTED_FIELDS = 20
TITLE_CHARS = 300

IDENTITY = (
    "object",
    "stream",
    "connection_id",
    "connector_key",
    "display_name",
    "emitted_at",
)


def read_document(
    envelope: Envelope,
    *,
    ref: RecordRef,
    url: str = "",
    body_text: str | None = None,
    following: Sequence[str] = (),
) -> Document:
    """One record as a document: the title and text its declared roles name, within bounds.

    What does not fit is named in `metadata`, with the calls that read it. `body_text` is the
    beginning of the text field where the envelope holds only a preview of it. `following` are
    fields of the record that come after those of the envelope: the next call names them too.
    """
    body = envelope.body
    source = source_of(body)
    key = text_of(body, "record_key", "record_id", "id") or ref.record_id
    found = RecordRef(ref.stream, key, source.connection_id or ref.connection_id)
    data = {
        name: binary.described(value, found, pointer.path_of(name))
        for name, value in object_of(body, "data").items()
    }
    roles = object_of(body, "roles")
    at = _text(data, roles.get("event-time")) or text_of(body, "authored_at", "emitted_at")
    titled = _text(data, roles.get("primary-title"))
    title = titled or fallback_title(source, found.stream, at)
    document = Document(str(found), title, "", url, _metadata(body, found))
    if len(title) > TITLE_CHARS:
        _cut_title(document, str(roles.get("primary-title") or ""))
    shown = data.get(text_field(body) or "")
    beside = {text_field(body), roles.get("primary-title") if titled else None}
    if isinstance(shown, str):
        _fill_others(document, data, beside, found, following)
        _fill_text(document, shown, len(shown), str(text_field(body)))
    elif isinstance(shown, dict) and shown.get("object") == "field_preview":
        text = body_text if body_text is not None else text_of(shown, "preview_text") or ""
        _fill_others(document, data, beside, found, following)
        _fill_text(document, text, number_of(shown, "size_chars") or 0, str(text_field(body)))
    else:
        _fill_json(document, data, found, following)
    _add_related(document, body, found)
    document.metadata["untrusted"] = True
    return document


def _metadata(body: dict[str, Any], found: RecordRef) -> dict[str, Any]:
    metadata: dict[str, Any] = {name: text_of(body, name) for name in IDENTITY}
    metadata |= {"connection_id": found.connection_id, "stream": found.stream}
    metadata["record_id"] = found.record_id
    if told := warnings_of(body):
        said = " ".join(f"{text_of(one, 'code')}: {text_of(one, 'message')}" for one in told)
        metadata["warnings"] = short(said, BUDGETS.message_chars)
    return {name: value for name, value in metadata.items() if value is not None}


def _cut_title(document: Document, field: str) -> None:
    document.title = document.title[: TITLE_CHARS - 1] + "…"
    document.metadata |= {"title_complete": False, "title_field": field}
    if field:
        args = {"id": document.id, "field_path": pointer.path_of(field)}
        document.more["title_read"] = Continuation(READ_FIELD, args, "read")


def _add_related(document: Document, body: dict[str, Any], found: RecordRef) -> None:
    for name, listed in object_of(body, "expanded").items():
        handles = handles_of(listed, found)
        document.metadata[f"expanded.{name}"] = " ".join(handles["ids"])
        document.metadata[f"expanded.{name}.has_more"] = handles["has_more"]
        if rest := rest_of_related(listed):
            document.more[f"expanded.{name}.next"] = rest


def text_field(body: dict[str, Any]) -> str | None:
    """The field whose declared role makes it the text of the document."""
    name = object_of(body, "roles").get("primary-text")
    return name if isinstance(name, str) and name in object_of(body, "data") else None


def fallback_title(source: Source, stream: str, at: str | None) -> str:
    """`label · stream · time`: says what it is without guessing at fields."""
    return " · ".join(part for part in (source.label, stream, at) if part)


def _text(data: dict[str, Any], field: Any) -> str | None:
    value = data.get(field) if isinstance(field, str) else None
    return value if isinstance(value, str) and value else None


def _fill_text(document: Document, text: str, total: int, field: str) -> None:
    """The beginning of a text field, at most 16,384 code points, and how to read on."""
    document.text = fit_json(text[: CONTRACT.document_chars], _room(document))
    end = len(document.text)
    document.metadata |= {
        "text_field": field,
        "text_complete": end >= total,
        "text_total_chars": total,
    }
    if end < total:
        args = {"id": document.id, "field_path": pointer.path_of(field), "offset_chars": end}
        document.next_read = Continuation(READ_FIELD, args, "next")


def _fill_others(
    document: Document,
    data: dict[str, Any],
    shown: set[Any],
    ref: RecordRef,
    following: Sequence[str],
) -> None:
    """The fields beside title and text: short ones as flat keys, the others by a call."""
    room, left_out = BUDGETS.metadata_bytes, list[str]()
    for name, value in data.items():
        if name in shown:
            continue
        plain = value if isinstance(value, (str, int, float, bool)) else _dump_line(value)
        held = binary.bytes_of(value, ref, pointer.path_of(name))
        cost = len(orjson.dumps([name, plain]))
        whole = cost + _routes_cost(held)
        if cost > BUDGETS.metadata_value_bytes or whole > room or _is_preview(value):
            left_out.append(name)
            continue
        room -= whole
        document.metadata[f"data.{name}"] = plain
        document.bytes += held
    _offer(document, [*left_out, *following])


def _fill_json(
    document: Document, data: dict[str, Any], ref: RecordRef, following: Sequence[str]
) -> None:
    """The fields as JSON, the smaller ones first; what does not fit is named, with its reads."""
    bytes_of = {n: binary.bytes_of(v, ref, pointer.path_of(n)) for n, v in data.items()}
    sizes = {
        name: json_bytes(_dump({name: _plain(value)}).decode()) + _routes_cost(bytes_of[name])
        for name, value in data.items()
    }
    room = _room(document)
    if sum(sizes.values()) > room or following:
        room -= _names_cost([*data, *following])
    kept, left_out = set[str](), list[str]()
    for name in sorted(sizes, key=lambda name: sizes[name]):
        room -= sizes[name]
        if room >= 0:
            kept.add(name)
        else:
            left_out.append(name)
    document.text = _dump({name: _plain(data[name]) for name in data if name in kept}).decode()
    document.bytes = [one for name in data if name in kept for one in bytes_of[name]]
    previews = [name for name in data if name in kept and _is_preview(data[name])]
    unread = previews + [name for name in data if name not in kept]
    document.metadata["text_complete"] = not unread
    if unread:
        document.metadata["incomplete_fields"] = ", ".join(unread[:LISTED_FIELDS])
        document.metadata["incomplete_field_count"] = len(unread)
        first = previews[0] if previews else left_out[-1]  # the largest
        args = {"id": document.id, "field_path": pointer.path_of(first)}
        document.next_read = Continuation(READ_FIELD, args, "read")
        unread.remove(first)
    _offer(document, [*unread, *following])


def _offer(document: Document, names: Sequence[str]) -> None:
    """Adds the call that fetches these fields, as many of them as a call can name.

    A call that names as many as it may is answered with the fields after them, too: see `fetch`.
    """
    if not names:
        return
    document.metadata["more_field_count"] = len(names)
    named, room = list[str](), BUDGETS.field_names_bytes
    for name in names[: CONTRACT.names_in_list]:
        room -= _name_cost(name)
        if room < 0 and named:
            args = {"stream": document.metadata["stream"]}
            if "connection_id" in document.metadata:
                args["connection_id"] = document.metadata["connection_id"]
            document.more["field_names"] = Continuation("schema", args, "fields")
            break
        named.append(name)
    args = {"id": document.id, "fields": named}
    document.more["more_fields"] = Continuation("fetch", args, "fields")


def _name_cost(name: str) -> int:
    """Bytes of a name in a call inside JSON."""
    return len(orjson.dumps(orjson.dumps(name).decode()))


def _names_cost(names: Sequence[str]) -> int:
    """Bytes of the longest list of names that a call has."""
    costs = sorted(map(_name_cost, names), reverse=True)[: CONTRACT.names_in_list]
    return min(BUDGETS.field_names_bytes, sum(costs))


def _routes_cost(held: Sequence[Bytes]) -> int:
    return sum(json_bytes(wire.bytes_line(one)) + len(one.field_path.encode()) + 20 for one in held)


def _room(document: Document) -> int:
    """Bytes for the text: a long id stands in `id`, in `metadata` and in the next read."""
    said = json_bytes(document.metadata.get("warnings", ""))
    calls = sum(json_bytes(wire.spelled(one)) for one in document.more.values())
    return BUDGETS.document_bytes - 2 * len(document.id.encode()) - said - calls


def _is_preview(value: Any) -> bool:
    return isinstance(value, dict) and value.get("object") == "field_preview"


def _plain(value: Any) -> Any:
    """A value without its REST address."""
    if isinstance(value, dict) and "read" in value and "object" in value:
        return without(value, ("read",))
    return value


def _dump_line(value: Any) -> str:
    return orjson.dumps(value).decode()


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
