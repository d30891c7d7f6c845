"""Exposes operations as MCP tools."""

from collections.abc import Mapping, Sequence
from typing import Any

from evidence import request_log
from evidence.errors import EvidenceError
from evidence.version import VERSION
from renderers import failure, heavy
from renderers.rendering import Context, Rendering
from service.mcp.surface import UnknownTool
from service.operations.base import Caller, Operation, retries, run_bounded

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
        request_log.current().incomplete |= heavy.timed_out(reading)
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
