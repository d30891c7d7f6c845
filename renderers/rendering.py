"""The result of a renderer, and the context it gets."""

import hmac
from dataclasses import dataclass, field
from typing import Any

from evidence.continuation import Continuation
from evidence.limits import BUDGETS, Budgets
from evidence.wire import bytes_line, spelled
from renderers import lines

FENCE_DIGITS = 12
#: Stands for the fence while a text is put together; escaped text never holds a NUL.
FENCE_SLOT = "\x00fence\x00"


@dataclass(frozen=True, slots=True)
class Rendering:
    """One answer in both channels: text blocks and `structured`; `hidden` goes to `_meta` only."""

    blocks: tuple[str, ...]
    structured: dict[str, Any]
    hidden: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What rendering depends on besides the reading: sizes, the fence key, the public address.

    `spell` writes a next call as one line, as the reader would make it, and `blob` how bytes are
    had.
    """

    budgets: Budgets = BUDGETS
    fence_key: bytes = b"rung"
    base_url: str = ""
    spell: lines.Spell = spelled
    blob: lines.SpellBlob = bytes_line

    def step(self, continuation: Continuation) -> str:
        """A call on a line of its own, named by what it is for."""
        return lines.step(continuation, self.spell)

    def close(self, text: str) -> str:
        """The text with its fence in every slot."""
        return text.replace(FENCE_SLOT, self.fence(text))

    def fence(self, text: str) -> str:
        """12 hex digits that record text cannot predict. Equal texts get equal digits."""
        digest = hmac.digest(self.fence_key, text.encode("utf-8", "surrogatepass"), "sha256")
        return digest.hex()[:FENCE_DIGITS]
