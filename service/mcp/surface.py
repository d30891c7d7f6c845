"""What the protocol needs from a surface (tools and resources), and the surfaces themselves.

Resources return the texts of tools: `pdpp://record/{handle}`, `pdpp://field-window/{handle}` and
`pdpp://stream/{name}`. Those of papers are `paper://{paper_id}/metadata`, `/summary`,
`/summary/{template}`, `/source` and `/translation/{lang}`, all but the first with `?offset_chars=`.
Parts are percent-encoded.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote

import orjson

from evidence import handles, request_log, wire
from evidence.errors import EvidenceError, InvalidRequest, NotFound
from evidence.limits import CONTRACT
from evidence.papers import METADATA, SOURCE, SUMMARY
from evidence.version import VERSION
from renderers import failure
from renderers.rendering import Context, Rendering, timed_out
from service.operations import OPERATIONS
from service.operations.base import AnyOperation, Caller, PaperSession, Session, retries
from service.operations.base import run_bounded
from service.operations.papers import PAPER_OPERATIONS

#: In a tool's `_meta`: the client capability without which the tool cannot work.
NEEDS_CAPABILITY: Final = "rung/needs-capability"


def instructions(name: str) -> str:
    """The text of `instructions/`, one line per paragraph.

    The first 512 characters must suffice: some hosts truncate there.
    """
    file = Path(__file__).with_name("instructions") / f"{name}.md"
    paragraphs = file.read_text(encoding="utf-8").strip().split("\n\n")
    return "\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def template(uri: str, name: str, title: str, description: str, media: str) -> dict[str, Any]:
    """An entry of resources/templates/list."""
    about = {"name": name, "title": title, "description": description, "mimeType": media}
    return {"uriTemplate": uri, **about}


class UnknownTool(LookupError):
    """The surface does not have the tool that `call` names; the argument is its name."""


class Surface(Protocol):
    """A fixed set of tools and resources.

    `session` is what the transport opened for a caller. `tools` and `templates` are complete list
    entries in display order. They are serialised once, so they must not change afterwards.
    `private` means that answers depend on the caller, so no shared cache may keep them.
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

    def __init__(self, operations: Sequence[AnyOperation]) -> None:
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
        arguments = operation.understood(arguments)
        try:
            rendering = self.rendered(operation, arguments, session)
        except EvidenceError as error:
            request_log.current().error = error.code
            error.calls += retries(error, operation, arguments)
            return {
                "content": [_text(failure.render_lines(error))],
                "structuredContent": wire.failure(error),
                "isError": True,
            }
        result: dict[str, Any] = {
            "content": [_text(block) for block in rendering.blocks],
            "structuredContent": rendering.structured,
        }
        if rendering.hidden:
            result["_meta"] = {HIDDEN: rendering.hidden["resource"]}
        return result

    def rendered(self, operation: AnyOperation, raw: dict[str, Any], session: Caller) -> Rendering:
        """Both channels of the answer of an operation to raw arguments."""
        arguments = operation.load(raw)
        result = run_bounded(operation, session, arguments)
        if timed_out(result):
            request_log.current().incomplete = True
        context = Context(fence_key=session.fence_key, base_url=session.base_url)
        return operation.render(result, context)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


JSON, TEXT, MARKDOWN = "application/json", "text/plain", "text/markdown"

#: Resources of records: scheme, name, title, content, tool and media type.
_RECORDS = (
    (
        handles.RECORD_SCHEME,
        "record",
        "A record",
        "document that the fetch tool returns",
        "fetch",
        JSON,
    ),
    (
        *(handles.FIELD_WINDOW_SCHEME, "field-window", "A window of a field"),
        *("text that read_record_field returns", "read_record_field", TEXT),
    ),
    (
        *(handles.STREAM_SCHEME, "stream", "A stream"),
        *("text that schema returns for the stream", "schema", TEXT),
    ),
)


