"""Parses JSON with comments and trailing commas, and records the position of each value.

With the positions, an edit can leave every other byte unchanged. Positions are offsets into the
text; errors have lines and columns.
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
