"""fetch: one record as a document of id, title, text, url and metadata."""

from collections.abc import Sequence
from typing import Any

from evidence import handles, pointer
from evidence.limits import CONTRACT
from evidence.records import Document, Record
from evidence.values import Preview
from renderers import document as renderer
from renderers.document import lay_out
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session
from service.ports import Answer, RecordRead, WindowRequest


class FetchArguments(Arguments):
    id = arguments.record_id()
    connection_id = arguments.connection_id()
    fields = arguments.Names("Only these fields of the record.")  # type: ignore[assignment]
    expand = arguments.Names("Relations from schema whose record ids to include.")
    expand_limit = arguments.ExpandLimit()


def ask(
    session: Session, *, id: str, connection_id: str | None = None, whole: bool = False, **args: Any
) -> Answer[Record]:
    """Return the record; `whole` is explained in `RecordRead`."""
    ref = handles.parse(id, connection_id=connection_id)
    return session.rs.record(RecordRead(ref, whole=whole, **args))


def run(session: Session, *, id: str, connection_id: str | None = None, **args: Any) -> Document:
    """The document; a long text field is truncated at the document's limit."""
    ref = handles.parse(id, connection_id=connection_id)
    record = ask(session, id=id, connection_id=connection_id, **args).value
    owner = record.ref.connection_id
    owned = ref._replace(connection_id=owner)
    text, name = None, record.text_field
    if name and isinstance(record.data[name], Preview):
        window = WindowRequest(limit_chars=CONTRACT.document_chars)
        text = session.rs.field_window(owned, pointer.path_of(name), window).value.text
    following = _following(session, owned, args.get("fields", ()))
    return lay_out(record, url=owned.url, body_text=text, following=following)


def _following(session: Session, ref: handles.RecordRef, fields: Sequence[str]) -> list[str]:
    """The fields of the record after the last requested one, if no more could be named.

    The call for the fields left out of a wide record then leads to all of them.
    """
    if len(fields) < CONTRACT.names_in_list:
        return []
    order = list(session.rs.record(RecordRead(ref)).value.data)
    asked = frozenset(fields)
    last = max((place for place, name in enumerate(order) if name in asked), default=len(order))
    return order[last + 1 :]


OPERATION = RecordOperation(
    name="fetch",
    title="Fetch a record",
    description=(
        "Returns one record as a document: id, title, text, url, metadata. If the text is cut, "
        "metadata.next_read is the call that continues."
    ),
    arguments=FetchArguments(),
    ask=ask,
    run=run,
    render=renderer.render,
    rewrite=arguments.with_id,
    route=Route("/v1/streams/<stream>/records/<record_id>"),
    examples=({"id": "gmail-home/messages:m_0042"},),
)
