"""Characters no text may hold: found, or replaced one for one by U+FFFD."""

import re
from dataclasses import dataclass
from typing import Any

REPLACEMENT = "\ufffd"
_UNFIT = re.compile("[\0\ud800-\udfff]")


@dataclass(slots=True)
class Repair:
    """Replaces NUL and lone surrogates, and counts how many there were."""

    count: int = 0

    def text(self, text: str) -> str:
        if text.isascii() and "\0" not in text:
            return text
        fit, count = _UNFIT.subn(REPLACEMENT, text)
        self.count += count
        return fit

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it repaired."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(item) for name, item in value.items()}
        return value


def holds_nul(value: Any) -> bool:
    """Whether any string in a JSON value holds a NUL."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, list):
        return any(map(holds_nul, value))
    if isinstance(value, dict):
        return any(map(holds_nul, value)) or any(map(holds_nul, value.values()))
    return False
