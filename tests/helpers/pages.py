"""The contents of Markdown pages: commands, their output, calls and their answers."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

#: The address of the demo in the pages.
SERVED = "127.0.0.1:8000"
#: The addresses of the reader's services in the pages; tests send nothing over the network.
EXAMPLE = "https://rung.example.com"
LANGUAGES = {"sh", "console", "text", "json", "toml", "python", ""}
COMMAND = re.compile(
    r"^ *(?:[$#] )?(?:\S*/)?(?:rung|make|curl|pip|python3?|export|claude|docker|git|npx) [a-z/.-]",
    re.MULTILINE,
)
ENDLESS = re.compile(r"^ *\S*\brung (serve|demo .*--serve)", re.MULTILINE)
#: A line of an error: of REST, of JSON-RPC or of a tool.
FAILED = re.compile(r'^\{("jsonrpc":"2\.0",("id":[^,]*,)?)?"error"|"isError":true', re.MULTILINE)

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
#: `make` runs the tests, so a test that ran it would never end.
_MAKE = re.compile(r"^ *(?:\w+=\S+ )*make .*$", re.MULTILINE)
_EXITS = re.compile(r"^(.+?)  # exits with (\d+)$", re.MULTILINE)
#: Marks the end of a block; no page and no demo record contains two record separators.
_MARK = "\x1e\x1e"
_CALL = re.compile(r"([a-z_]+) (\{.*\})\n\n(.+)", re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FENCE = re.compile(r"\b[0-9a-f]{12}\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block without its indentation. `start` and `end` are positions in the page."""

    language: str
    text: str
    start: int
    end: int
    page: str

    def moved(self, served: str) -> "Block":
        """The same text for a demo at another address."""
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
    """A tool call that a page shows, and the answer below it."""

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
    """The call in a block that begins with one: on its own line, above its answer."""
    found = _CALL.fullmatch(block.text)
    if found is None or "\n" in found[2] or block.language not in ("", "text"):
        return None
    return Call(found[1], json.loads(found[2]), found[3])


def script(found: list[Block]) -> str:
    """The commands of these blocks, with a mark in the output at the end of each."""
    lines = []
    for block in found:
        text = _EXITS.sub(r"code=0; \1 || code=$?; test $code -eq \2", _MAKE.sub("", block.text))
        lines += [text, f"printf '{_MARK}'"]
    return "\n".join(lines)


def printed(output: str) -> list[str]:
    """The output of each block of a script, without colours and cursor movements."""
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
    """Whether the shown text matches the actual text; `…` matches anything.

    Line breaks may differ, and the marks of fences differ between stores.
    """
    pieces = [_pattern(piece) for piece in shown.strip().split("…")]
    return re.fullmatch(".*".join(pieces), said.strip(), re.DOTALL) is not None


def _pattern(text: str) -> str:
    parts = re.split(r"(\s+)", _FENCE.sub("FENCE", text))
    words = [_gap(part) if part.isspace() else re.escape(part) for part in parts]
    return "".join(words).replace("FENCE", "[0-9a-f]{12}")


def _gap(space: str) -> str:
    return r"\s*" if "\n" in space else r"\s+"
