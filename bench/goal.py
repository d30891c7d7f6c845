"""What a row of the benchmark promises: its bound, and how it is measured."""

from dataclasses import dataclass
from typing import Literal

from bench.reasons import MISSED

Bound = Literal["least", "most"]


@dataclass(frozen=True, slots=True)
class Goal:
    """One row. If the goal cannot be met, `missed` gives the reason and what was tried."""

    key: str
    group: str
    work: str
    bound: Bound
    goal: float
    unit: str
    how: str
    missed: str = ""

    def holds(self, figure: float) -> bool:
        return figure >= self.goal if self.bound == "least" else figure <= self.goal

    @property
    def sign(self) -> str:
        return "≥" if self.bound == "least" else "≤"


def row(group: str, key: str, work: str, bound: Bound, limit: float, unit: str, how: str) -> Goal:
    return Goal(key, group, work, bound, limit, unit, how, MISSED.get(key, ""))
