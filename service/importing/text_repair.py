"""Replaces characters no text may hold: NUL by U+FFFD, undecodable bytes only on request."""

import re
from dataclasses import dataclass
from typing import Any

REPLACEMENT = "\ufffd"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Undecodable(ValueError):
    """A text holds bytes that its encoding does not have."""


@dataclass(slots=True)
class Repair:
    """Replaces characters no text may hold, and counts them.

    Bytes that cannot be decoded arrive as lone surrogates. They raise `Undecodable` unless
    `replace` is set.
    """

    replace: bool = False
    nuls: int = 0
    undecodable: int = 0

    def text(self, text: str) -> str:
        if "\0" in text:
            self.nuls += text.count("\0")
            text = text.replace("\0", REPLACEMENT)
        return self.decoded(text)

    def decoded(self, text: str) -> str:
        try:
            text.encode()  # much faster than looking for surrogates
            return text
        except UnicodeEncodeError:
            if not self.replace:
                raise Undecodable(
                    "It holds bytes that are not in the encoding of the file. Name the right one "
                    "with --encoding, or give --replace-undecodable to store U+FFFD in their place"
                ) from None
        text, count = _SURROGATE.subn(REPLACEMENT, text)
        self.undecodable += count
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it repaired."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(item) for name, item in value.items()}
        return value
