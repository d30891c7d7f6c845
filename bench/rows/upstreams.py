"""Upstreams: the adapter compared with its upstream, packages, and the bulkhead."""

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import orjson

from bench import corpus as made_up
from bench import figures
from bench.calls import call, get, result_of
from bench.findings import Finding, Line, Note
from bench.load import Load, ask, drive
from bench.plan import Plan, Upstreams
from bench.servers import RUNG, Server, pinned, running, two_cores
from bench.sources import Sources, answering, repeating
from bench.stores import Corpus, open_corpus, open_queries
from evidence.limits import BUDGETS
from service.settings import WAITING_THREADS
from service import keys
from service.pdpp import encode
from service.ports import SearchQuery
from service.access import packages
from service.records.store import Store
from evidence.model import MemberStream
from service.access.registry import Member
from service.access.registry import Registry
from service.records.sqlite.writer import open_writer

SECRET = "a secret of the benchmark only"
MB = 1_000_000
MS = 1_000
CONNECTIONS = 8
HITS = 10
TURN = 40  # requests of one client before it turns to the other server

FEW, MANY = 8, 64
SOURCE_SECONDS = 0.050
HUNG = 50
HUNG_SECONDS = 60.0
READERS = 4
FULL_SECONDS = 5.0
SLOTS = WAITING_THREADS - BUDGETS.spare_threads  # requests of a worker that may wait at once


def measure(plan: Plan) -> Iterator[Line]:
    """Measures over the corpus of middle size."""
    corpus, queries = open_corpus(plan.middle), open_queries(plan.middle)
    mix, frequent = queries.mix[: plan.upstreams.queries], queries.common[0]
    yield from _adapter(plan.upstreams, corpus, mix)
    yield from _fan_in(plan.upstreams, _pages(corpus, frequent, FEW))
    yield _memory(plan.upstreams, _pages(corpus, frequent, MANY))
    yield from _bulkhead(plan.upstreams, corpus, mix)


def searches(corpus: Corpus, mix: Sequence[str]) -> list[bytes]:
    """Mixed queries over REST."""
    found = (f"/v1/search?q={quote(query)}&limit={HITS}" for query in mix)
    return [get(target, corpus.token) for target in found]


@dataclass(frozen=True, slots=True)
class Spent:
    """A load, and the CPU seconds that a worker used per request."""

    load: Load
    cpu: float


def _adapter(plan: Upstreams, corpus: Corpus, mix: Sequence[str]) -> Iterator[Line]:
    """Sends the same searches to the upstream and to the adapter, in turn, both on one core."""
    core, client = two_cores()
    rest = searches(corpus, mix)
    mcp = [call(corpus.token, "search", {"query": query}) for query in mix]
    store = {"RUNG_STORE": str(corpus.store.absolute())}
    with (
        running(RUNG, store, core=core) as upstream,
        _adapting(f"http://127.0.0.1:{upstream.port}", core) as adapter,
        pinned(client),
    ):
        for request in rest:
            if ask(adapter.port, request) != ask(upstream.port, request):
                raise RuntimeError("the adapter's answer differs from its upstream's")
        for request in mcp:
            result_of(ask(adapter.port, request))
        for name, requests in (("search", rest), ("MCP search", mcp)):
            alone = [
                [_one(server, requests, TURN) for server in (adapter, upstream)]
                for _ in range(plan.turns)
            ]
            loaded = [
                [_spent(server, requests, plan.loaded) for server in (adapter, upstream)]
                for _ in range(plan.rounds)
            ]
            yield from _compared(name, alone, loaded, judged=requests is rest)


