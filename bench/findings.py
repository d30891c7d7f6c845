"""Measured figures, with or without a goal."""

import statistics
from dataclasses import dataclass, field

from bench.goal import Goal
from bench.goals import goal


@dataclass(frozen=True, slots=True)
class Finding:
    """The measurement for a goal: a figure for each round."""

    key: str
    rounds: tuple[float, ...]

    @property
    def figure(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.rounds), max(self.rounds)

    @property
    def goal(self) -> Goal:
        return goal(self.key)

    @property
    def verdict(self) -> str:
        return "held" if self.goal.holds(self.figure) else "missed"


@dataclass(frozen=True, slots=True)
class Note:
    """A figure that has no goal."""

    what: str
    measured: str


Line = Finding | Note

#: The note that shows in percent how close the load generator came to being the limit.
BUSIEST = "the client's core was busy at most"


@dataclass(slots=True)
class Measured:
    """The lines of one group."""

    group: str
    lines: list[Line] = field(default_factory=list)
