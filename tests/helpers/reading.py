"""What readers find in an answer: fenced text, printed calls, calls as data, ids and cursors."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

TOOLS = ("schema", "query_records", "aggregate", "search", "fetch", "read_record_field")
PAPER_TOOLS = (
    "search_papers",
    "search_papers_by_keyword",
    "get_paper_metadata",
    "get_paper_summary",
    "get_paper_source",
    "list_top_facets",
)

_NAMES = "|".join(TOOLS + PAPER_TOOLS)
_CALL = re.compile(r"(?:^|[\s(])(?:(\w+): )?(%s) (\{)" % _NAMES)
_FENCE = re.compile(r"^<<<([0-9a-f]{12})[^\n]*\n(.*?)\n\1>>>$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """A call in an answer. `why` is the word before it, if any."""

    tool: str
    args: dict[str, Any]
    why: str = ""

    def key(self) -> bytes:
        """A key that is the same for the same call."""
        return orjson.dumps([self.tool, self.args], option=orjson.OPT_SORT_KEYS)


def fenced(text: str) -> list[str]:
    """The record texts of an answer, as shown."""
    return [found[2] for found in _FENCE.finditer(text)]


def previews(rung: dict[str, Any]) -> list[str]:
    """The windows of one hit of a content ladder, best first."""
    further = [one["preview_text"] for one in rung.get("evidence", [])[1:]]
    return [rung["evidence_preview"], *further] if "evidence_preview" in rung else []


def ours(text: str) -> str:
    """The answer without its record texts."""
    return _FENCE.sub("", text)


def printed_calls(text: str) -> list[Call]:
    """Every complete call on our own lines, in order. A fetched document has them in its JSON."""
    if text.startswith('{"id":'):
        text = "\n".join(f"{name}: {call}" for name, call in _of_document(orjson.loads(text)))
    found = []
    for line in ours(text).split("\n"):
        if line.startswith("to read any field: "):  # a form to fill in
            continue
        for match in _CALL.finditer(line):
            args = None if _quoted(line, match.start(2)) else _json_at(line, match.start(3))
            if args is not None:
                found.append(Call(match[2], args, match[1] or ""))
    return found


def _of_document(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The metadata of a document that is a call or a route, by name."""
    ours = re.compile(r"next_read|more_fields|field_names|title_read|expanded\..*\.next|bytes\..*")
    return [
        (name.rpartition(".")[2], value)
        for name, value in document["metadata"].items()
        if ours.fullmatch(name)
    ]


def routes(text: str) -> list[str]:
    """Every REST route to bytes on our own lines."""
    if text.startswith('{"id":'):
        text = "\n".join(f"{name}: {value}" for name, value in _of_document(orjson.loads(text)))
    return re.findall(r'HTTP GET "(\S+)" with the same bearer token', ours(text))


def _quoted(line: str, place: int) -> bool:
    """Whether `place` is inside a quoted value: a title or a label may contain anything."""
    return len(re.findall(r'(?<!\\)"', line[:place])) % 2 == 1


def _json_at(line: str, start: int) -> dict[str, Any] | None:
    """The shortest JSON object that begins at `start`."""
    for end in range(start + 1, len(line) + 1):
        if line[end - 1] == "}":
            try:
                found: dict[str, Any] = orjson.loads(line[start:end])
            except orjson.JSONDecodeError:
                continue
            return found
    return None


def structured_calls(value: Any) -> list[Call]:
    """Every call in structured content, at any depth."""
    found = []
    for item in walk(value):
        if isinstance(item, dict) and "tool" in item and isinstance(item.get("args"), dict):
            found.append(Call(item["tool"], item["args"], item.get("why", "")))
        elif isinstance(item, dict) and isinstance(item.get("metadata"), dict):
            found += printed_calls(
                "\n".join(f"{name}: {value}" for name, value in _of_document(item))
            )
    return found


def walk(value: Any) -> Iterator[Any]:
    """A JSON value and everything inside it."""
    yield value
    if isinstance(value, dict):
        for inner in value.values():
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def named(value: Any, *names: str) -> list[Any]:
    """The values of these keys at any depth, except null."""
    return [
        inner
        for item in walk(value)
        if isinstance(item, dict)
        for name, inner in item.items()
        if name in names and inner is not None
    ]
