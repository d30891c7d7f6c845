"""Splits a part of a Markdown text into blocks for a page: headings, lists, paragraphs and code.

Formulae and tables keep their lines, like code. Links, images and HTML stay as written. The
template escapes every piece.
"""

import re
from typing import Final, NamedTuple

from evidence.text import escape

#: (the element of a piece, or an empty string; its text).
Inline = list[tuple[str, str]]


class Block(NamedTuple):
    """An element (h2 to h6, ul, ol, p or pre), its text or its items, and the first number."""

    kind: str
    lines: list[Inline]
    start: int


_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_ITEM: Final = re.compile(r"[ \t]*([-*+]|(\d{1,9})[.)])[ \t]+(\S.*)")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,}|\$\$)([^`$]*)")
_MARKED: Final = re.compile(
    r"(?P<code>`([^`\n]+)`)|(?P<strong>\*\*(?=\S)([^*\n]+)(?<=\S)\*\*)"
    r"|(?P<em>(?<![*\w])\*(?=\S)([^*\n]+)(?<=\S)\*(?![*\w]))"
)


def _fence_after(line: str, fence: str) -> str:
    """The open fence after a line, given the open `fence` before it; "" for none."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not found[2].strip() else fence


def open_fence(text: str) -> str:
    """The open fence at the end of a text that starts without one."""
    fence = ""
    for line in _lines(text):
        fence = _fence_after(line, fence)
    return fence


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def blocks(text: str, fence: str = "") -> list[Block]:
    """The blocks of a text in order; an unfinished one ends with the text.

    `fence` is the open fence at the start of the text.
    """
    found: list[tuple[str, list[str], int]] = [("pre", [], 1)] if fence else []
    parted = True
    for line in _lines(text):
        kind = found[-1][0] if found else ""
        before, fence = fence, _fence_after(line, fence)
        if fence and not before:
            found.append(("pre", [], 1))
        elif before and not fence:
            parted = True
        elif fence:
            found[-1][1].append(line)
        elif not line.strip():
            parted = True
        elif heading := _HEADING.fullmatch(line):
            found.append((f"h{min(len(heading[1]) + 1, 6)}", [heading[2].strip()], 1))
            parted = True
        elif item := _ITEM.fullmatch(line):
            list_kind = "ol" if item[2] else "ul"
            if kind != list_kind:
                found.append((list_kind, [], int(item[2] or 1)))
            found[-1][1].append(item[3])
            parted = False
        elif parted or (kind == "pre") != line.startswith("|"):
            found.append(("pre" if line.startswith("|") else "p", [line], 1))
            parted = False
        elif kind == "pre":
            found[-1][1].append(line)
        else:  # another line of a paragraph or an item
            found[-1][1][-1] += f"\n{line}"
    return [
        Block(kind, _pieces(kind, lines), start)
        for kind, lines, start in found
        if "".join(lines).strip()
    ]


def _pieces(kind: str, lines: list[str]) -> list[Inline]:
    if kind == "pre":
        return [[("", escape("\n".join(lines))[0])]]
    return [_inline(escape(line)[0]) for line in lines]


def _inline(text: str) -> Inline:
    """Emphasis and code in a line of text."""
    pieces, place = Inline(), 0
    for mark in _MARKED.finditer(text):
        pieces.append(("", text[place : mark.start()]))
        pieces.append((str(mark.lastgroup), mark[0].strip("`" if mark[0][0] == "`" else "*")))
        place = mark.end()
    return [piece for piece in [*pieces, ("", text[place:])] if piece[1]]
