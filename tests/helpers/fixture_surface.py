"""A small surface for tests of the protocol: a few tools and resources, without a store."""

from collections.abc import Callable
from typing import Any

from evidence.errors import Forbidden, NotFound, Unauthenticated, Unavailable
from service.mcp.surface import NEEDS_CAPABILITY, UnknownTool

ANY_OBJECT: dict[str, Any] = {"type": "object"}


def tool(name: str, description: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tools/list entry."""
    title = name.replace("_", " ").capitalize()
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": schema,
        "annotations": {"title": title, "readOnlyHint": True},
        **more,
    }


def text_result(text: str, **more: Any) -> dict[str, Any]:
    """A tools/call result with one text block."""
    return {"content": [{"type": "text", "text": text}], **more}


def _echo(arguments: dict[str, Any], session: Any) -> dict[str, Any]:
    return text_result(f"{arguments.get('text', '')}", structuredContent=arguments)


def _fail(arguments: dict[str, Any], session: Any) -> dict[str, Any]:
    return text_result("That did not work. Try echo.", isError=True)


def _crash(arguments: dict[str, Any], session: Any) -> dict[str, Any]:
    raise RuntimeError("the secret cause")


def _link(arguments: dict[str, Any], session: Any) -> dict[str, Any]:
    link = {"type": "resource_link", "uri": "note://1", "name": "note", "title": "First note"}
    return {"content": [{"type": "text", "text": "see"}, link], "_meta": {"test/hidden": 1}}


def _whoami(arguments: dict[str, Any], session: Any) -> dict[str, Any]:
    return text_result(f"session={session}")


MIRRORED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "page": {
            "type": "object",
            "properties": {"size": {"type": "integer", "x-mcp-header": "Size"}},
        },
        "exact": {"type": "boolean", "x-mcp-header": "Exact"},
    },
}

#: A tools/list entry and what it runs.
Tool = tuple[dict[str, Any], Callable[[dict[str, Any], Any], dict[str, Any]]]

TOOLS: tuple[Tool, ...] = (
    (tool("echo", "Gives back what it is given.", ANY_OBJECT), _echo),
    (tool("whoami", "Says which session it was called in.", ANY_OBJECT), _whoami),
    (tool("fail", "Fails as a tool does.", ANY_OBJECT), _fail),
    (tool("crash", "Fails as a tool must not.", ANY_OBJECT), _crash),
    (tool("link", "Answers with a resource link.", ANY_OBJECT), _link),
    (tool("mirrored", "AnswerCache its arguments in headers.", MIRRORED), _echo),
    (tool("sample", "Needs sampling.", ANY_OBJECT, _meta={NEEDS_CAPABILITY: "sampling"}), _echo),
)


class FixtureSurface:
    """Answers from constants. A test sets the tools, and whether everything is private."""

    name = "fixture"
    title = "Fixture"
    version = "1.2.3"
    instructions = "Call echo."
    templates: tuple[dict[str, Any], ...] = ({"uriTemplate": "note://{number}", "name": "note"},)

    def __init__(self, *, private: bool = False, tools: tuple[Tool, ...] = TOOLS) -> None:
        self.private = private
        self.tools = [entry for entry, _ in tools]
        self._implementations = {entry["name"]: run for entry, run in tools}

    def call(self, name: str, arguments: dict[str, Any], session: Any) -> dict[str, Any]:
        if name not in self._implementations:
            raise UnknownTool(name)
        return self._implementations[name](arguments, session)

    def read(self, uri: str, session: Any) -> list[dict[str, Any]]:
        if uri not in ("note://1", "note://ü"):
            raise NotFound("There is no such note.", hint="Read note://1.", param="uri")
        return [{"uri": uri, "mimeType": "text/plain", "text": "a note"}]

    def resources(self, session: Any) -> list[dict[str, Any]]:
        return [{"uri": "note://1", "name": "note"}]


def open_session(token: str | None) -> str:
    """A session named after its token. Only `good` is valid; the others fail in different ways."""
    if token is None or token == "good":
        return token or "anonymous"
    if token == "owner":
        raise Forbidden("Owner tokens are not taken here.", hint="Send a client token.")
    if token == "early":
        raise Unavailable("The authority does not answer.", hint="Try again in a minute.")
    if token == "cursed":
        raise RuntimeError("the secret cause")
    raise Unauthenticated("The token is not known.", hint="Ask for a new one.")
