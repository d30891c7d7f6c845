"""The readable text of a page: lines for blocks, tabs between cells, links, names of pictures."""

import re
from functools import cache
from html import unescape
from typing import Any

_SPACES = re.compile(r"[ \u00a0]*\t[ \u00a0]*|[ \u00a0]+(?=\n|$)")
_TAG = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s*\n")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")


def text_of(page: str) -> str:
    """The text of an HTML page, with the targets of its links and the names of its pictures."""
    from inscriptis import Inscriptis  # imported for HTML mail only
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, fromstring

    page = _DECLARATION.sub("", page.replace("\0", "\ufffd"))
    if not page.strip():
        return ""
    parser = HTMLParser(huge_tree=True)
    try:
        tree = fromstring(page, parser=parser)
        text = Inscriptis(tree, _config()).get_text()
    except ParserError:
        return ""  # nothing but comments
    except RecursionError:
        text = None
    if text is None or any("depth" in error.message for error in parser.error_log):
        text = unescape(_TAG.sub(" ", page))  # nested more deeply than the parsers go
    return _BLANK_LINES.sub("\n\n", _SPACES.sub(_space, text)).strip()


def _space(found: re.Match[str]) -> str:
    return "\t" if "\t" in found[0] else ""


@cache
def _config() -> Any:
    from inscriptis.css_profiles import CSS_PROFILES
    from inscriptis.model.config import ParserConfig

    return ParserConfig(
        css=CSS_PROFILES["strict"],
        display_links=True,
        display_images=True,
        table_cell_separator="\t",
    )
