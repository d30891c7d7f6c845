"""Papers: search, reads at the end of a text, memory, and replacements under load."""

import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from shutil import copytree
from urllib.parse import quote

import orjson

from bench import figures
from bench.calls import call, get, result_of
from bench.findings import Finding, Line, Note
from bench.load import Load, ask, drive
from bench.plan import Plan
from bench.servers import CONFIG, RUNG, Server, pinned, running, two_cores
from bench.snapshots import SOURCE, Grown, open_grown
from service.papers.snapshot_library import Papers
from service.papers.swap import swap
from service.ports.papers import PaperQuery
from tests.helpers.server import serving

SNAPSHOT = "RUNG_PAPERS_DB"
MCP, REST = "/mcp/papers", "/papers/v1"
MB = 1_000_000
HITS = 10
PAGE_CHARS = 10_000
CONNECTIONS = 4

SEARCHES_BEFORE_MEMORY = 500
SWAP_WORKERS = 2
SWAP_BATCH = 40  # requests after which the load checks whether to stop
SEEN_SECONDS = 10.0  # within which a new snapshot must be served

#: One and two words, rare and frequent, English and Chinese.
QUERIES = (
    *("attention", "transformer", "lidar", "entropy", "softmax", "retrieval", "convolution"),
    *("deep learning", "language model", "machine translation", "image recognition"),
    *("graph neural", "point cloud", "information theory", "reinforcement learning"),
    *("pre-training", "training cost", "ablation", "深度学习", "注意力机制", "数据集"),
)

#: The snippet may come from any column, which makes it slow.
UPSTREAM = f"""
SELECT paper.paper_id, paper.title, paper.year, paper.venue,
       snippet(paper_fts, -1, '[[[', ']]]', '…', 30)
FROM paper_fts JOIN paper ON paper.paper_id = paper_fts.paper_id
WHERE paper_fts MATCH ?
ORDER BY bm25(paper_fts, 5.0, 3.0, 1.0, 1.0, 2.0)
LIMIT {HITS}
"""


def measure(plan: Plan) -> Iterator[Line]:
    """Measures a snapshot grown to `plan.papers` papers."""
    grown = open_grown(plan.papers)
    yield from _search(grown, plan.paper_rounds)
    core, client = two_cores()
    with running(RUNG, _served(grown.snapshot), core=core) as server, pinned(client):
        yield _deep(server, grown, plan.paper_rounds, plan.paper_pages)
        yield _memory(server)
    yield from _swaps(plan.swaps)


def expression(query: str) -> str:
    """A query as the upstream passes it to SQLite: words quoted, CJK words as phrases."""
    words = (" ".join(word) if not word.isascii() else word.lower() for word in query.split())
    return " ".join(f'"{word}"' for word in words)


def _served(snapshot: Path) -> dict[str, str]:
    return {SNAPSHOT: str(snapshot.absolute())}


def _search(grown: Grown, rounds: int) -> Iterator[Line]:
    """Compares searches with snippets with the upstream's statement, in turn, in this process."""
    papers = Papers(grown.snapshot)
    uri = f"{grown.snapshot.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:

        def ours(query: str) -> int:
            return len(papers.open().search(PaperQuery(query, limit=HITS)).hits)

        def theirs(query: str) -> int:
            return len(db.execute(UPSTREAM, (expression(query),)).fetchall())

        for query in QUERIES:
            if not (ours(query) and theirs(query)):
                raise RuntimeError(f"nothing found for {query!r}")
        pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(rounds)]
    mine, upstreams = ([sum(seconds) for seconds in each] for each in zip(*pairs))
    yield Finding("papers", figures.ratios(upstreams, mine))
    rates = (len(QUERIES) / statistics.median(seconds) for seconds in (mine, upstreams))
    yield Note("Rung, the usual statement: searches/s", "{:,.0f}, {:,.1f}".format(*rates))
    fastest = (map(min, zip(*seconds)) for seconds in zip(*pairs))
    middle = statistics.median(theirs / ours for ours, theirs in zip(*fastest))
    yield Note("median ratio over the queries", f"{middle:.1f} ×")


def _seconds(search: Callable[[str], int]) -> list[float]:
    """The seconds of each query."""
    found = []
    for query in QUERIES:
        begun = time.perf_counter()
        search(query)
        found.append(time.perf_counter() - begun)
    return found


