"""The papers surface: its tools, and `paper://` resources that give the same texts.

Resources are `{paper_id}/metadata`, `/summary`, `/summary/{template}`, `/source` and
`/translation/{lang}`, each but the first with `?offset_chars=`. Parts are percent-encoded.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import orjson

from evidence.errors import InvalidRequest, NotFound
from evidence.limits import CONTRACT
from evidence.papers import METADATA, SOURCE, SUMMARY
from service.mcp.surface import OperationTools, instructions, template
from service.operations.base import Operation, PaperSession
from service.operations.papers import PAPER_OPERATIONS

SCHEME = "paper://"

_URI = re.compile(
    f"({SCHEME}([^/?]+)/(metadata|source|summary|summary/([^/?]+)|translation/([^/?]+)))"
    r"(?:\?(.*))?"
)
_OFFSET = re.compile(r"offset_chars=([0-9]{1,18})")


JSON = "application/json"
MARKDOWN = "text/markdown"
_CUT = f"Up to {CONTRACT.paper_resource_chars:,} characters; ?offset_chars= continues."


TEMPLATES = tuple(
    template(f"{SCHEME}{{paper_id}}/{path}", name, title, description, media)
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
        path, tool, arguments = _call(uri)
        rendering = self.rendered(self._operations[tool], arguments, session)
        if tool == METADATA:
            return [
                {"uri": uri, "mimeType": JSON, "text": orjson.dumps(rendering.structured).decode()}
            ]
        media = JSON if tool == SUMMARY else MARKDOWN
        contents = [{"uri": uri, "mimeType": media, "text": rendering.blocks[0]}]
        if rendering.structured["truncation_marker"]:
            following = f"{path}?offset_chars={rendering.structured['end_chars']}"
            contents.append(
                {"uri": following, "mimeType": "text/plain", "text": f"next: resource {following}"}
            )
        return contents


def _call(uri: str) -> tuple[str, str, dict[str, Any]]:
    """The resource without its query, the tool that corresponds to it, and its arguments.

    Raises `NotFound` where there is none, `InvalidRequest` for a bad query.
    """
    found = _URI.fullmatch(uri)
    if found is None:
        raise NotFound(
            "No such resource. Resources are paper://{paper_id}/metadata, /summary, "
            "/summary/{template}, /source and /translation/{lang}; search_papers gives paper ids."
        )
    path, paper_id, kind, summary, lang, query = found.groups()
    arguments: dict[str, Any] = {"paper_id": unquote(paper_id)}
    if kind == "metadata":
        if query:
            raise InvalidRequest("The metadata of a paper is whole: leave out what follows the ?.")
        return path, METADATA, arguments
    offset = _OFFSET.fullmatch(query or "offset_chars=0")
    if offset is None:
        raise InvalidRequest(
            "A paper resource takes ?offset_chars= with a whole number, and nothing else.",
            param="offset_chars",
        )
    arguments |= {"offset_chars": int(offset[1]), "max_chars": CONTRACT.paper_resource_chars}
    if kind.startswith("summary"):
        return path, SUMMARY, {**arguments, "template": summary and unquote(summary)}
    return path, SOURCE, {**arguments, "lang": lang and unquote(lang)}
