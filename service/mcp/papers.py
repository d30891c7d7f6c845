"""The papers surface: its tools, and `paper://` resources that give the same texts.

Resources are `{paper_id}/metadata`, `/summary`, `/summary/{template}`, `/source` and
`/translation/{lang}`, each but the first with `?offset_chars=`. Parts are percent-encoded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

import orjson

from evidence.errors import InvalidRequest, NotFound
from evidence.limits import CONTRACT
from evidence.papers import METADATA, SOURCE, SUMMARY
from service.mcp.surface import OperationTools, instructions, template
from service.operations.base import Operation, PaperSession
from service.operations.papers import PAPER_OPERATIONS

SCHEME = "paper://"

#: Kinds of resources, and whether a name follows: no, yes, or either.
KINDS: dict[str, tuple[bool, ...]] = {
    "metadata": (False,),
    "summary": (False, True),
    "source": (False,),
    "translation": (True,),
}
_OFFSET = "offset_chars"


@dataclass(frozen=True, slots=True)
class PaperUri:
    """A resource of a paper. `name` is a template or a language; `offset` counts code points."""

    paper_id: str
    kind: str
    name: str | None = None
    offset: int = 0

    def __str__(self) -> str:
        parts = [self.paper_id, self.kind, *([] if self.name is None else [self.name])]
        path = "/".join(quote(part, safe="") for part in parts)
        return f"{SCHEME}{path}" + (f"?{_OFFSET}={self.offset}" if self.offset else "")

    def at(self, offset: int) -> "PaperUri":
        """The same resource from another place on."""
        return replace(self, offset=offset)


def parse(uri: str) -> PaperUri:
    """The resource a URI names; `NotFound` where none, `InvalidRequest` for a bad query."""
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    parts = [unquote(part) for part in path.split("/")]
    names = KINDS.get(parts[1], ()) if len(parts) in (2, 3) else ()
    if not uri.startswith(SCHEME) or not all(parts) or (len(parts) == 3) not in names:
        raise NotFound(
            "No such resource. Resources are paper://{paper_id}/metadata, /summary, "
            "/summary/{template}, /source and /translation/{lang}; search_papers gives paper ids."
        )
    if query and parts[1] == "metadata":
        raise InvalidRequest("The metadata of a paper is whole: leave out what follows the ?.")
    return PaperUri(parts[0], parts[1], parts[2] if len(parts) == 3 else None, _offset(query))


def _offset(query: str) -> int:
    if not query:
        return 0
    name, _, value = query.partition("=")
    if name != _OFFSET or not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise InvalidRequest(
            "A paper resource takes ?offset_chars= with a whole number, and nothing else.",
            param=_OFFSET,
        )
    return int(value)


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
        asked = parse(uri)
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
