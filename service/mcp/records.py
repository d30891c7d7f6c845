"""The records surface: its tools and its `pdpp://` resources."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evidence import handles
from evidence.errors import NotFound
from service.mcp.surface import OperationTools, instructions, template
from service.operations import OPERATIONS
from service.operations.base import Operation, Session

JSON, TEXT = "application/json", "text/plain"

TEMPLATES = tuple(
    template(f"pdpp://{name}/{{{part}}}", name, title, f"The same {what}.", mime_type)
    for name, part, title, what, mime_type in (
        ("record", "handle", "A record", "document as the fetch tool returns", JSON),
        (
            "field-window",
            "handle",
            "A window of a field",
            "text as read_record_field returns",
            TEXT,
        ),
        ("stream", "name", "A stream", "text as schema returns for the stream", TEXT),
    )
)


class RecordsSurface(OperationTools):
    """The records tools. See `surface.Surface`."""

    name = "rung"
    title = "Rung: records as evidence"
    instructions = instructions("records")
    templates: Sequence[Mapping[str, Any]] = TEMPLATES
    private = True

    def __init__(self, operations: Sequence[Operation] = OPERATIONS) -> None:
        super().__init__(operations)

    def read(self, uri: str, session: Session) -> list[dict[str, Any]]:
        """The contents of a `pdpp://` resource: the text of the matching tool."""
        for scheme, (name, mime_type, arguments) in RESOURCES.items():
            if uri.startswith(scheme):
                rendering = self.rendered(self._operations[name], arguments(uri), session)
                return [{"uri": uri, "mimeType": mime_type, "text": rendering.blocks[0]}]
        raise NotFound(
            "No such resource. Resources are pdpp://record/, pdpp://field-window/ and "
            "pdpp://stream/. Use search to find ids, and fetch to read them."
        )


def _record_arguments(uri: str) -> dict[str, Any]:
    return {"id": uri}


def _stream_arguments(uri: str) -> dict[str, Any]:
    stream, connection_id = handles.parse_stream(uri)
    return {"stream": stream, "connection_id": connection_id}


RESOURCES: dict[str, tuple[str, str, Callable[[str], dict[str, Any]]]] = {
    handles.RECORD_SCHEME: ("fetch", JSON, _record_arguments),
    handles.FIELD_WINDOW_SCHEME: ("read_record_field", TEXT, _record_arguments),
    handles.STREAM_SCHEME: ("schema", TEXT, _stream_arguments),
}
