"""Orders the columns of a record table: time, title, people, then the other fields."""

from typing import Any

from evidence.errors import EvidenceError
from evidence.records import RecordPage
from evidence.schema import StreamSchema
from service.operations.base import Session
from service.ports import SchemaQuery

SHORT_CHARS = 24
LEADING = ("primary-title", "actor")
TEXT = "primary-text"


def order(page: RecordPage, session: Session) -> list[str]:
    """The fields on a page in their order. Those the caller chose are in the caller's."""
    names = list(dict.fromkeys(name for item in page.records for name in item.data))
    chosen = page.args.get("fields")
    if chosen:
        named = {name: place for place, name in enumerate(chosen)}
        return sorted(names, key=lambda name: named.get(name, len(named)))
    stream = _stream(page, session)
    ranks = {name: _rank(page, name) for name in names} | _declared(page, stream)
    return sorted(names, key=lambda name: ranks[name])


def _declared(page: RecordPage, stream: StreamSchema | None) -> dict[str, int]:
    """Ranks of fields by their declared roles and by the sort field of the page."""
    roles = {} if stream is None else {one.role or "": name for name, one in stream.fields.items()}
    times = (
        str(page.args.get("sort") or "").removeprefix("-"),
        stream and stream.cursor_field,
        roles.get("event-time"),
    )
    time = next((name for name in times if name), "")
    leading = [time, *(roles.get(role, "") for role in LEADING)]
    last = {roles[TEXT]: 9} if TEXT in roles else {}
    return last | {name: rank for rank, name in reversed(list(enumerate(leading))) if name}


def _rank(page: RecordPage, name: str) -> int:
    """Short words and numbers first, references to other records after them, long text last."""
    values = [item.data.get(name) for item in page.records]
    if not all(_is_short(value) for value in values):
        return 8
    return 7 if name.endswith("_id") else 6


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= SHORT_CHARS
    return value is None or isinstance(value, (bool, int, float))


def _stream(page: RecordPage, session: Session) -> StreamSchema | None:
    """The schema of the stream, if the source returns one."""
    query = SchemaQuery(stream=page.stream, connection_id=page.args.get("connection_id"))
    try:
        rows = session.rs.schema(query).value.rows
    except EvidenceError:
        return None
    return next((row.stream for row in rows if row.stream.name == page.stream), None)