@contextmanager
def _adapting(url: str, core: int) -> Iterator[Server]:
    """Runs a Rung without a store, in front of an upstream."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"RUNG_UPSTREAM_URL": url}
        with running(RUNG, env, core=core, threads=WAITING_THREADS, cwd=Path(folder)) as server:
            yield server


def _one(server: Server, requests: Sequence[bytes], total: int) -> Load:
    return drive(server.port, requests, total=total, connections=1)


def _spent(server: Server, requests: Sequence[bytes], total: int) -> Spent:
    before = server.cpu_seconds()
    load = drive(server.port, requests, total=total, connections=CONNECTIONS)
    return Spent(load, (server.cpu_seconds() - before) / total)


def _compared(
    name: str, alone: list[list[Load]], loaded: list[list[Spent]], *, judged: bool
) -> Iterator[Line]:
    added = tuple((ours.p50 - theirs.p50) * MS for ours, theirs in alone)
    ours, theirs = ([each.cpu for each in spent] for spent in zip(*loaded))
    kept = figures.ratios(theirs, ours)
    if judged:
        yield Finding("adapter", added)
        yield Finding("adapter-rate", kept)
    else:
        yield Note(f"{name}: added by the adapter", f"{statistics.median(added):.2f} ms")
        rate = f"{statistics.median(kept):.2f} ×"
        yield Note(f"{name}: per second of CPU, relative to the upstream", rate)
    times = (statistics.median(each.p50 for each in loads) * MS for loads in zip(*alone))
    yield Note(f"{name}: p50 of adapter, upstream", "{:.2f}, {:.2f} ms".format(*times))
    cpu = (statistics.median(seconds) * MS for seconds in (ours, theirs))
    yield Note(f"{name}: CPU of adapter, upstream", "{:.2f}, {:.2f} ms".format(*cpu))


def _fan_in(plan: Upstreams, pages: Sequence[bytes]) -> Iterator[Line]:
    """Compares searches of a package of eight slow sources with those of a package of one."""
    core, client = two_cores()
    with (
        answering(pages, SOURCE_SECONDS) as sources,
        _packaged(sources, [FEW, 1], core) as (server, (many, one)),
        pinned(client),
    ):
        hits = orjson.loads(ask(server.port, many))["data"]
        if len({hit["connection_id"] for hit in hits}) != FEW:
            raise RuntimeError("not every source is on the page")
        pairs = [
            (_one(server, [many], plan.fan_ins).p50, _one(server, [one], plan.fan_ins).p50)
            for _ in range(plan.rounds)
        ]
    yield Finding("package", figures.ratios(*zip(*pairs)))
    times = (statistics.median(seconds) * MS for seconds in zip(*pairs))
    yield Note(f"{FEW} sources, one: p50", "{:.1f}, {:.1f} ms".format(*times))


def _memory(plan: Upstreams, pages: Sequence[bytes]) -> Finding:
    """The memory of a worker after searches of a package of many sources."""
    core, client = two_cores()
    with (
        answering(pages, 0) as sources,
        _packaged(sources, [MANY], core) as (server, requests),
        pinned(client),
    ):
        drive(server.port, requests, total=plan.packages, connections=CONNECTIONS)
        return Finding("package-memory", (server.memory() / MB,))


def _pages(corpus: Corpus, frequent: str, count: int) -> list[bytes]:
    """A real page of hits for each of `count` sources, each with its own connection."""
    store = Store(corpus.store).open(corpus.token)
    query = SearchQuery(frequent, connection_id="source-0", limit=HITS)
    page = orjson.dumps(encode.body_of(store.search(query)))
    return [page.replace(b"source-0", f"source-{number}".encode()) for number in range(count)]


@contextmanager
def _packaged(
    sources: Sources, sizes: Sequence[int], core: int
) -> Iterator[tuple[Server, list[bytes]]]:
    """A server with a package of the first `size` sources for each size, and its searches."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with open_writer(path) as writer:
            requests = []
            for size in sizes:
                members = [_member(number, url) for number, url in enumerate(sources.urls[:size])]
                made = packages.create(Registry(writer), members, keys.of_tokens(SECRET.encode()))
                requests.append(get(f"/v1/search?q=anything&limit={HITS}", made[1]))
            writer.finish()
        env = {"RUNG_STORE": str(path), "RUNG_SECRET_KEY": SECRET}
        with running(RUNG, env, core=core, threads=WAITING_THREADS) as server:
            yield server, requests


def _member(number: int, url: str) -> Member:
    name = f"Source {number}"
    held = (MemberStream(stream, f"source-{number}", "made-up", name) for stream in made_up.STREAMS)
    return Member(name, f"grt_{number}", tuple(held), url, f"token-{number}")


def _bulkhead(plan: Upstreams, corpus: Corpus, mix: Sequence[str]) -> Iterator[Line]:
    """Reads the store while as many callers as may wait for an upstream that never answers."""
    core, client = two_cores()
    local = _local_reads(corpus, mix)
    health = [get("/healthz")]
    with ExitStack() as sources:
        silent = sources.enter_context(answering([b"{}"], HUNG_SECONDS))
        env = {"RUNG_STORE": str(corpus.store.absolute()), "RUNG_UPSTREAM_URL": silent.urls[0]}
        with (
            running(RUNG, env, core=core, threads=WAITING_THREADS) as server,
            pinned(client),
            sources,  # they stop first, because the server would wait for them
        ):
            drive(server.port, local, total=len(local), connections=READERS)  # to warm up
            calm = drive(server.port, local, total=plan.reads, connections=READERS)
            with repeating(server.port, _hanging()) as callers:
                _await_hung(silent)
                reads = drive(server.port, local, total=plan.reads, connections=READERS)
                healthy = _one(server, health, plan.reads // READERS)
                hung = silent.waiting
    if hung < SLOTS:
        raise RuntimeError("the reads took longer than the callers wait")
    yield Finding("hung-read", (reads.p99 * MS,))
    yield Finding("hung-health", (healthy.p99 * MS,))
    yield Note("p99 of a local read without hung calls", f"{calm.p99 * MS:.2f} ms")
    yield Note("waiting calls; answers to the others", f"{hung}; {callers.answered}")


def _hanging() -> list[bytes]:
    """Searches at the upstream, half of them over MCP."""
    tokens = [f"token-{number}" for number in range(HUNG)]
    return [
        (
            get("/v1/search?q=anything", token)
            if number % 2
            else call(token, "search", {"query": "anything"})
        )
        for number, token in enumerate(tokens)
    ]


def _await_hung(silent: Sources) -> None:
    """Returns once as many calls as may are waiting."""
    until = time.perf_counter() + FULL_SECONDS
    while silent.waiting < SLOTS:
        if time.perf_counter() > until:
            raise RuntimeError(f"only {silent.waiting} calls wait for the upstream")
        time.sleep(0.01)


def _local_reads(corpus: Corpus, mix: Sequence[str]) -> list[bytes]:
    """Searches, pages of records and single records of the store, in turn."""
    token, found = corpus.token, list[bytes]()
    records = made_up.records(len(mix))
    for search, record in zip(searches(corpus, mix), records):
        stream = f"/v1/streams/{record.stream}/records"
        source = f"connection_id=source-{record.connection}"
        found += [search, get(f"{stream}?{source}&limit=25", token)]
        found += [get(f"{stream}/{record.id}?{source}", token)]
    return found
