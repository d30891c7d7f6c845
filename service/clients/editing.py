"""Inserts or removes one value in JSON with comments and leaves every other character unchanged.

Comments and trailing commas are blanked out first, so that the standard library reads the rest and
every value keeps its position.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
#: Only after a value, so that a comma without one stays and is refused.
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\[{,:\s])\s*,(?=\s*[}\]])')
_BLANK = re.compile(r"[ \t\r\n]*")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with spaces in place of the matches that are not strings."""
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)


@dataclass(frozen=True, slots=True)
class Part:
    """A value from `start` to `end`.

    Inside another value, the part starts at `begin`, with its key if that is an object, and `comma`
    is the position of its comma.
    """

    value: Any
    start: int
    end: int
    begin: int = 0
    key: str | None = None
    comma: int | None = None


class Document:
    """A JSON text and the positions of its values. `root` is None without a value.

    Raises `ValueError` with the line and column of an error.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._bare = _blanked(_COMMENT, text)
        self._plain = _blanked(_LAST_COMMA, self._bare)
        try:
            value = _DECODER.decode(self._plain) if self._plain.strip() else None
        except json.JSONDecodeError as error:
            position = f"line {error.lineno}, column {error.colno}"
            raise ValueError(f"{position}: {error.msg}") from None
        except RecursionError:
            raise ValueError("its values are nested too deeply") from None
        start = self._skip(0)
        self.root = Part(value, start, len(self._bare.rstrip())) if self._plain.strip() else None

    def parts(self, parent: Part) -> Iterator[Part]:
        """The members of an object, or the items of a list."""
        at = self._skip(parent.start + 1)
        while at < parent.end - 1:
            begin, key = at, None
            if isinstance(parent.value, dict):
                key, at = _DECODER.raw_decode(self._plain, at)
                at = self._skip(self._skip(at) + 1)
            value, end = _DECODER.raw_decode(self._plain, at)
            after = self._skip(end)
            comma = after if self._bare.startswith(",", after) else None
            yield Part(value, at, end, begin, key, comma)
            at = after if comma is None else self._skip(comma + 1)

    def find(self, path: tuple[str, ...]) -> Part | None:
        """The value under the keys of `path`; raises `Unfit`."""
        part = self.root
        for number in range(len(path)):
            part = self.member(part, path, number) if part is not None else None
        return part

    def member(self, parent: Part, path: tuple[str, ...], number: int) -> Part | None:
        """The member for the next key of a path; raises `Unfit` if it is ambiguous."""
        if not isinstance(parent.value, dict):
            raise Unfit(f"{_dotted(path[:number])} is not an object")
        members = [part for part in self.parts(parent) if part.key == path[number]]
        if len(members) > 1:
            raise Unfit(f"{_dotted(path[:number + 1])} occurs twice")
        return members[0] if members else None

    def _skip(self, at: int) -> int:
        """The next position that is neither blank nor in a comment."""
        match = _BLANK.match(self._bare, at)
        return match.end() if match else at


_INDENTED = re.compile(r"^([ \t]+)[^ \t\r\n]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Layout:
    """The line endings and the indentation of a text, and whether it has several lines."""

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
        """A value as JSON, for a line with the indentation `outer`."""
        if not self.lines:
            return json.dumps(value, ensure_ascii=False)
        written = json.dumps(value, indent=self.indent, ensure_ascii=False)
        return written.replace("\n", self.newline + outer)


class Unfit(ValueError):
    """The text is JSON, but its structure does not allow the edit."""


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` under the keys of `path`; missing objects are created.

    Raises `ValueError` for other text, and `Unfit`.
    """
    layout, document = Layout.of(text), Document(text)
    part = document.root
    if part is None:
        lead = text if not text.strip() or text.endswith("\n") else text + layout.newline
        return lead + layout.dump(_nested(path, value), "") + layout.newline
    for number, key in enumerate(path):
        inner = document.member(part, path, number)
        if inner is None:
            return _insert(document, layout, part, _nested(path[number + 1 :], value), key)
        part = inner
    outer = _indent_of(text, part.start)
    return text[: part.start] + layout.dump(value, outer) + text[part.end :]


def append(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` at the end of the list under `path`, created if it is missing."""
    document = Document(text)
    part = document.find(path)
    if part is None:
        return put(text, path, [value])
    if not isinstance(part.value, list):
        raise Unfit(f"{_dotted(path)} is not a list")
    return _insert(document, Layout.of(text), part, value, None)


def take(text: str, path: tuple[str, ...], index: int | None = None) -> str:
    """The text without the value at `path`, or without one item of the list there."""
    document = Document(text)
    parent = document.find(path if index is not None else path[:-1])
    assert parent is not None, "the value to remove was found earlier"
    parts = list(document.parts(parent))
    if index is None:
        index = next(number for number, part in enumerate(parts) if part.key == path[-1])
    return _without(text, parent, parts, index)


def lookup(text: str, path: tuple[str, ...]) -> Any:
    """The value at `path`, or None. Raises `ValueError` for other text, and `Unfit`."""
    part = Document(text).find(path)
    return None if part is None else part.value


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the top level"


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _insert(document: Document, layout: Layout, parent: Part, value: Any, key: str | None) -> str:
    """The text with a new last part of `parent`: a member, or an item if `key` is None.

    It follows the comments of the part before it. A trailing comma is kept.
    """
    text, last = document.text, next(reversed(list(document.parts(parent))), None)
    begin = (last.comma + 1 if last.comma is not None else last.end) if last else None
    begin = parent.start + 1 if begin is None else begin
    rest = text[begin : parent.end - 1]
    comments = list(_COMMENT.finditer(rest))
    after = begin + (comments[-1].end() if comments else 0)
    tail = text[after : parent.end - 1]
    lines = "\n" in tail or (layout.lines and not last)
    outer = _indent_of(text, parent.start)
    indent = _indent_of(text, last.begin) if last and lines else outer + layout.indent
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


def _without(text: str, parent: Part, parts: Sequence[Part], number: int) -> str:
    """The text without one part of `parent`, its comma, and its line.

    Comments stay, and so does anything after the part on the same line.
    """
    part, before = parts[number], parts[number - 1] if number else None
    floor = (before.comma or 0) + 1 if before else parent.start + 1
    comments = list(_COMMENT.finditer(text[floor : part.begin]))
    start = floor + (comments[-1].end() if comments else 0)
    rest = text[part.end if part.comma is None else part.comma + 1 :]
    blank = rest[: len(rest) - len(rest.lstrip())]
    if "\n" in text[start : part.begin] and "\n" not in blank:
        start, rest = part.begin, rest[len(blank) :]
    elif len(parts) == 1 and not comments and rest[len(blank)] in "}]":
        rest = rest[len(blank) :]
    head = text[:start]
    if before is not None and part.comma is None and before.comma is not None:
        head = head[: before.comma] + head[before.comma + 1 :]
    return head + rest


def _indent_of(text: str, at: int) -> str:
    """The indentation of the line that contains `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
