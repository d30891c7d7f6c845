"""The interface between the protocol and a surface: tools and resources."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

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

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def instructions(self) -> str: ...
    @property
    def tools(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def templates(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def private(self) -> bool: ...

    def call(self, name: str, arguments: dict[str, Any], session: Any) -> dict[str, Any]:
        """A complete tools/call result, failures included. Raises `UnknownTool(name)`."""
        ...

    def read(self, uri: str, session: Any) -> list[dict[str, Any]]:
        """The contents of one resource. Raises `EvidenceError` if there are none."""
        ...

    def resources(self, session: Any) -> list[dict[str, Any]]:
        """The resources worth listing for this caller; often none."""
        ...
