"""Every measure of search quality, with its gate. `measured` reads values from a run's results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from quality.metrics import ALL, Figures

RUNG, FTS5, BM25S = "Rung", "FTS5", "bm25s"
#: Ways to ask a collection's questions and to judge the answers.
TYPED, TYPOS, SESSIONS = "as typed", "one typo", "by session"
#: Ends the name of a collection whose texts have vectors.
MEANING = ", with vectors"
#: Expands to every category of the collection, one row each.
EACH = "each"

#: Figures by (way of asking, system) and category.
Results = Mapping[tuple[str, str], Mapping[str, Figures]]


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table.

    The gate bounds the value itself, or its ratio: to a baseline of the same run (`of`), or to our
    own value for the same questions without typos (`of=TYPED`). `bound` None makes a row
    information.
    """

    collection: str
    title: str
    metric: str
    bound: float | None = None
    of: str = ""
    way: str = TYPED
    category: str = ALL
    most: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A measure with its values. `ratio` is what the gate bounds if the measure has `of`."""

    measure: Measure
    value: float
    baseline: float | None
    ratio: float | None

    @property
    def gate(self) -> str:
        """The bound in words, such as `≥ 1.16 × FTS5`."""
        measure = self.measure
        if measure.bound is None:
            return "–"
        times = f" × {'without typos' if measure.of == TYPED else measure.of}" if measure.of else ""
        return f"{'≤' if measure.most else '≥'} {measure.bound:,g}{times}"

    @property
    def verdict(self) -> str:
        bound, bounded = self.measure.bound, self.ratio if self.measure.of else self.value
        if bound is None:
            return "information"
        if bounded is None:
            return "not measured"
        return "held" if (bounded <= bound if self.measure.most else bounded >= bound) else "missed"


MEASURES = (
    Measure("locomo", "LoCoMo, categories 1 to 4", "R@10", 1.16, FTS5),
    Measure("locomo", "LoCoMo, first", "R@1", 0.365),
    Measure("locomo", "LoCoMo, by session", "R@10", None, way=SESSIONS),
    Measure("locomo", "LoCoMo, one typo in the rarest long word", "R@10", 0.96, TYPED, TYPOS),
    Measure("locomo", "LoCoMo, mean size of an answer's text", "bytes", 3_500, most=True),
    Measure("cranfield", "Cranfield", "nDCG@10", 1.02, FTS5),
    Measure("cranfield", "Cranfield", "nDCG@10", 1.0, BM25S),
    Measure("cranfield", "Cranfield, mean size of an answer's text", "bytes", 5_000, most=True),
    Measure("xquad", "XQuAD", "R@5", 0.95, category=EACH),
    Measure("demo", "demo, forty questions", "R@5"),
    Measure(f"locomo{MEANING}", "LoCoMo, with vectors", "R@10", 0.762),
    Measure(f"locomo{MEANING}", "LoCoMo, with vectors, first", "R@1", 0.372),
    Measure(f"cranfield{MEANING}", "Cranfield, with vectors", "nDCG@10", 0.405),
    Measure(f"xquad{MEANING}", "XQuAD, with vectors", "R@5", 0.98, category=EACH),
    Measure(f"across{MEANING}", "XQuAD across languages, with vectors", "R@5", 0.895),
    Measure(f"across{MEANING}", "XQuAD across languages, with vectors", "R@5", 0.8, category=EACH),
    Measure(f"demo{MEANING}", "demo, forty questions, with vectors", "R@5", 0.75),
    Measure("needles", "needles in long records, among the first three", "R@3", 0.96),
    Measure("needles", "needles in long records, first", "R@1", 0.85),
    Measure("papers", "papers, among the first three", "R@3", 0.95),
    Measure("own", "our own collection", "R@10", 0.95),
    Measure("own", "our own collection", "nDCG@10", 0.8),
    Measure("own", "our own collection", "R@5", 0.8, category=EACH),
)
#: The measures of a collection that has none of its own.
GENERAL = (
    Measure("", "recall", "R@10"),
    Measure("", "gain", "nDCG@10"),
)


def of_collection(name: str) -> list[Measure]:
    """The measures of a collection, in the order of the table."""
    known = [measure for measure in MEASURES if measure.collection == name]
    return known or [replace(one, collection=name, title=f"{name}, {one.title}") for one in GENERAL]


def ways(name: str) -> set[str]:
    """The ways to ask that a collection's measures need."""
    return {measure.way for measure in of_collection(name)}


def measured(name: str, results: Results) -> Iterator[Row]:
    """The rows of a collection's measures."""
    for measure in of_collection(name):
        if measure.category != EACH:
            yield row(measure, results)
            continue
        for category in results[measure.way, RUNG]:
            if category != ALL:
                title = f"{measure.title}, {category}"
                yield row(replace(measure, category=category, title=title), results)


def row(measure: Measure, results: Results) -> Row:
    value = _value(results, measure, measure.way, RUNG) or 0.0
    rival = BM25S if measure.of == BM25S else FTS5
    baseline = _value(results, measure, measure.way, rival)
    if measure.of == TYPED:
        below = _value(results, measure, TYPED, RUNG)
        rival_below = _value(results, measure, TYPED, rival)
        baseline = baseline / rival_below if baseline and rival_below else None
    else:
        below = baseline
    ratio = None if below is None else value / below if below else 0.0
    return Row(measure, value, baseline, ratio)


def _value(results: Results, measure: Measure, way: str, system: str) -> float | None:
    return results.get((way, system), {}).get(measure.category, {}).get(measure.metric)
