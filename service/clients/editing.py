"""Inserts or removes one value in JSON with comments and leaves every other character unchanged.

The parser records the position of each value. Positions are offsets into the text; errors have
lines and columns.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

NESTED_MOST = 200  # deeper than any settings file, and far from Python's own limit

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_CLOSED_BY = {"{": "}", "[": "]"}


class Malformed(ValueError):
    """The text is not JSON; the message has the line and column, counted from one."""

    def __init__(self, text: str, at: int, expected: str) -> None:
        before = text[:at]
        line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1
        actual = "the end of the file" if at >= len(text) else repr(text[at])
        super().__init__(f"line {line}, column {column}: expected {expected}, found {actual}")


@dataclass(slots=True)
class Item:
    """A value of a list, or of an object with its key. `comma` is the position of its comma."""

    start: int
    value: "Node"
    key: str | None = None
    comma: int | None = None


@dataclass(slots=True)
class Node:
    """A value from `start` to `end`. `plain` is parsed; `items` are its parts."""

    start: int
    end: int
    plain: Any
    items: list[Item] = field(default_factory=list)

    def member(self, key: str) -> Item | None:
        """The member of an object; the last one if a key is repeated."""
        return next((item for item in reversed(self.items) if item.key == key), None)

    def count(self, key: str) -> int:
        return sum(item.key == key for item in self.items)


def read(text: str) -> Node | None:
    """The value of a text, or None for one of only blanks and comments; raises `Malformed`."""
    reader = _Reader(text)
    at = reader.skip(0)
    if at == len(text):
        return None
    node = reader.value(at, 0)
    if (end := reader.skip(node.end)) != len(text):
        raise Malformed(text, end, "nothing more")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, at: int) -> int:
        """The next position that is neither blank nor in a comment."""
        match = _TRIVIA.match(self.text, at)
        end = match.end() if match else at
        if self.text.startswith("/*", end):
            raise Malformed(self.text, len(self.text), "*/ after a comment")
        return end

    def value(self, at: int, depth: int) -> Node:
        if depth > NESTED_MOST:
            raise Malformed(self.text, at, f"at most {NESTED_MOST} values in one another")
        sign = self.text[at : at + 1]
        if sign in _CLOSED_BY:
            return self._nest(at, depth)
        if sign == '"':
            return self._string(at)
        word = _WORD.match(self.text, at)
        literal = word.group() if word else ""
        if word and literal in _WORDS:
            return Node(at, word.end(), _WORDS[literal])
        if word and _NUMBER.fullmatch(literal):
            return Node(at, word.end(), self._number(at, literal))
        raise Malformed(self.text, at, "a value")

    def _number(self, at: int, literal: str) -> Any:
        try:
            return json.loads(literal)
        except ValueError as error:  # longer than Python reads
            raise Malformed(self.text, at, "a shorter number") from error

    def _string(self, at: int) -> Node:
        match = _STRING.match(self.text, at)
        if match is None:
            raise Malformed(self.text, at, "a string")
        try:
            return Node(at, match.end(), json.loads(match.group()))
        except ValueError as error:
            raise Malformed(self.text, at, "a string") from error

    def _nest(self, start: int, depth: int) -> Node:
        """Parses an object or a list with the positions of its parts."""
        closing, is_object = _CLOSED_BY[self.text[start]], self.text[start] == "{"
        items: list[Item] = []
        at = self.skip(start + 1)
        while not self.text.startswith(closing, at):
            if items and items[-1].comma is None:
                raise Malformed(self.text, at, f"a comma or {closing}")
            item = self._member(at, depth) if is_object else Item(at, self.value(at, depth + 1))
            at = self.skip(item.value.end)
            if self.text.startswith(",", at):
                item.comma = at
                at = self.skip(at + 1)
            items.append(item)
        plain = (
            {item.key: item.value.plain for item in items}
            if is_object
            else [item.value.plain for item in items]
        )
        return Node(start, at + 1, plain, items)

    def _member(self, at: int, depth: int) -> Item:
        if not self.text.startswith('"', at):
            raise Malformed(self.text, at, "a key in double quotes")
        key = self._string(at)
        colon = self.skip(key.end)
        if not self.text.startswith(":", colon):
            raise Malformed(self.text, colon, "a colon")
        value = self.value(self.skip(colon + 1), depth + 1)
        return Item(at, value, key.plain)


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
