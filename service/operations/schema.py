"""schema: the granted connections, streams and fields, and the queries they support."""

from typing import Any

from evidence.model import Continuation
from evidence.errors import InvalidRequest
from evidence.schema import Schema
from renderers import schema as renderer
from service.operations import arguments
from service.operations.base import Arguments, RecordOperation, Route, Session, run_of
from service.ports import Answer, SchemaQuery


class SchemaArguments(Arguments):
    stream = arguments.stream()
    connection_id = arguments.connection_id()
    detail = arguments.Choice(
        "`compact` (default), or `full` for the JSON Schema of one stream.", ("compact", "full")
    )
    fields_after = arguments.Text("Continue after this field name.")


def ask(session: Session, **args: Any) -> Answer[Schema]:
    """The schema; `full` without a stream is refused before anything is fetched."""
    query = SchemaQuery(**args)
    if query.detail == "full" and query.stream is None:
        raise InvalidRequest(
            'detail="full" needs a stream. Call schema {} to find one, then retry with '
            'schema(stream, connection_id, detail: "full").',
            param="detail",
            retry_with="stream",
            calls=(Continuation("schema", {}, "find_stream"),),
        )
    return session.rs.schema(query)


OPERATION = RecordOperation(
    name="schema",
    title="Discover streams and fields",
    description=(
        "Start here. Lists the connections and streams this token can read; with stream, its "
        "fields, filters, sorting, relations and example calls."
    ),
    arguments=SchemaArguments(),
    ask=ask,
    run=run_of(ask),
    render=renderer.render,
    route=Route(
        "/v1/schema",
        extra={"view": arguments.Choice("compact for the short form.", ("compact", "full"))},
    ),
    examples=({}, {"stream": "messages"}),
)
