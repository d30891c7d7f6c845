"""How much a test does: little in a normal run, much for the figures of docs/figures.md."""

import os

FULL = os.environ.get("FIGURES") == "full"


def times(full: int, short: int) -> int:
    """How often to repeat something."""
    return full if FULL else short
