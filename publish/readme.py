"""The README as the package index shows it: absolute links, and the name in the MCP registry."""

import re
from pathlib import PurePosixPath

from publish.identity import Identity

_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)\s]+)\)")


def index_readme(text: str, identity: Identity) -> str:
    """The text of the README with absolute links and pictures, and a line `mcp-name: …`."""

    def absolute(link: re.Match[str]) -> str:
        picture, label, target = link.groups()
        path = str(PurePosixPath(target))
        return f"{picture}{label}({identity.raw(path) if picture else identity.page(path)})"

    return f"{_LINK.sub(absolute, text)}\n<!--\nmcp-name: {identity.identity}\n-->\n"
