"""Removes links from pages of the site to files outside `docs/`, which the site does not have."""

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)#\s]+)[^)\s]*\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """The text of a page; a link to a file outside the site becomes its words."""
    docs, here = Path(config.docs_dir).resolve(), Path(page.file.abs_src_path).parent

    def kept(found: re.Match[str]) -> str:
        inside = (here / found[2]).resolve().is_relative_to(docs)
        return found[0] if inside else found[1]

    return LINK.sub(kept, markdown)
