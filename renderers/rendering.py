"""Shared by renderers: their result, their context, and the pieces of a line of text."""

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from evidence.continuation import Continuation
from evidence.limits import BUDGETS, Budgets
from evidence.model import Source
from evidence.text import clip, escape
from evidence.values import Bytes
from evidence.wire import bytes_line, spelled

Spell = Callable[[Continuation], str]
#: Spells how the bytes of a field are fetched, or that they are not there.
SpellBlob = Callable[[Bytes], str]
#: Facts that are ids: printed without quotes, exactly as they are accepted.
IDS = ("id", "first_id")

# Words that need no quotes: nothing in them separates, opens, or hides.
_PLAIN = re.compile(r"[\w./:@%+~|*()#!?&$^'-]+")
FENCE_DIGITS = 12
#: Placeholder for the fence while a text is built; escaped text never holds a NUL.
FENCE_SLOT = "\x00fence\x00"


@dataclass(frozen=True, slots=True)
class Rendering:
    """One answer in both channels: text blocks and `structured`; `hidden` goes to `_meta` only."""

    blocks: tuple[str, ...]
    structured: dict[str, Any]
    hidden: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What rendering needs besides the answer: sizes, the fence key, the public address.

    `spell` writes a next call as one line, as the reader would make it, and `blob` how bytes are
    had.
    """

    budgets: Budgets = BUDGETS
    fence_key: bytes = b"rung"
    base_url: str = ""
    spell: Spell = spelled
    blob: SpellBlob = bytes_line

    def step(self, continuation: Continuation) -> str:
        """A call on a line of its own, named by what it is for."""
        return step(continuation, self.spell)

    def close(self, text: str) -> str:
        """The text with its fence in every slot."""
        return text.replace(FENCE_SLOT, self.fence(text))

    def fence(self, text: str) -> str:
        """12 hex digits that record text cannot predict. Equal texts get equal digits."""
        digest = hmac.digest(self.fence_key, text.encode("utf-8", "surrogatepass"), "sha256")
        return digest.hex()[:FENCE_DIGITS]


def header(operation: str, **facts: Any) -> str:
    """`operation key=value …` without the facts that are None."""
    shown = [
        f"{name}={value if name in IDS else value_of(value)}"
        for name, value in facts.items()
        if value is not None
    ]
    return " ".join([operation, *shown])


def value_of(value: Any) -> str:
    """A value on one of our lines: plain if it is one word, else a JSON string."""
    if isinstance(value, int):
        return str(value) if not isinstance(value, bool) else "true" if value else "false"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else quoted(text)


def quoted(text: str, limit: int | None = None) -> str:
    """Text that is not ours inside one of our lines: one line, quoted, controls written out."""
    shown = text if limit is None else clip(text, limit)
    if shown.isprintable() and '"' not in shown and "\\" not in shown:
        return f'"{shown}"'
    return orjson.dumps(escape(shown)[0]).decode()


@lru_cache(maxsize=512)
def name_source(source: Source) -> str:
    """`Label (connection_id)`, quoted where it must be."""
    label = clip(source.label, BUDGETS.label_chars)
    if source.connection_id is None or source.label == source.connection_id:
        return value_of(label or "unknown")
    return f"{value_of(label)} ({value_of(source.connection_id)})"


def step(continuation: Continuation, spell: Spell = spelled) -> str:
    """A call on a line of its own, named by what it is for; `spell` writes the call."""
    return f"{continuation.why}: {spell(continuation)}"


def size_of(found: Bytes) -> str:
    """Media type and size of bytes, as far as they are known."""
    parts = [value_of(found.media_type)] if found.media_type else []
    parts += [f"{found.size[0]} {found.size[1]}"] if found.size else []
    return ", ".join(parts) or "binary"


def warning(found: dict[str, Any]) -> str:
    """One warning of an envelope as a line."""
    return (
        f"warning {value_of(found.get('code', 'warning'))}: {quoted(str(found.get('message', '')))}"
    )


def fenced(fence: str, text: str) -> str:
    """Record text between two lines it cannot forge."""
    return f"<<<{fence} untrusted record text\n{text}\n{fence}>>>"


def joined(lines: Sequence[str]) -> str:
    return "\n".join(lines)
