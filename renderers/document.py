"""Renders a record as a document: its title and text, and calls for everything left out.

`fetch` returns one block, the document as exact JSON; in a shell, its text and the lines about it.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from evidence import pointer, values, wire
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import READ_FIELD, Continuation, absolute, count_fitting, known, members
from evidence.model import spelled, window_read
from evidence.records import Document, Record
from evidence.text import clip, json_line
from evidence.values import Bytes, Preview
from renderers.rendering import Context, Rendering, fit_json, header, json_bytes, quoted, value_of

TITLE_CHARS = 300
#: Bytes of the call that reads on, without the id, and of what is added with the text.
NEXT_READ_BYTES = 1_024


def lay_out(
    record: Record, *, url: str = "", body_text: str | None = None, following: Sequence[str] = ()
) -> Document:
    """Returns the document of a record, within its limits.

    `metadata` lists what does not fit, with the calls that read it. `body_text` is the beginning of
    the text field if the record has only a preview of it. `following` are the record's fields after
    those in `data`: the next call names them too.
    """
    record = record.with_relations(BUDGETS.document_relation_bytes)
    data, roles = record.data, record.roles
    # Not `emitted_at`: when a record was imported is not its own time.
    at = record.authored_at or _text(data, roles.get("event-time"))
    titled = _text(data, roles.get("primary-title"))
    # Without a title: `label · stream · time`, which needs no guess about fields.
    parts = (record.source.label, record.ref.stream, at)
    title = titled or record.title or " · ".join(filter(None, parts))
    document = Document(record.id, title, "", url, _metadata(record))
    if len(title) > TITLE_CHARS:
        _cut_title(document, roles.get("primary-title", ""))
    _add_related(document, record)
    name = record.text_field
    body = data[name] if name else None
    text, field = record.text, None
    if isinstance(body, str):
        text, field = body, name
    elif isinstance(body, Preview):
        text, field = body.text if body_text is None else body_text, name
    if field or text:
        beside = {name, roles.get("primary-title") if titled else None}
        _fill_fields(document, record, beside, following)
        total = body.size_chars if isinstance(body, Preview) else len(text or "")
        _fill_text(document, text or "", total, field)
    else:
        _fill_json(document, record, following)
    document.metadata["untrusted"] = True
    return document


def _metadata(record: Record) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "object": "record",
        "stream": record.ref.stream,
        "connection_id": record.ref.connection_id,
        **members(record.source, "connector_key", "display_name"),
        "emitted_at": record.emitted_at,
        "record_id": record.ref.record_id,
    }
    if record.warnings:
        messages = " ".join(
            f"{warning.get('code')}: {warning.get('message')}" for warning in record.warnings
        )
        metadata["warnings"] = clip(messages, BUDGETS.message_chars)
    return known(metadata)


def _cut_title(document: Document, field: str) -> None:
    document.title = document.title[: TITLE_CHARS - 1] + "…"
    document.metadata |= {"title_complete": False, "title_field": field}
    if field:
        document.more["title_read"] = window_read(document.id, pointer.path_of(field), {})


def _add_related(document: Document, record: Record) -> None:
    for name, related in record.expanded.items():
        document.metadata[f"expanded.{name}"] = " ".join(member.id for member in related.records)
        document.metadata[f"expanded.{name}.has_more"] = related.has_more
        if rest := related.rest:
            document.more[f"expanded.{name}.next"] = rest
    if record.relations_left:
        document.more["more_relations"] = record.related[-1]


def _text(data: dict[str, Any], field: str | None) -> str | None:
    value = data.get(field) if field else None
    return value if isinstance(value, str) and value else None


def _fill_text(document: Document, text: str, total: int, field: str | None) -> None:
    """Sets the text, at most 16,384 code points, and the call that reads the rest."""
    document.text = fit_json(text[: CONTRACT.document_chars], _room(document))
    end = len(document.text)
    document.metadata |= {"text_field": field} if field else {}
    document.metadata |= {"text_complete": end >= total, "text_total_chars": total}
    if field and end < total:
        args = {"id": document.id, "field_path": pointer.path_of(field), "offset_chars": end}
        document.next_read = Continuation(READ_FIELD, args, "next")


def _fill_fields(
    document: Document, record: Record, excluded: set[str | None], following: Sequence[str]
) -> None:
    """The fields other than title and text: short ones as flat keys, the others by a call."""
    room, omitted = BUDGETS.metadata_bytes, list[str]()
    for name, value in record.shown.items():
        if name in excluded:
            continue
        plain = value if isinstance(value, (str, int, float)) else orjson.dumps(value).decode()
        contents = values.bytes_of(record.data[name], record.ref, name)
        cost = len(orjson.dumps([name, plain]))
        whole = cost + _routes_cost(contents)
        cut = isinstance(record.data[name], Preview)
        if cost > BUDGETS.metadata_value_bytes or whole > room or cut:
            omitted.append(name)
            continue
        room -= whole
        document.metadata[f"data.{name}"] = plain
        document.bytes += contents
    _offer(document, [*omitted, *following])


def _fill_json(document: Document, record: Record, following: Sequence[str]) -> None:
    """The fields as JSON, the smaller ones first; the others are listed with their calls."""
    data = record.shown
    bytes_of = {name: values.bytes_of(raw, record.ref, name) for name, raw in record.data.items()}
    sizes = {
        name: json_bytes(_dump({name: value}).decode()) + _routes_cost(bytes_of[name])
        for name, value in data.items()
    }
    room = _room(document)
    if sum(sizes.values()) > room or following:
        room -= _names_cost([*data, *following])
        room -= sum(sorted(map(_name_cost, data), reverse=True)[: BUDGETS.names_shown])
    fitting, omitted = set[str](), list[str]()
    for name in sorted(sizes, key=lambda name: sizes[name]):
        room -= sizes[name]
        if room >= 0:
            fitting.add(name)
        else:
            omitted.append(name)
    document.text = _dump({name: data[name] for name in data if name in fitting}).decode()
    document.bytes = [content for name in data if name in fitting for content in bytes_of[name]]
    previews = [name for name in data if name in fitting and isinstance(record.data[name], Preview)]
    unread = previews + [name for name in data if name not in fitting]
    document.metadata["text_complete"] = not unread
    if unread:
        document.metadata["incomplete_fields"] = ", ".join(unread[: BUDGETS.names_shown])
        document.metadata["incomplete_field_count"] = len(unread)
        first = previews[0] if previews else omitted[-1]  # the largest
        document.next_read = window_read(document.id, pointer.path_of(first), {})
        unread.remove(first)
    _offer(document, [*unread, *following])


def _offer(document: Document, names: Sequence[str]) -> None:
    """Adds the call that fetches these fields, as many of them as a call can name.

    The answer to a call that names the maximum includes the fields after them: see `fetch`.
    """
    if not names:
        return
    document.metadata["more_field_count"] = len(names)
    named = names[: CONTRACT.names_in_list]
    chosen = named[: count_fitting(map(_name_cost, named), BUDGETS.field_names_bytes)]
    if len(chosen) < len(named):
        args = {name: document.metadata.get(name) for name in ("stream", "connection_id")}
        document.more["field_names"] = Continuation("schema", known(args), "fields")
    args = {"id": document.id, "fields": list(chosen)}
    document.more["more_fields"] = Continuation("fetch", args, "fields")


def _name_cost(name: str) -> int:
    """The bytes of a name in a call inside JSON."""
    return len(orjson.dumps(json_line(name)))


def _names_cost(names: Sequence[str]) -> int:
    """The bytes of the longest list of names in a call."""
    costs = sorted(map(_name_cost, names), reverse=True)[: CONTRACT.names_in_list]
    return min(BUDGETS.field_names_bytes, sum(costs))


def _routes_cost(contents: Sequence[Bytes]) -> int:
    return sum(
        json_bytes(wire.bytes_line(content)) + len(content.field_path.encode()) + 20
        for content in contents
    )


def _room(document: Document) -> int:
    """The bytes left for the text after the id, the warnings and the calls."""
    warnings = json_bytes(document.metadata.get("warnings", ""))
    calls = sum(json_bytes(spelled(call)) for call in document.more.values())
    room = BUDGETS.document_bytes - 2 * len(document.id.encode()) - warnings - calls
    whole = len(orjson.dumps(wire.document(document))) + len(document.url.encode())
    return min(room, BUDGETS.text_bytes - whole - json_bytes(document.id) - NEXT_READ_BYTES)


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)


def render(document: Document, context: Context) -> Rendering:
    """The five members, once as `structuredContent` and once as the same JSON in text."""
    structured = wire.document(document, base_url=context.base_url)
    return Rendering((orjson.dumps(structured).decode(),), structured)


def about(document: Document, context: Context) -> list[str]:
    """The lines around the text of a document: title, address, metadata, calls that continue."""
    url = absolute(context.base_url, document.url)
    lines = [header("fetch", id=document.id), f"title: {quoted(document.title)}"]
    lines += [f"url: {value_of(url)}"] if url else []
    lines += [f"{value_of(name)}: {value_of(value)}" for name, value in document.metadata.items()]
    if document.next_read:
        lines.append(f"next_read: {context.spell(document.next_read)}")
    lines += [f"{value_of(name)}: {context.spell(call)}" for name, call in document.more.items()]
    lines += [
        f"{value_of(f'bytes.{content.field_path}')}: {context.blob(content)}"
        for content in document.bytes
    ]
    return lines
