"""The papers surface: its tools, and `paper://` resources that give the same texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from evidence import paper_uris
from evidence.limits import CONTRACT
from evidence.paper_uris import PaperUri
from evidence.papers import METADATA, SOURCE, SUMMARY
from service.mcp.surface import OperationTools, instructions, template
from service.operations.base import Operation, PaperSession
from service.operations.papers import PAPER_OPERATIONS

JSON = "application/json"
MARKDOWN = "text/markdown"
_CUT = f"Up to {CONTRACT.paper_resource_chars:,} characters; ?offset_chars= continues."


TEMPLATES = tuple(
    template(f"{paper_uris.SCHEME}{{paper_id}}/{path}", name, title, description, media)
    for path, name, title, description, media in (
        ("metadata", "metadata", "Metadata of a paper", "The same as get_paper_metadata.", JSON),
        ("summary", "summary", "Preferred summary of a paper", _CUT, JSON),
        ("summary/{template}", "summary-template", "A summary of a paper", _CUT, JSON),
        ("source", "source", "Source of a paper", _CUT, MARKDOWN),
        ("translation/{lang}", "translation", "A translation of a paper", _CUT, MARKDOWN),
    )
)


class PapersSurface(OperationTools):
    """The papers tools. `private` where tokens close the library. See `surface.Surface`."""

    name = "rung-papers"
    title = "Rung: papers as evidence"
    instructions = instructions("papers")
    templates: Sequence[Mapping[str, Any]] = TEMPLATES

    def __init__(
        self, operations: Sequence[Operation] = PAPER_OPERATIONS, *, private: bool = False
    ) -> None:
        super().__init__(operations)
        self.private = private

    def read(self, uri: str, session: PaperSession) -> list[dict[str, Any]]:
        """The contents of a `paper://` resource; if truncated, a second entry continues it.

        Raises `NotFound` and what the matching tool raises.
        """
        asked = paper_uris.parse(uri)
        tool, arguments = _call(asked)
        rendering = self.rendered(self._operations[tool], arguments, session)
        if asked.kind == "metadata":
            return [
                {"uri": uri, "mimeType": JSON, "text": orjson.dumps(rendering.structured).decode()}
            ]
        media = JSON if asked.kind == "summary" else MARKDOWN
        contents = [{"uri": uri, "mimeType": media, "text": rendering.blocks[0]}]
        if rendering.structured["truncation_marker"]:
            following = str(asked.at(rendering.structured["end_chars"]))
            contents.append(
                {"uri": following, "mimeType": "text/plain", "text": f"next: resource {following}"}
            )
        return contents


def _call(asked: PaperUri) -> tuple[str, dict[str, Any]]:
    """The tool call that corresponds to a resource."""
    arguments: dict[str, Any] = {"paper_id": asked.paper_id}
    if asked.kind == "metadata":
        return METADATA, arguments
    arguments |= {"offset_chars": asked.offset, "max_chars": CONTRACT.paper_resource_chars}
    if asked.kind == "summary":
        return SUMMARY, {**arguments, "template": asked.name}
    return SOURCE, {**arguments, "lang": asked.name}