class RecordsSurface(OperationTools):
    """The records tools and their `pdpp://` resources. See `Surface`."""

    name = "rung"
    title = "Rung: records as evidence"
    instructions = instructions("records")
    private = True
    templates: Sequence[Mapping[str, Any]] = tuple(
        template(
            f"{scheme}{{{'name' if tool == 'schema' else 'handle'}}}",
            name,
            title,
            f"The {what}.",
            media,
        )
        for scheme, name, title, what, tool, media in _RECORDS
    )

    def __init__(self, operations: Sequence[AnyOperation] = OPERATIONS) -> None:
        super().__init__(operations)

    def read(self, uri: str, session: Session) -> list[dict[str, Any]]:
        """The contents of a `pdpp://` resource: the text of the matching tool."""
        for scheme, _, _, _, tool, media in _RECORDS:
            if uri.startswith(scheme):
                arguments: dict[str, Any] = {"id": uri}
                if tool == "schema":
                    stream, connection_id = handles.parse_stream(uri)
                    arguments = {"stream": stream, "connection_id": connection_id}
                rendering = self.rendered(self._operations[tool], arguments, session)
                return [{"uri": uri, "mimeType": media, "text": rendering.blocks[0]}]
        raise NotFound(
            "No such resource. Resource URIs start with pdpp://record/, pdpp://field-window/ or "
            "pdpp://stream/. Use search to find ids, and fetch to read records."
        )


SCHEME = "paper://"

_URI = re.compile(
    f"({SCHEME}([^/?]+)/(metadata|source|summary|summary/([^/?]+)|translation/([^/?]+)))"
    r"(?:\?(.*))?"
)
_OFFSET = re.compile(r"offset_chars=([0-9]{1,18})")


_CUT = (
    f"Returns up to {CONTRACT.paper_resource_chars:,} characters. Add ?offset_chars= to continue."
)


class PapersSurface(OperationTools):
    """The papers tools. `private` if the library requires tokens. See `Surface`."""

    name = "rung-papers"
    title = "Rung: papers as evidence"
    instructions = instructions("papers")
    templates: Sequence[Mapping[str, Any]] = tuple(
        template(f"{SCHEME}{{paper_id}}/{path}", name, title, description, media)
        for path, name, title, description, media in (
            (
                "metadata",
                "metadata",
                "Metadata of a paper",
                "The same as get_paper_metadata.",
                JSON,
            ),
            ("summary", "summary", "Preferred summary of a paper", _CUT, JSON),
            ("summary/{template}", "summary-template", "A summary of a paper", _CUT, JSON),
            ("source", "source", "Source of a paper", _CUT, MARKDOWN),
            ("translation/{lang}", "translation", "A translation of a paper", _CUT, MARKDOWN),
        )
    )

    def __init__(
        self, operations: Sequence[AnyOperation] = PAPER_OPERATIONS, *, private: bool = False
    ) -> None:
        super().__init__(operations)
        self.private = private

    def read(self, uri: str, session: PaperSession) -> list[dict[str, Any]]:
        """The contents of a `paper://` resource; if truncated, a second entry continues it.

        Raises `NotFound` and the errors of the matching tool.
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
    """The resource without its query, the corresponding tool, and its arguments.

    Raises `NotFound` if there is none, `InvalidRequest` for a bad query.
    """
    match = _URI.fullmatch(uri)
    if match is None:
        raise NotFound(
            "No such resource. Resource URIs are paper://{paper_id}/metadata, /summary, "
            "/summary/{template}, /source and /translation/{lang}; search_papers returns paper "
            "ids."
        )
    path, paper_id, kind, summary, lang, query = match.groups()
    arguments: dict[str, Any] = {"paper_id": unquote(paper_id)}
    if kind == "metadata":
        if query:
            raise InvalidRequest(
                "Paper metadata has only one page. Remove the ? and everything after it."
            )
        return path, METADATA, arguments
    offset = _OFFSET.fullmatch(query or "offset_chars=0")
    if offset is None:
        raise InvalidRequest(
            "The only query parameter of a paper resource is offset_chars, a whole number.",
            param="offset_chars",
        )
    arguments |= {"offset_chars": int(offset[1]), "max_chars": CONTRACT.paper_resource_chars}
    if kind.startswith("summary"):
        return path, SUMMARY, {**arguments, "template": summary and unquote(summary)}
    return path, SOURCE, {**arguments, "lang": lang and unquote(lang)}
