"""Runs a collection's questions against every system: figures, answers and times."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quality import demo_questions, measures, metrics, papers, service, typos
from quality.collections import Collection, Query
from quality.measures import BM25S, FTS5, MEANING, RUNG, SESSIONS, TYPED, TYPOS, Row
from quality.metrics import ALL, Figures
from quality.service import Answer
from service.meaning.encoder import Encoder

#: Upper ends of the bands of coverage that the page reports.
BANDS = (0.2, 0.4, 0.6, 0.8, 1.0)

Ask = Callable[[Query], Sequence[str]]
Rankings = dict[str, Sequence[str]]


@dataclass
class Run:
    """The results of one collection, keyed by (way of asking, system)."""

    name: str
    kind: str
    documents: int
    queries: Sequence[Query]
    source: str = ""
    results: dict[tuple[str, str], dict[str, Figures]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        return list(measures.measured(self.name, self.results))

    @property
    def failed(self) -> int:
        """The number of questions that were refused."""
        return sum(answer.failed for answer in self.answers.values())

    def mean(self, figure: Callable[[Answer], float]) -> float:
        """The mean of a figure over all answers."""
        return sum(map(figure, self.answers.values())) / len(self.answers)

    @property
    def milliseconds(self) -> tuple[float, float]:
        """The 50th and 95th percentile of the time a question took."""
        times = [answer.seconds * 1_000 for answer in self.answers.values()]
        return metrics.percentile(times, 50), metrics.percentile(times, 95)

    @property
    def bands(self) -> list[tuple[float, int, float]]:
        """Band of coverage, questions in it, and the share whose first hit is right."""
        counted: dict[float, list[bool]] = {band: [] for band in BANDS}
        for query in self.queries:
            answer = self.answers[query.id]
            if answer.coverage is not None:
                band = next((band for band in BANDS if answer.coverage < band), BANDS[-1])
                counted[band].append(answer.ids[0] in query.relevant)
        return [(band, len(hits), sum(hits) / len(hits)) for band, hits in counted.items() if hits]


def run(collection: Collection, *, baselines: bool = True, encoder: Encoder | None = None) -> Run:
    """Asks every question of a collection in every way its measures need.

    With an encoder the texts have vectors, and there are no baselines.
    """
    baselines = baselines and encoder is None
    found = Run(
        f"{collection.name}{MEANING if encoder else ''}",
        collection.kind,
        len(collection.documents),
        collection.queries,
        collection.source,
    )
    ways = measures.ways(collection.name)
    with service.serving(collection, encoder) as ours:
        asked: dict[str, Ask] = {RUNG: lambda query: ours.ask(query).ids}
        found.answers = {query.id: ours.ask(query) for query in collection.queries}
        rankings: dict[str, Rankings] = {RUNG: {n: each.ids for n, each in found.answers.items()}}
        if baselines:
            from quality.baselines import Bm25s, Fts5  # needs the extra `quality`

            fts5, bm25s = Fts5(collection), Bm25s(collection)
            asked |= {FTS5: fts5.ask, BM25S: bm25s.ask}
            rankings |= {name: _ranked(asked[name], collection.queries) for name in (FTS5, BM25S)}
            if TYPOS in ways:
                mistyped = typos.with_typos(collection, fts5.count)
                for name, ask in asked.items():
                    figures = metrics.by_category(mistyped, _ranked(ask, mistyped))
                    found.results[TYPOS, name] = figures
    for name, ranking in rankings.items():
        found.results[TYPED, name] = metrics.by_category(collection.queries, ranking)
        if SESSIONS in ways:
            found.results[SESSIONS, name] = _by_session(collection, ranking)
    found.results[TYPED, RUNG][ALL]["bytes"] = found.mean(lambda answer: answer.size)
    return found


def run_demo(encoder: Encoder | None = None) -> Run:
    """Asks the demo the questions that share no whole word with their answers."""
    queries = demo_questions.queries()
    name = f"demo{MEANING if encoder else ''}"
    found = Run(name, "the records of the demo", demo_questions.RECORDS, queries)
    with demo_questions.serving(encoder) as ours:
        found.answers = {query.id: ours.ask(query) for query in queries}
    rankings = {id: answer.ids for id, answer in found.answers.items()}
    found.results[TYPED, RUNG] = metrics.by_category(queries, rankings)
    return found


def run_papers() -> Run:
    """Asks every question about papers."""
    queries = papers.queries()
    found = Run("papers", "two snapshots of papers", 0, queries)
    with papers.serving() as library:
        found.answers = {query.id: library.ask(query) for query in queries}
        found.documents = library.count
    rankings = {name: answer.ids for name, answer in found.answers.items()}
    found.results[TYPED, RUNG] = metrics.by_category(queries, rankings)
    return found


def _by_session(collection: Collection, rankings: Rankings) -> dict[str, Figures]:
    """Figures with sessions instead of documents."""
    sessions = collection.sessions
    queries = [
        replace(query, relevant=dict.fromkeys(_in(sessions, query.relevant), 1))
        for query in collection.queries
    ]
    ranked = {name: _in(sessions, ids) for name, ids in rankings.items()}
    return metrics.by_category(queries, ranked)


def _in(sessions: Mapping[str, str], ids: Iterable[str]) -> list[str]:
    """The sessions of documents, each once, in their order."""
    return list(dict.fromkeys(sessions.get(one, one) for one in ids))


def _ranked(ask: Ask, queries: Sequence[Query]) -> Rankings:
    return {query.id: ask(query) for query in queries}
