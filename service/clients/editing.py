"""Inserts or removes one value in a JSON text and leaves every other character unchanged."""

import json
import re
from dataclasses import dataclass
from typing import Any

from service.clients.jsonc import Item, Node, read

_COMMENTS = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_INDENTED = re.compile(r"^([ \t]+)[^ \t\r\n]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Layout:
    """The line ends and the indent of a text, and whether it has several lines."""

    newline: str
    indent: str
    lines: bool

    @classmethod
    def of(cls, text: str) -> "Layout":
        first = text.find("\n")
        indented = _INDENTED.search(text)
        unit = indented.group(1) if indented else "  "
        return cls(
            newline="\r\n" if first > 0 and text[first - 1] == "\r" else "\n",
            indent="\t" if unit.startswith("\t") else unit,
            lines=first >= 0 or not text.strip() or text.strip() == "{}",
        )

    def dump(self, value: Any, outer: str) -> str:
        """A value as JSON, for a line that is indented by `outer`."""
        if not self.lines:
            return json.dumps(value, ensure_ascii=False)
        written = json.dumps(value, indent=self.indent, ensure_ascii=False)
        return written.replace("\n", self.newline + outer)


class Unfit(ValueError):
    """The text is JSON, but its structure does not allow the edit."""


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` under the keys of `path`; missing objects are created.

    Raises `Malformed` and `Unfit`.
    """
    layout, node = Layout.of(text), read(text)
    if node is None:
        lead = text if not text.strip() or text.endswith("\n") else text + layout.newline
        return lead + layout.dump(_nested(path, value), "") + layout.newline
    for number, key in enumerate(path):
        item = _member(node, path, number)
        if item is None:
            return _insert(text, layout, node, _nested(path[number + 1 :], value), key)
        node = item.value
    outer = _indent_of(text, node.start)
    return text[: node.start] + layout.dump(value, outer) + text[node.end :]


def append(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` at the end of the list under `path`, created if it is missing."""
    node = _find(text, path)
    if node is None:
        return put(text, path, [value])
    if text[node.start] != "[":
        raise Unfit(f"{_spelled(path)} is not a list")
    return _insert(text, Layout.of(text), node, value, None)


def take(text: str, path: tuple[str, ...], index: int | None = None) -> str:
    """The text without the value at `path`, or without one item of the list there."""
    parent = _find(text, path if index is not None else path[:-1])
    assert parent is not None, "what is taken was found before"
    item = parent.member(path[-1]) if index is None else parent.items[index]
    assert item is not None, "what is taken was found before"
    return _without(text, parent, item)


def found(text: str, path: tuple[str, ...]) -> Any:
    """The value at `path`, or None. Raises `Malformed` and `Unfit`."""
    node = _find(text, path)
    return None if node is None else node.plain


def _find(text: str, path: tuple[str, ...]) -> Node | None:
    node = read(text)
    for number in range(len(path)):
        item = _member(node, path, number) if node is not None else None
        if item is None:
            return None
        node = item.value
    return node


def _member(node: Node, path: tuple[str, ...], number: int) -> Item | None:
    """The member for the next key of a path; raises `Unfit` if it is ambiguous."""
    if not isinstance(node.plain, dict):
        raise Unfit(f"{_spelled(path[:number])} is not an object")
    if node.count(path[number]) > 1:
        raise Unfit(f"{_spelled(path[:number + 1])} occurs twice")
    return node.member(path[number])


def _spelled(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the whole"


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _insert(text: str, layout: Layout, parent: Node, value: Any, key: str | None) -> str:
    """The text with a new last part of `parent`: a member, or an item if `key` is None.

    It follows the comments of the part before it. A trailing comma is kept.
    """
    last = parent.items[-1] if parent.items else None
    begin = (last.comma + 1 if last.comma is not None else last.value.end) if last else None
    begin = parent.start + 1 if begin is None else begin
    rest = text[begin : parent.end - 1]
    comments = list(_COMMENTS.finditer(rest))
    after = begin + (comments[-1].end() if comments else 0)
    tail = text[after : parent.end - 1]
    lines = "\n" in tail or (layout.lines and not parent.items)
    outer = _indent_of(text, parent.start)
    indent = _indent_of(text, last.start) if last and lines else outer + layout.indent
    if last and lines and len(indent) <= len(outer):
        indent = outer + layout.indent
    layout = layout if lines else Layout(layout.newline, layout.indent, False)
    written = layout.dump(value, indent)
    if key is not None:
        written = f"{json.dumps(key, ensure_ascii=False)}: {written}"
    lead = layout.newline + indent if lines else " " if last else ""
    close = "," if last and last.comma is not None else ""
    end = layout.newline + outer if lines and "\n" not in tail else ""
    comma = "," if last and last.comma is None else ""
    return text[:begin] + comma + text[begin:after] + lead + written + close + end + text[after:]


def _without(text: str, parent: Node, item: Item) -> str:
    """The text without one part of `parent`, its comma, and its line.

    Comments stay, and so does anything after the part on the same line.
    """
    number = next(place for place, one in enumerate(parent.items) if one is item)
    before = parent.items[number - 1] if number else None
    floor = (before.comma or 0) + 1 if before else parent.start + 1
    comments = list(_COMMENTS.finditer(text[floor : item.start]))
    start = floor + (comments[-1].end() if comments else 0)
    rest = text[item.value.end if item.comma is None else item.comma + 1 :]
    blank = rest[: len(rest) - len(rest.lstrip())]
    if "\n" in text[start : item.start] and "\n" not in blank:
        start, rest = item.start, rest[len(blank) :]
    elif len(parent.items) == 1 and not comments and rest[len(blank)] in "}]":
        rest = rest[len(blank) :]
    kept = text[:start]
    if before is not None and item.comma is None and before.comma is not None:
        kept = kept[: before.comma] + kept[before.comma + 1 :]
    return kept + rest


def _indent_of(text: str, at: int) -> str:
    """The indentation of the line that contains `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
