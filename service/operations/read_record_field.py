"""Reads one window of a field, of limited size, at an offset or around a match."""

from dataclasses import replace
from typing import Any

from evidence import handles
from evidence.model import Continuation
from evidence.errors import InvalidRequest
from evidence.handles import FieldRef
from evidence.limits import BUDGETS, CONTRACT
from evidence.records import FieldRead
from renderers import field as renderer
from service.operations import arguments
from service.operations.base import RecordOperation, Route, Session
from service.ports import Answer, FieldRequest, WindowRequest
from service.ports.types import Digits

#: Values that ask for nothing: of an offset with a query, of the others without one. Models that
#: have to write every argument send them.
IDLE = {"offset_chars": 0, "match": 1, "before_chars": 0, "after_chars": 0}
WINDOW = WindowRequest.arguments.fields.keys()


def resolve(request: FieldRequest, base: str = "") -> tuple[FieldRef, dict[str, Any]]:
    """The field and the window of a call; a field-window URI contains both.

    `base` is the address of the server; the id may be an address below it.
    """
    id, field_path = request.id, request.field_path
    window = {name: request.loaded[name] for name in WINDOW if name in request.loaded}
    if id.startswith(handles.FIELD_WINDOW_SCHEME):
        address = handles.parse_field_window(id)
        checked = OPERATION.load({"id": id, **dict(address.window)})
        window = {**{name: checked[name] for name in WINDOW if name in checked}, **window}
        field_path = field_path or address.field_path
    record = handles.parse(handles.from_address(id, base), connection_id=request.connection_id)
    if not field_path:
        raise InvalidRequest(
            "field_path is missing. Call fetch to see the fields of the record, then pass one "
            "as field_path.",
            param="field_path",
            calls=(Continuation("fetch", {"id": str(record)}, "fields"),),
        )
    by_query = "query" in window
    window = {
        name: value
        for name, value in window.items()
        if IDLE.get(name) != value or by_query != (name == "offset_chars")
    }
    _check(window)
    return FieldRef(record, field_path), window


def ask(session: Session, request: FieldRequest) -> Answer[FieldRead]:
    """The window of a field; as in PDPP, it begins at a match unless `before_chars` is given."""
    return _ask(session, *resolve(request, session.address))


def run(session: Session, request: FieldRequest) -> FieldRead:
    target, window = resolve(request, session.address)
    read = _ask(session, target, _around(window)).value
    args = {"id": read.id, "field_path": read.field_path, **window}
    return renderer.fit(replace(read, args=args), BUDGETS)


def _ask(session: Session, target: FieldRef, window: dict[str, Any]) -> Answer[FieldRead]:
    return session.rs.field_window(target.record, target.field_path, WindowRequest.of(window))


def _around(window: dict[str, Any]) -> dict[str, Any]:
    """The window with the default text before a match; even a small window contains the match."""
    if "query" not in window or "before_chars" in window:
        return window
    size = window.get("limit_chars")
    if size is None and "after_chars" not in window:
        size = CONTRACT.window_chars
    before = CONTRACT.match_before_chars
    if size is not None:
        room = max(0, size - len(window["query"]))
        window, before = {**window, "limit_chars": size}, min(before, room // 2)
    return {**window, "before_chars": before}


def _check(window: dict[str, Any]) -> None:
    """`query` and `offset_chars` exclude each other; match and context need `query`."""
    if "query" in window and "offset_chars" in window:
        raise InvalidRequest(
            "Use query or offset_chars, not both.", code="invalid_window", param="offset_chars"
        )
    for name in ("match", "before_chars", "after_chars"):
        if name in window and "query" not in window:
            raise InvalidRequest(
                f"{name} needs query. Add query, or use offset_chars and limit_chars.",
                code="invalid_window",
                param=name,
            )


def _by_declared_name(raw: dict[str, Any]) -> dict[str, Any]:
    return arguments.with_id(arguments.renamed(raw, q="query"))


def _from_cursor(loaded: dict[str, Any]) -> dict[str, Any]:
    """The `cursor` of REST is an offset."""
    offset = loaded.pop("cursor", None)
    if offset is None:
        return loaded
    if loaded.get("offset_chars") is not None:
        raise InvalidRequest("Use cursor or offset_chars, not both.", param="cursor")
    return {**loaded, "offset_chars": int(offset)}


OPERATION = RecordOperation(
    title="Read part of a field",
    description=(
        "Read a window of one field, at an offset or around a query match. The answer has the "
        "calls for other windows and the next match. Nested values are returned as JSON, and "
        "binary fields as metadata."
    ),
    request=FieldRequest,
    ask=ask,
    run=run,
    render=renderer.render,
    rewrite=_by_declared_name,
    route=Route(
        "/v1/streams/<stream>/records/<record_id>/field-window",
        extra={"cursor": Digits("The next_offset_chars of the previous window.")},
        meaning=_from_cursor,
    ),
    examples=({"id": "gmail-home/messages:m_0042", "field_path": "body"},),
)
