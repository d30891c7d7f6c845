"""The pieces all model-visible text is made of: headers, quoted values, fences, calls."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import orjson

from evidence.continuation import Continuation
from evidence.limits import BUDGETS
from evidence.model import Source
from evidence.text import clip, escape
from evidence.values import Bytes
from evidence.wire import spelled

Spell = Callable[[Continuation], str]
#: Spells how the bytes of a field are fetched, or that they are not there.
SpellBlob = Callable[[Bytes], str]
#: Facts that are ids: they need no quotes, and an id is taken back exactly as it is printed.
IDS = ("id", "first_id")

# Words that need no quotes: nothing in them separates, opens, or hides.
_PLAIN = re.compile(r"[\w./:@%+~|*()#!?&$^'-]+")


def header(operation: str, **facts: Any) -> str:
    """`operation key=value …` without the facts that are None."""
    shown = [
        f"{name}={value if name in IDS else value_of(value)}"
        for name, value in facts.items()
        if value is not None
    ]
    return " ".join([operation, *shown])


def value_of(value: Any) -> str:
    """A value on one of our lines: plain where it is one word, else a JSON string."""
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
