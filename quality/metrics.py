"""Measures of a ranking: recall, reciprocal rank and discounted gain, averaged by category."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from quality.collections import Query

DEPTH = 10
RECALLS = (1, 3, 5, 10)
#: Adversarial questions, which their collection leaves out of its mean.
LEFT_OUT = "5 adversarial"
ALL = "all"

Figures = dict[str, float]


def score(ranked: Sequence[str], relevant: Mapping[str, int]) -> Figures:
    """The figures of one ranking, best document first; `relevant` maps documents to grades."""
    ranked = ranked[:DEPTH]
    figures = {"any": float(bool(ranked))}
    for depth in RECALLS:
        figures[f"R@{depth}"] = sum(one in relevant for one in ranked[:depth]) / len(relevant)
    ranks = [rank for rank, one in enumerate(ranked, start=1) if one in relevant]
    figures["MRR"] = 1 / ranks[0] if ranks else 0.0
    best = sorted(relevant.values(), reverse=True)[:DEPTH]
    gain = _gain([relevant.get(one, 0) for one in ranked])
    return figures | {"nDCG@10": gain / _gain(best)}


def by_category(
    queries: Sequence[Query], rankings: Mapping[str, Sequence[str]]
) -> dict[str, Figures]:
    """Mean figures of each category and of `all`; a query without a ranking found nothing."""
    scored: dict[str, list[Figures]] = defaultdict(list)
    for query in queries:
        figures = score(rankings.get(query.id, ()), query.relevant)
        scored[query.category].append(figures)
        if query.category != LEFT_OUT:
            scored[ALL].append(figures)
    return {category: _mean(rows) for category, rows in sorted(scored.items())}


def percentile(values: Sequence[float], share: int) -> float:
    """The value below which `share` percent of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _mean(rows: Sequence[Figures]) -> Figures:
    means = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
    return {"n": float(len(rows)), **means}
