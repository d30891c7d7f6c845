"""What the protocol asks of a surface, tools and resources, and operations as its tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from evidence import request_log
from evidence.errors import EvidenceError
from evidence.version import VERSION
from renderers import failure
from renderers.rendering import Context, Rendering, timed_out
from service.operations.base import Caller, Operation, retries, run_bounded

#: In a tool's `_meta`: the client capability without which the tool cannot work.
NEEDS_CAPABILITY: Final = "rung/needs-capability"


def instructions(name: str) -> str:
    """The text of `instructions/`, a line for each paragraph.

    The first 512 characters must suffice: some hosts cut there.
    """
    file = Path(__file__).with_name("instructions") / f"{name}.md"
    paragraphs = file.read_text(encoding="utf-8").strip().split("\n\n")
    return "\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def template(uri: str, name: str, title: str, description: str, mime_type: str) -> dict[str, Any]:
    """An entry of resources/templates/list."""
    return {
        "uriTemplate": uri,
        "name": name,
        "title": title,
        "description": description,
        "mimeType": mime_type,
    }


class UnknownTool(LookupError):
    """`call` was asked for a tool the surface does not have; the argument is its name."""


class Surface(Protocol):
    """A fixed set of tools and resources. `session` is what the transport opened for a caller.

    `tools` and `templates` are complete list entries in the order they are shown. They are
    serialised once, so they must not change afterwards. `private` means that answers depend on
    the caller, so no shared cache may keep them.
    """

    name: str
    title: str
    version: str
    instructions: str
    tools: Sequence[Mapping[str, Any]]
    templates: Sequence[Mapping[str, Any]]
    private: bool

    def call(self, name: str, arguments: dict[str, Any], session: Any) -> dict[str, Any]:
        """A complete tools/call result, failures included. Raises `UnknownTool(name)`."""

    def read(self, uri: str, session: Any) -> list[dict[str, Any]]:
        """The contents of one resource. Raises `EvidenceError` if there are none."""

    def resources(self, session: Any) -> list[dict[str, Any]]:
        """The resources worth listing for this caller; often none."""


#: The key of hidden metadata: URIs for hosts that read resources, never needed by a model.
HIDDEN = "rung/resource"


class OperationTools:
    """The tools of a surface. Subclasses add resources and describe the surface."""

    version = VERSION

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = {operation.name: operation for operation in operations}
        self.tools: Sequence[Mapping[str, Any]] = tuple(op.tool for op in operations)

    def resources(self, session: Any) -> list[dict[str, Any]]:
        """None: resources are found by search, not by browsing."""
        return []

    def call(self, name: str, arguments: dict[str, Any], session: Caller) -> dict[str, Any]:
        """A tools/call result; every `EvidenceError` is one too, with `isError`."""
        operation = self._operations.get(name)
        if operation is None:
            raise UnknownTool(name)
        try:
            return _result(self.rendered(operation, arguments, session))
        except EvidenceError as error:
            request_log.current().error = error.code
            error.calls += retries(error, operation, arguments)
            return {
                "content": [_text(failure.render_lines(error))],
                "structuredContent": failure.structured(error),
                "isError": True,
            }

    def rendered(self, operation: Operation, given: dict[str, Any], session: Caller) -> Rendering:
        """Both channels of the answer of an operation to unchecked arguments."""
        arguments = operation.load(given)
        reading = run_bounded(operation, session, arguments)
        if timed_out(reading):
            request_log.current().incomplete = True
        context = Context(fence_key=session.fence_key, base_url=session.base_url)
        return operation.render(reading, context)


def _result(rendering: Rendering) -> dict[str, Any]:
    result: dict[str, Any] = {
        "content": [_text(block) for block in rendering.blocks],
        "structuredContent": rendering.structured,
    }
    if rendering.hidden:
        result["_meta"] = {HIDDEN: rendering.hidden["resource"]}
    return result


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
