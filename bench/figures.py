"""Arithmetic of a benchmark: what many measurements come to."""

import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations


def percentiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    """The 50th, 95th and 99th of a hundred, each a value that occurred."""
    ordered = sorted(seconds)
    fifty, ninety_five, ninety_nine = (
        ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)
    )
    return fifty, ninety_five, ninety_nine


def ratios(ours: Iterable[float], theirs: Iterable[float]) -> tuple[float, ...]:
    """The ratio of each round; rounds are run in turns, so that both met the same machine."""
    return tuple(a / b for a, b in zip(ours, theirs, strict=True))


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much y grows for each x: the median over all pairs, which single leaps do not move."""
    found = [(y - b) / (x - a) for (a, b), (x, y) in combinations(points, 2) if x != a]
    if not found:
        raise ValueError("a slope needs two points at different places")
    return statistics.median(found)


def peaks(points: Sequence[tuple[float, float]], stretches: int) -> list[tuple[float, float]]:
    """The point with the highest y of each of so many equal stretches of x that has any."""
    first, last = points[0][0], points[-1][0]
    width = (last - first) / stretches or 1.0
    found: dict[int, tuple[float, float]] = {}
    for point in points:
        place = min(int((point[0] - first) / width), stretches - 1)
        if place not in found or point[1] > found[place][1]:
            found[place] = point
    return list(found.values())
