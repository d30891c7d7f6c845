"""Splits part of a Markdown text into page blocks: headings, lists, tables and code.

Formulae keep their lines, like code. `[[links]]` lead to other notes. Other links, images and HTML
stay as written. The template escapes every piece.
"""

import re
from typing import Final, NamedTuple

from evidence.text import escape


class Run(NamedTuple):
    """An element, or an empty string; its text as (whether it is marked, text); a note's name."""

    element: str
    parts: list[tuple[bool, str]]
    note: str = ""


Inline = list[Run]


class Block(NamedTuple):
    """An element (h2 to h6, ul, ol, p, pre or table), its text, items or cells, and a number: the
    first of a list, or the columns of a table."""

    kind: str
    lines: list[Inline]
    start: int


#: Limits of the elements on one page, which take many times the bytes of their text.
CELLS: Final = 600
LINKS: Final = 60
#: The ends of a marked range, which are no characters of any text.
_START, _END = "\ufdd0", "\ufdd1"
_MARKS: Final = re.compile(f"([{_START}{_END}])")
_DELIMITERS: Final = re.compile(r"\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?\s*)?")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_ITEM: Final = re.compile(r"[ \t]*([-*+]|(\d{1,9})[.)])[ \t]+(\S.*)")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,}|\$\$)([^`$]*)")
_MARKED: Final = re.compile(
    r"(?P<code>`([^`\n]+)`)|(?P<strong>\*\*(?=\S)([^*\n]+)(?<=\S)\*\*)"
    r"|(?P<em>(?<![*\w])\*(?=\S)([^*\n]+)(?<=\S)\*(?![*\w]))"
    r"|(?P<a>\[\[([^\[\]|#\n]{1,120})(#[^\[\]|\n]{0,120})?(\|[^\[\]\n]{1,120})?\]\])"
)


def _fence_after(line: str, fence: str) -> str:
    """The open fence after a line, given the open `fence` before it; "" for none."""
    match = _FENCE.fullmatch(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1].startswith(fence) and not match[2].strip() else fence


def open_fence(text: str) -> str:
    """The open fence at the end of a text that starts without one."""
    fence = ""
    for line in _lines(text):
        fence = _fence_after(line, fence)
    return fence


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def blocks(
    text: str, fence: str = "", *, marked: tuple[int, int] | None = None, links: bool = False
) -> list[Block]:
    """The blocks of a text in order; an unfinished one ends with the text.

    `fence` is the open fence at the start of the text, `marked` the range of a match in it. `links`
    turns `[[links]]` into elements.
    """
    start, end = marked or (0, 0)
    text = _MARKS.sub("\ufffd", text)
    ranges = (text[:start], text[start:end], text[end:]) if marked else (text,)
    before, *rest = (escape(part)[0] for part in ranges)
    text = f"{before}{_START}{rest[0]}{_END}{rest[1]}" if rest else before
    drafts: list[tuple[str, list[str], int]] = [("pre", [], 1)] if fence else []
    parted, bare = True, False
    for line in _lines(text):
        kind = drafts[-1][0] if drafts else ""
        # The rows of a table, which need no bar at their ends after the line of delimiters.
        is_row = line.startswith("|") or (kind == "pre" and bare and not parted and "|" in line)
        bare = is_row and bare
        before, fence = fence, _fence_after(line, fence)
        if fence and not before:
            drafts.append(("pre", [], 1))
        elif before and not fence:
            parted = True
        elif fence:
            drafts[-1][1].append(line)
        elif not line.strip():
            parted = True
        elif heading := _HEADING.fullmatch(line):
            drafts.append((f"h{min(len(heading[1]) + 1, 6)}", [heading[2].strip()], 1))
            parted = True
        elif item := _ITEM.fullmatch(line):
            list_kind = "ol" if item[2] else "ul"
            if kind != list_kind:
                drafts.append((list_kind, [], int(item[2] or 1)))
            drafts[-1][1].append(item[3])
            parted = False
        elif kind == "p" and not parted and _is_header(drafts[-1][1][-1], line):
            paragraph, _, header = drafts[-1][1].pop().rpartition("\n")
            drafts[-1][1].append(paragraph)
            drafts.append(("pre", [header, line], 1))
            bare = True
        elif parted or (kind == "pre") != is_row:
            drafts.append(("pre" if is_row else "p", [line], 1))
            parted = False
        elif kind == "pre":
            drafts[-1][1].append(line)
        else:  # another line of a paragraph or an item
            drafts[-1][1][-1] += f"\n{line}"
    inlines = _Inlines(LINKS if links else 0)
    return [inlines.block(*draft) for draft in drafts if "".join(draft[1]).strip()]


def _is_header(paragraph: str, line: str) -> bool:
    """Whether a line of delimiters makes the line before it the header of a table."""
    return "|" in paragraph.rpartition("\n")[2] and _is_delimiters(line)


def _is_delimiters(line: str) -> bool:
    return _DELIMITERS.fullmatch(_MARKS.sub("", line).strip()) is not None


class _Inlines:
    """The pieces of blocks in order. A marked range may begin in one and end in another."""

    def __init__(self, links: int) -> None:
        self.links, self.cells, self.is_marked = links, CELLS, False

    def block(self, kind: str, lines: list[str], start: int) -> Block:
        if kind != "pre":
            return Block(kind, [self._inline(line) for line in lines], start)
        if len(lines) > 1 and _is_delimiters(lines[1]):
            rows = [_cells(line) for line in (lines[0], *lines[2:])]
            columns = len(rows[0])
            self.cells -= 10 + columns * len(rows)
            if self.cells >= 0:
                padded = ([*row, *[""] * columns][:columns] for row in rows)
                return Block(
                    "table", [self._inline(cell) for row in padded for cell in row], columns
                )
        return Block(kind, [[self._run("", "\n".join(lines))]], start)

    def _inline(self, text: str) -> Inline:
        """Emphasis, code and links in a line of text."""
        pieces, position = Inline(), 0
        for mark in _MARKED.finditer(text):
            element, inner = str(mark.lastgroup), mark[0].strip("`" if mark[0][0] == "`" else "*")
            note = ""
            if element == "a":
                if not self.links:
                    continue
                self.links -= 1
                name, _, label = mark[0][2:-2].partition("|")
                note, inner = _MARKS.sub("", name.partition("#")[0]).strip(), label or name
            pieces.append(self._run("", text[position : mark.start()]))
            pieces.append(self._run(element, inner, note))
            position = mark.end()
        return [run for run in [*pieces, self._run("", text[position:])] if run.parts]

    def _run(self, element: str, text: str, note: str = "") -> Run:
        parts = []
        for part in _MARKS.split(text):
            if part in (_START, _END):
                self.is_marked = part == _START
            elif part:
                parts.append((self.is_marked, part))
        return Run(element, parts, note)


def _cells(row: str) -> list[str]:
    """The cells of a row of a table."""
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]
