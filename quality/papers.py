"""Searches of two paper snapshots, each search with the paper that a person expects."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from quality.collections import Query
from quality.metrics import DEPTH
from quality.service import Answer
from service.demo.papers import write
from service.operations.base import PaperSession, run_bounded
from service.operations.papers import SEARCH_PAPERS
from service.papers.snapshot_library import Papers

QUERIES = Path(__file__).parent / "own" / "papers.ndjson"
#: A snapshot of real papers, which the tests read too.
SNAPSHOT = Path(__file__).parents[1] / "tests" / "data" / "papers" / "snapshot.db"


def queries() -> list[Query]:
    """The queries; `relevant` names the title of the expected paper."""
    rows = map(orjson.loads, QUERIES.read_bytes().splitlines())
    return [
        Query(f"paper-{n}", row["snapshot"], row["text"], row["category"], {row["title"]: 1})
        for n, row in enumerate(rows)
    ]


class Library:
    """The demo's papers and those of the tests, searched as a client searches."""

    def __init__(self, snapshots: dict[str, Path]) -> None:
        self._papers = {name: Papers(path) for name, path in snapshots.items()}

    @property
    def count(self) -> int:
        """The number of papers in both."""
        return sum(papers.status()["papers"] for papers in self._papers.values())

    def ask(self, query: Query) -> Answer:
        """The titles found, best first."""
        session = PaperSession(self._papers[query.group].open())
        start = time.perf_counter()
        arguments = SEARCH_PAPERS.load({"query": query.text, "limit": DEPTH})
        page = run_bounded(SEARCH_PAPERS, session, arguments)
        return Answer([hit.title for hit in page.hits], 0, time.perf_counter() - start)


@contextmanager
def serving() -> Iterator[Library]:
    """The library of both snapshots; the demo's is written for the run."""
    with TemporaryDirectory() as folder:
        yield Library({"demo": write(Path(folder)), "papers": SNAPSHOT})