def _deep(server: Server, grown: Grown, rounds: int, pages: int) -> Finding:
    """Compares a page at the end of a huge source with one at its start."""

    def page(offset: int) -> list[bytes]:
        where = {"offset_chars": offset, "max_chars": PAGE_CHARS}
        arguments = {"paper_id": grown.huge_id, **where}
        request = call(None, "get_paper_source", arguments, path=MCP)
        shown = result_of(ask(server.port, request))["structuredContent"]
        if shown["end_chars"] - shown["offset_chars"] != PAGE_CHARS:
            raise RuntimeError("the page does not have the requested size")
        return [request]

    start, end = page(0), page(grown.huge_chars - PAGE_CHARS)

    def read(requests: list[bytes]) -> Load:
        return drive(server.port, requests, total=pages, connections=CONNECTIONS)

    pairs = [(read(end).p50, read(start).p50) for _ in range(rounds)]
    return Finding("papers-page", figures.ratios(*zip(*pairs)))


def _memory(server: Server) -> Finding:
    """The memory of the worker that read the huge source, after searches."""
    requests = [call(None, "search_papers", {"query": each}, path=MCP) for each in QUERIES]
    drive(server.port, requests, total=SEARCHES_BEFORE_MEMORY, connections=CONNECTIONS)
    return Finding("papers-memory", (server.memory() / MB,))


def _swaps(swaps: int) -> Iterator[Line]:
    """Counts failed requests while the snapshot is replaced; each one must be served in turn."""
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        copytree(SOURCE.parent, folder / "served")
        served = folder / "served" / SOURCE.name
        releases = [_release(folder / f"{number}.db", number) for number in (1, 2)]
        swap(releases[1], served)
        with (
            serving(RUNG, _served(served), workers=SWAP_WORKERS, config=CONFIG) as url,
            ThreadPoolExecutor() as threads,
        ):
            port = int(url.rpartition(":")[2])
            done = threading.Event()
            load = threads.submit(_load_until, done, port, _reads(served))
            try:
                for number in range(swaps):
                    swap(releases[number % 2], served)
                    _await_title(port, f"Release {number % 2 + 1}")
            finally:
                done.set()
            answered, errors = load.result()
    if answered < swaps:
        raise RuntimeError("there was too little load")
    yield Finding("papers-swap", (len(errors),))
    yield Note(f"requests during {swaps} replacements", f"{answered:,}")
    for error in dict.fromkeys(errors):
        yield Note("error", error)


def _release(path: Path, number: int) -> Path:
    """Writes the snapshot to `path` with a release number in its titles."""
    path.write_bytes(SOURCE.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("UPDATE paper SET title = ? || ': ' || title", (f"Release {number}",))
        db.commit()
    return path


def _reads(snapshot: Path) -> list[bytes]:
    """Searches, and the metadata and sources of papers that every release contains."""
    with closing(sqlite3.connect(snapshot)) as db:
        ids = [row[0] for row in db.execute("SELECT paper_id FROM paper ORDER BY 1")]
        with_source = "SELECT paper_id FROM paper WHERE source_md_content_hash > '' ORDER BY 1"
        sources = [row[0] for row in db.execute(with_source)]
    found = [f"{REST}/search?q={quote(query)}" for query in QUERIES]
    found += [f"{REST}/papers/{paper_id}" for paper_id in ids]
    found += [f"{REST}/papers/{paper_id}/source" for paper_id in sources]
    return [get(target) for target in found]


def _load_until(done: threading.Event, port: int, requests: list[bytes]) -> tuple[int, list[str]]:
    """Sends requests until `done`; returns (number of requests, errors)."""
    answered, errors = 0, []
    while not done.is_set():
        first = answered % len(requests)
        turned = requests[first:] + requests[:first]
        try:
            drive(port, turned, total=SWAP_BATCH, connections=CONNECTIONS)
        except (OSError, RuntimeError) as error:
            errors.append(str(error))
        answered += SWAP_BATCH
    return answered, errors


def _await_title(port: int, wanted: str) -> None:
    """Returns once titles begin with `wanted`. Raises `RuntimeError` if they do not in time."""
    until = time.perf_counter() + SEEN_SECONDS
    while time.perf_counter() < until:
        body = orjson.loads(ask(port, get(f"{REST}/search?q=attention&limit=1")))
        if body["data"][0]["title"].startswith(wanted):
            return
    raise RuntimeError(f"{wanted} was not served within {SEEN_SECONDS:g} seconds")
