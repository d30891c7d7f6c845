"""How much a test does: little in every run, much when it makes the figures of docs/figures.md."""

import os

FULL = os.environ.get("FIGURES") == "full"


def times(full: int, short: int) -> int:
    """How often to do something."""
    return full if FULL else short
