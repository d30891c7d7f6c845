"""Markdown pages as what they show: commands, what these print, calls and their answers."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

#: Where pages say that the demo is served.
SERVED = "127.0.0.1:8000"
#: Where they say that a service of the reader's is; no test asks anybody on the network.
EXAMPLE = "https://rung.example.com"
LANGUAGES = {"sh", "console", "text", "json", "toml", "python", ""}
COMMAND = re.compile(
    r"^ *(?:[$#] )?(?:\S*/)?(?:rung|make|curl|pip|python3?|export|claude|docker|git|npx) [a-z/.-]",
    re.MULTILINE,
)
ENDLESS = re.compile(r"^ *\S*\brung (serve|demo .*--serve)", re.MULTILINE)
#: A line of an answer that is an error, of REST, of JSON-RPC or of a tool.
FAILED = re.compile(r'^\{("jsonrpc":"2\.0",("id":[^,]*,)?)?"error"|"isError":true', re.MULTILINE)

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
#: Whoever runs the tests runs `make`; a test that did would never end.
_MAKE = re.compile(r"^ *(?:\w+=\S+ )*make .*$", re.MULTILINE)
_EXITS = re.compile(r"^(.+?)  # exits with (\d+)$", re.MULTILINE)
#: Stands where a block ends; no page and no demo record holds two record separators.
_MARK = "\x1e\x1e"
_CALL = re.compile(r"([a-z_]+) (\{.*\})\n\n(.+)", re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FENCE = re.compile(r"\b[0-9a-f]{12}\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, without the indent it stands in. `start` and `end` lie in the page."""

    language: str
    text: str
    start: int
    end: int
    page: str

    def moved(self, served: str) -> "Block":
        """The same for a demo that is served elsewhere."""
        text = self.text.replace(SERVED, served).replace(EXAMPLE, f"http://{served}")
        return replace(self, text=text)

    def prompted(self) -> Iterator[str]:
        """The commands of a console block, each on one line."""
        joined = self.text.replace("\\\n", " ")
        for line in joined.splitlines():
            if line.startswith(("$ ", "# ")):
                yield line[2:]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool as a page shows it, and the answer below it."""

    tool: str
    arguments: dict[str, Any]
    answer: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[2], dedent(found[3]), found.start(), found.end(), text)
        for found in _BLOCK.finditer(text)
    ]


def call(block: Block) -> Call | None:
    """The call in a block that begins with one, on a line of its own above its answer."""
    found = _CALL.fullmatch(block.text)
    if found is None or "\n" in found[2] or block.language not in ("", "text"):
        return None
    return Call(found[1], json.loads(found[2]), found[3])


def script(found: list[Block]) -> str:
    """The commands of these blocks, with a mark in the output where each ends."""
    lines = []
    for block in found:
        text = _EXITS.sub(r"code=0; \1 || code=$?; test $code -eq \2", _MAKE.sub("", block.text))
        lines += [text, f"printf '{_MARK}'"]
    return "\n".join(lines)


def printed(output: str) -> list[str]:
    """What each block of a script printed, colours and cursor movements off."""
    return _ESCAPE.sub("", output).replace("\r\n", "\n").split(_MARK)[:-1]


def shown_after(block: Block, found: list[Block]) -> list[Block]:
    """The block of output right after this one, if there is one."""
    return [
        other
        for other in found
        if other.language in ("", "text")
        and other.start > block.end
        and not block.page[block.end : other.start].strip()
    ]


def matches(shown: str, said: str) -> bool:
    """Whether what is shown is what was said, where `…` may be anything.

    Lines may be broken anew; the marks of fences differ from store to store.
    """
    pieces = [_pattern(piece) for piece in shown.strip().split("…")]
    return re.fullmatch(".*".join(pieces), said.strip(), re.DOTALL) is not None


def _pattern(text: str) -> str:
    parts = re.split(r"(\s+)", _FENCE.sub("FENCE", text))
    words = [_gap(part) if part.isspace() else re.escape(part) for part in parts]
    return "".join(words).replace("FENCE", "[0-9a-f]{12}")


def _gap(space: str) -> str:
    return r"\s*" if "\n" in space else r"\s+"
