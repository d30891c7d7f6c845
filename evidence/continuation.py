"""The next call, as data. Renderers write it as a tool call, a link or a command."""

from dataclasses import dataclass
from typing import Any

#: Arguments that a cursor replaces. With the bookmark, a feed would begin again.
REPLACED_BY_CURSOR = ("cursor", "changes_since")


@dataclass(slots=True)
class Continuation:
    """A complete call of one operation: `args` are its arguments as MCP spells them.

    `why` says what it is for: read, next, previous, next_match, end, fetch, next_page, narrow,
    schema, retry.
    """

    operation: str
    args: dict[str, Any]
    why: str
