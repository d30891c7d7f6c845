"""The page of one record, with its thread."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from flask import Response, request

from evidence import handles, pointer
from evidence.errors import EvidenceError, NotFound
from evidence.limits import CONTRACT
from evidence.model import READ_FIELD, Continuation, label_of
from evidence.records import FieldRead, Record
from evidence.text import clip
from evidence.values import Preview
from service.operations.base import Session
from service.operations.read_record_field import OPERATION as FIELD
from service.pages.reading import attachments, markdown, shown
from service.pages.reading.visits import Visits
from service.ports import Filter, RecordQuery, RecordRead, SchemaQuery

FIELDS_MAX: Final = 30
TITLE_CHARS: Final = 120
THREAD_BESIDE: Final = 5
RELATED_MAX: Final = 5
#: Kinds of records whose text is laid out as Markdown.
WRITTEN: Final = ("Note", "Chat message")
#: Fields whose time makes a record a calendar entry, because no role declares one.
STARTS: Final = ("start", "starts_at", "start_time", "dtstart")
#: Fields of the header that have no role, with their names there.
RECEIVERS: Final = {"to": "To", "cc": "Cc"}
PLACES: Final = {"place": "Where", "location": "Where", "attendees": "With"}


@dataclass(frozen=True, slots=True)
class Link:
    """A record in a list. `here` is the record of the page itself."""

    title: str
    href: str
    person: str = ""
    at: str = ""
    here: bool = False
    about: str = ""


def person_of(record: Record) -> str:
    """The person of a record; empty if it has none."""
    value = record.data.get(record.roles.get("actor", ""))
    return shown.plain(value) if value else ""


def record_page(visits: Visits, id: str) -> Response:
    """One record, with a part of its text and the records before and after it."""
    session, parameters = visits.records(), shown.parameters("q", "field")
    record = _read(session, handles.parse(id))
    text = pointer.path_of(record.text_field) if record.text_field else None
    field = parameters["field"] or text
    read, matched = _window(session, record.id, field, parameters["q"]) if field else (None, False)
    kind = _kind(record)
    files = _files(session, record)
    elsewhere = {record.text_field, *(pointer.top_level(file.field_path) for file in record.bytes)}
    if kind != "Table row":
        roles = ("primary-title", "actor", "event-time")
        elsewhere |= {record.roles.get(role) for role in roles} | _labels(record, kind).keys()
    empty: tuple[Any, ...] = (None, "", [], {})
    fields = [
        name
        for name, content in record.data.items()
        if name not in elsewhere and content not in empty
    ]
    first = shown.number("fields", 0)
    is_markdown = field == text and kind in WRITTEN
    title = _title(record, kind)
    heading = _heading(session, record, title, parameters["q"])
    marked = None
    if read and read.match_start is not None and read.match_end is not None:
        marked = read.match_start - read.start, read.match_end - read.start
    related = {
        name: links(relation.records)
        for name, relation in record.expanded.items()
        if any(not related_record.bytes for related_record in relation.records)
    }
    return visits.page(
        "record.html",
        record=record,
        kind=kind,
        title=title,
        heading=heading,
        head=list(_header(record, kind)),
        label=label_of(record.source),
        read=read,
        found=matched,
        missed=bool(parameters["q"])
        and not matched
        and not any(is_match for is_match, _ in heading),
        field=field,
        is_text=field == text,
        is_markdown=is_markdown,
        blocks=_blocks(read, marked, is_markdown) if read else (),
        note=lambda name: _note(record, name),
        fields=[_row(record, name, parameters) for name in fields[first : first + FIELDS_MAX]],
        next_fields=first + FIELDS_MAX if len(fields) > first + FIELDS_MAX else None,
        files=files,
        related=related,
        thread=_thread(session, record),
        asked=parameters,
        link=lambda **query: shown.record(record.id, **{**parameters, **query}),
        calls=_calls(record, read),
    )


def _files(session: Session, record: Record) -> list[attachments.File]:
    """The attachments of a record and of the records that belong to it, the first with previews."""
    owners = (record, *(related for group in record.expanded.values() for related in group.records))
    files = [
        attachments.file_of(attachment, "" if owner.text_field else _title(owner, "File"))
        for owner in owners
        for attachment in owner.bytes
    ]
    previewed = [attachments.previewed(session, file) for file in files[: attachments.PREVIEWS]]
    return previewed + files[attachments.PREVIEWS :]


def _blocks(read: FieldRead, marked: tuple[int, int] | None, is_markdown: bool) -> Sequence[Any]:
    """A part of a text in blocks of Markdown, or in paragraphs."""
    if is_markdown:
        return markdown.blocks(read.text, marked=marked, links=True)
    return shown.paragraphs(read.text, marked)


def _note(record: Record, name: str) -> str:
    """The address of a search for the note that a `[[link]]` names, in the same source."""
    query = 'title:"' + name.rpartition("/")[2].replace('"', " ") + '"'
    return shown.search(q=query, source=record.ref.connection_id)


def _read(session: Session, ref: handles.RecordRef) -> Record:
    """The record with the first records of its relations."""
    record = session.rs.record(ref).value
    rows = session.rs.schema(SchemaQuery(record.ref.stream, record.ref.connection_id)).value.rows
    names = tuple(relation.name for row in rows for relation in row.stream.relations)
    if not names:
        return record
    limits = dict.fromkeys(names, RELATED_MAX)
    try:
        record = session.rs.record(record.ref, RecordRead(expand=names, expand_limit=limits)).value
    except EvidenceError:  # a relation that cannot be expanded
        return record
    if session.is_local:  # the roles of related records take one read each
        for related in record.expanded.values():
            related.records[:] = [session.rs.record(child.ref).value for child in related.records]
    return record


def _kind(record: Record) -> str:
    """What a record is, by its roles."""
    roles = record.roles
    if roles.get("event-time") in STARTS:
        return "Calendar entry"
    title = roles.get("primary-title")
    if "actor" in roles and record.text_field:
        if title == "subject" or RECEIVERS.keys() & record.data.keys():
            return "Mail"
        if title is None or "thread" in roles:
            return "Chat message"
    return "Note" if record.text_field and "amount" not in roles else "Table row"


def _labels(record: Record, kind: str) -> dict[str, str]:
    """Fields without a role that the header of such a record shows, with their labels."""
    places = PLACES if kind == "Calendar entry" else {}
    return places | (RECEIVERS if "actor" in record.roles else {})


def _header(record: Record, kind: str) -> Iterator[tuple[str, str, bool]]:
    """(name, value, whether it is a time)."""
    if person := person_of(record):
        yield "From" if kind in ("Mail", "Chat message") else "By", person, False
    for name, title in _labels(record, kind).items():
        if value := record.data.get(name):
            yield title, shown.plain(value), False
    if record.authored_at:
        yield "When", record.authored_at, True


def _heading(session: Session, record: Record, title: str, query: str) -> shown.Pieces:
    """The title in pieces, with the first match of a query marked."""
    name, marked = record.roles.get("primary-title"), None
    if query and name and record.data.get(name) == title:
        args = {"id": record.id, "field_path": pointer.path_of(name), "query": query}
        try:
            hit = _read_field(session, args)
        except NotFound as error:
            if error.code != "query_not_found":
                raise
        else:
            marked = (hit.match_start or 0), (hit.match_end or 0)
    return [part for paragraph in shown.paragraphs(title, marked) for part in paragraph]


def _title(record: Record, kind: str) -> str:
    value = record.data.get(record.roles.get("primary-title", "")) or record.title
    if value:
        return shown.plain(value)
    person = person_of(record)
    return f"{kind} from {person}" if person else f"{kind} from {label_of(record.source)}"


def _row(record: Record, name: str, parameters: dict[str, str]) -> tuple[str, str, str | None]:
    """(name, value, address of the whole value if the value is cut)."""
    value = record.data[name]
    text = shown.plain(value)
    cut = isinstance(value, Preview) or text.endswith("…") or isinstance(value, dict)
    field = pointer.path_of(name)
    return name, text, shown.record(record.id, **{**parameters, "field": field}) if cut else None


def _window(session: Session, id: str, field: str, query: str) -> tuple[FieldRead | None, bool]:
    """(the part of a field to show, whether it holds a match of the query).

    Parts begin at multiples of their size, so that the part with a match is one that paging shows,
    too.
    """
    size = shown.PART_CHARS
    args = {"id": id, "field_path": field, "limit_chars": size}
    offset = shown.number("offset", 0)
    hit = None
    if query and not request.args.get("offset"):
        args["query"], args["match"] = query, max(1, shown.number("match", 1))
        try:
            hit = _read_field(session, args)
        except NotFound as error:
            if error.code != "query_not_found":
                raise
        del args["query"], args["match"]
    if hit is not None and hit.match_start is not None:
        offset = hit.match_start // size * size
        if (hit.match_end or 0) > offset + size:
            offset = max(0, hit.match_start - CONTRACT.match_before_chars)
    read = _read_field(session, {**args, "offset_chars": offset})
    if hit is None or hit.binary is not None:
        return read, False
    start, end = hit.match_start, hit.match_end
    marked = replace(read, match_start=start, match_end=end, match=hit.match)
    return replace(marked, next_match=hit.next_match), True


def _read_field(session: Session, args: dict[str, Any]) -> FieldRead:
    return FIELD.answer(session, FIELD.load(args))


def _thread(session: Session, record: Record) -> list[Link]:
    """The records of the same thread before and after this one, if the source can list them."""
    names = [record.roles.get(role, "") for role in ("thread", "event-time")]
    thread, at = (record.data.get(name) for name in names)
    if not isinstance(thread, str) or not isinstance(at, str):
        return []
    thread_records: dict[str, Record] = {}
    stream, connection = record.ref.stream, record.ref.connection_id
    for operator, order in (("lte", "desc"), ("gte", "asc")):
        near: Filter = {names[0]: thread, names[1]: {operator: at}}
        query = RecordQuery(stream, connection, filter=near, order=order, limit=THREAD_BESIDE + 1)
        try:
            records = session.rs.records(query).value.records
        except EvidenceError:  # filters that the source does not declare
            return []
        nearby = {
            near.id: replace(near, roles=record.roles, authored_at=near.data.get(names[1]))
            for near in records
        }
        thread_records = (
            {**dict(reversed(nearby.items())), **thread_records}
            if order == "desc"
            else thread_records | nearby
        )
    if len(thread_records) < 2:
        return []
    return links(thread_records.values(), here=record.id)


def links(records: Any, here: str = "") -> list[Link]:
    """A line for each record: its title, or the beginning of its text."""
    return [
        Link(
            *(_line(record), shown.record(record.id), person_of(record), record.authored_at or ""),
            here=record.id == here,
            about=f"{label_of(record.source)} · {record.ref.stream}",
        )
        for record in records
    ]


def _line(record: Record) -> str:
    """The title of a record, or else the beginning of its text, its person or its id."""
    for role in ("primary-title", "primary-text", "actor"):
        if value := record.data.get(record.roles.get(role, "")):
            return clip(shown.plain(value), TITLE_CHARS)
    return clip(record.ref.record_id, TITLE_CHARS)


def _calls(record: Record, read: FieldRead | None) -> list[Continuation]:
    """The tool calls that return what the page shows."""
    calls = [Continuation("fetch", {"id": record.id}, "fetch")]
    if read is not None:
        args = {"id": record.id, "field_path": read.field_path, "offset_chars": read.start}
        calls.append(Continuation(READ_FIELD, {**args, "limit_chars": read.limit}, "read"))
    return calls
