"""fetch: one record as a document of id, title, text, url and metadata."""

from collections.abc import Sequence
from typing import Any

from evidence import handles, pointer, routes
from evidence.envelope import Envelope
from evidence.limits import CONTRACT
from evidence.model import Document
from service.pdpp.decode import document as reading
from service.pdpp.decode import object_of, text_of
from renderers import document as renderer
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session
from service.ports import RecordRead, WindowRequest


class FetchArguments(Arguments):
    id = arguments.record_id()
    connection_id = arguments.connection_id()
    fields = arguments.Names("Only these fields of the record.")  # type: ignore[assignment]
    expand = arguments.Names("Relations from schema whose record ids to add.")
    expand_limit = arguments.ExpandLimit()


def ask(
    session: Session, *, id: str, connection_id: str | None = None, whole: bool = False, **args: Any
) -> Envelope:
    """Return the record envelope; `whole` is explained in `RecordRead`."""
    ref = handles.parse(id, connection_id=connection_id)
    names: dict[str, Any] = {
        name: tuple(args.pop(name)) for name in ("fields", "expand") if name in args
    }
    return session.rs.record(RecordRead(ref, whole=whole, **names, **args))


def run(session: Session, *, id: str, connection_id: str | None = None, **args: Any) -> Document:
    """The document; a long text field is read as far as a document holds."""
    ref = handles.parse(id, connection_id=connection_id)
    envelope = ask(session, id=id, connection_id=connection_id, **args)
    body = envelope.body
    owner = text_of(body, "connection_id") or ref.connection_id
    found = handles.RecordRef(ref.stream, ref.record_id, owner)
    text = None
    name = reading.text_field(body)
    if name and isinstance(body["data"][name], dict):
        window = WindowRequest(limit_chars=CONTRACT.document_chars)
        answer = session.rs.field_window(found, pointer.path_of(name), window).body
        text = text_of(answer.get("window"), "text")
    where = f"?connection_id={routes.segment(owner)}" if owner else ""
    url = routes.record(ref.stream, ref.record_id) + where
    following = _following(session, found, args.get("fields", ()))
    return reading.read_document(envelope, ref=found, url=url, body_text=text, following=following)


def _following(session: Session, ref: handles.RecordRef, fields: Sequence[str]) -> list[str]:
    """The fields of the record after the last one asked for, if no more could be named.

    So the call for the fields that were left out of a wide record leads to all of them.
    """
    if len(fields) < CONTRACT.names_in_list:
        return []
    order = list(object_of(session.rs.record(RecordRead(ref)).body, "data"))
    asked = frozenset(fields)
    last = max((place for place, name in enumerate(order) if name in asked), default=len(order))
    return order[last + 1 :]


OPERATION = RecordOperation(
    name="fetch",
    title="Fetch a record",
    description=(
        "Fetches one record as a document with id, title, text, url and metadata. Long text is cut "
        "and metadata.next_read is the call that reads on; prefer read_record_field for parts."
    ),
    arguments=FetchArguments(),
    ask=ask,
    run=run,
    render=renderer.render,
    route=Route("/v1/streams/<stream>/records/<record_id>"),
    examples=({"id": "gmail-work/messages:m_0042"},),
)
