"""What is promised, and how a run is judged and shown."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

COLUMNS = ("what", "measured", "goal", "")

SEARCH_RATIO = 0.7
READING_SHARE = 0.20
DEEP_RATIO = 1.5
DEEP_MB = 10.0
MEMORY_MB = 80.0
BOOT_SECONDS = 2.0
PAPER_RATIO = 8.0
PAGE_RATIO = 2.0
PAPERS_MB = 90.0
ADDED_MS = 2.0
ADAPTER_RATIO = 0.6
FAN_IN_RATIO = 1.6
PACKAGE_MB = 90.0
LOCAL_READ_MS = 200.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table. Without a goal it only informs."""

    what: str
    measured: str
    goal: str = ""
    holds: bool | None = None

    @property
    def verdict(self) -> str:
        return "" if self.holds is None else "ok" if self.holds else "MISSED"


def at_least(what: str, measured: float, goal: float, unit: str = "") -> Line:
    return Line(what, f"{measured:.2f}{unit}", f">= {goal:g}{unit}", measured >= goal)


def at_most(what: str, measured: float, goal: float, unit: str = "", *, digits: int = 2) -> Line:
    return Line(what, f"{measured:,.{digits}f}{unit}", f"<= {goal:,g}{unit}", measured <= goal)


def note(what: str, measured: str) -> Line:
    return Line(what, measured)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of rounds that were run in turns."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def overlap(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of the shorter list that stands in the other too; 1 where neither has anything."""
    most = min(len(ours), len(theirs))
    if most == 0:
        return 1.0 if len(ours) == len(theirs) else 0.0
    return len(set(ours) & set(theirs)) / most


def table(lines: Iterable[Line]) -> str:
    """The lines in columns."""
    rows = [COLUMNS, *((line.what, line.measured, line.goal, line.verdict) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    shown = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows)
    return "\n".join(line.rstrip() for line in shown)
