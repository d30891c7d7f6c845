"""Statistics over the measurements of a benchmark."""

import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations


def percentiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    """The 50th, 95th and 99th percentile, each a value that occurred."""
    ordered = sorted(seconds)
    fifty, ninety_five, ninety_nine = (
        ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)
    )
    return fifty, ninety_five, ninety_nine


def ratios(ours: Iterable[float], theirs: Iterable[float]) -> tuple[float, ...]:
    """The ratio of each round. Both sides take turns, so that the machine was the same for both."""
    return tuple(a / b for a, b in zip(ours, theirs, strict=True))


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The growth of y per x: the median over all pairs, which single outliers do not move."""
    found = [(y - b) / (x - a) for (a, b), (x, y) in combinations(points, 2) if x != a]
    if not found:
        raise ValueError("a slope needs two points at different places")
    return statistics.median(found)


def peaks(points: Sequence[tuple[float, float]], stretches: int) -> list[tuple[float, float]]:
    """The point with the highest y in each of `stretches` equal intervals of x, if it has any."""
    first, last = points[0][0], points[-1][0]
    width = (last - first) / stretches or 1.0
    found: dict[int, tuple[float, float]] = {}
    for point in points:
        place = min(int((point[0] - first) / width), stretches - 1)
        if place not in found or point[1] > found[place][1]:
            found[place] = point
    return list(found.values())
