"""A million records: the same search, narrow and wide grants, growth, and the start of a worker."""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial

import orjson

from bench import figures
from bench.calls import result_of
from bench.corpus import CONNECTIONS
from bench.findings import Finding, Line, Note
from bench.load import ask, drive
from bench.peers import plain
from bench.peers.environments import HITS, OFFICIAL
from bench.plan import Plan
from bench.rows.search import (
    CLIENTS,
    MB,
    MS,
    RUNG,
    Requests,
    busiest,
    described,
    in_turns,
    rate_rows,
    requests_for,
)
from bench.servers import Server, peer, pinned, rung, two_cores
from bench.stores import Corpus, open_corpus, open_queries
from service.ports import SearchQuery
from service.records.store import Store

FEW = 8
#: The rows of each kind of question: the rate of eight clients, the p95 of one.
ROWS = {"natural": ("natural-million", "natural-p95"), "rare": ("rare-million", "rare-p95")}


def measure(plan: Plan) -> Iterator[Line]:
    """Compares Rung with the SDK, then grants and sizes, in turn, by one client."""
    large, small = open_corpus(plan.large), open_corpus(plan.small)
    queries = open_queries(plan.middle)
    core, client = two_cores()
    with ExitStack() as stack:
        ours = stack.enter_context(rung(large.store, core))
        theirs = stack.enter_context(peer(OFFICIAL, large.plain, core))
        stack.enter_context(pinned(client))
        servers = {RUNG: ours, OFFICIAL.title: theirs}
        for kind, asked in (("natural", queries.natural), ("rare", queries.rare)):
            requests = requests_for(large.token, asked, [OFFICIAL])
            yield from _compared(plan, servers, requests, kind)
        yield _scorer_memory(
            large, ours, requests_for(large.token, queries.natural, ())[RUNG], core
        )
        few = stack.enter_context(rung(small.store, core))
        yield from _common(plan, ours, large, few, small, queries.common)
    yield from _in_process(large, small, queries.common)
    yield _start(plan, large, queries.rare[0], core)


def _compared(
    plan: Plan, servers: Mapping[str, Server], requests: Requests, kind: str
) -> Iterator[Line]:
    """Asks every question once a round, by eight clients and then by one."""
    rate, p95 = ROWS[kind]
    rounds, total = max(1, plan.rounds // 2), len(requests[RUNG])
    many, one = (
        in_turns(servers, requests, rounds, partial(drive, total=total, connections=clients))
        for clients in (CLIENTS, 1)
    )
    yield from rate_rows({rate: OFFICIAL.title}, many)
    slow = ([each[name].p95 for each in one] for name in (RUNG, OFFICIAL.title))
    yield Finding(p95, figures.ratios(*slow))
    yield from described(many, f"{kind}, {CLIENTS} clients")
    yield from described(one, f"{kind}, 1 client")
    yield busiest(many)
    answers = (ask(servers[RUNG].port, request) for request in requests[RUNG])
    whole = sum(complete(answer) for answer in answers)
    yield Note(f"{kind} questions with complete recall", f"{whole} of {total}")


def _scorer_memory(found: Corpus, scoring: Server, requests: Sequence[bytes], core: int) -> Finding:
    """What the scorer adds to the private memory of a worker that has answered all questions."""
    with rung(found.store, core, RUNG_COMPILED="off") as plain:
        for server in (scoring, plain):
            drive(server.port, requests, total=len(requests), connections=CLIENTS)
        return Finding("scorer-memory", ((scoring.memory() - plain.memory()) / MB,))


def _searches(token: str, queries: Sequence[str]) -> Sequence[bytes]:
    return requests_for(token, queries, ())[RUNG]


def complete(answer: bytes) -> bool:
    """Whether the answer reports that every matching record was ranked."""
    return bool(result_of(answer)["structuredContent"]["data"]["meta"]["recall"]["complete"])


def _common(
    plan: Plan, ours: Server, large: Corpus, few: Server, small: Corpus, words: Sequence[str]
) -> Iterator[Line]:
    one, some, every = (_searches(large.tokens[most], words) for most in (1, FEW, CONNECTIONS))
    cells = {
        "1": (ours, one),
        f"{FEW}": (ours, some),
        f"{CONNECTIONS}": (ours, every),
        "small": (few, _searches(small.token, words)),
    }
    rounds = []
    for _ in range(plan.rounds):
        loads = {
            name: drive(server.port, requests, total=max(plan.asks, len(words)), connections=1)
            for name, (server, requests) in cells.items()
        }
        rounds.append((loads, joined_p95(large, words)))
    narrow = [each["1"] for each, _ in rounds]
    wide = [each[f"{CONNECTIONS}"] for each, _ in rounds]
    base = [load.p50 for load in narrow]
    yield Finding(
        "grant", figures.ratios([load.p95 for load in narrow], [p95 for _, p95 in rounds])
    )
    little = [each["small"].p95 for each, _ in rounds]
    yield Finding("growth", figures.ratios([load.p95 for load in wide], little))
    middling = [each[f"{FEW}"].p50 for each, _ in rounds]
    yield Finding("fan-in-8", figures.ratios(middling, base))
    yield Finding("fan-in-64", figures.ratios([load.p50 for load in wide], base))
    for name in cells:
        p50, p95 = (
            statistics.median(getattr(each[name], figure) for each, _ in rounds) * MS
            for figure in ("p50", "p95")
        )
        what = f"{name} of {CONNECTIONS} connections"
        what = "small store, all connections" if name == "small" else what
        yield Note(f"common word, {what}: p50 / p95", f"{p50:.2f} / {p95:.2f} ms")
    shares = [load.client_share for each, _ in rounds for load in each.values()]
    yield Note(
        "the client's core was busy, with one client", f"{min(shares):.0%} to {max(shares):.0%}"
    )
    joined = statistics.median(p95 for _, p95 in rounds) * MS
    yield Note("the plain join filter, 1 connection: p95", f"{joined:.1f} ms")


def joined_p95(found: Corpus, words: Sequence[str]) -> float:
    """The p95 in seconds of the join filter for one connection, in this process."""
    named = orjson.dumps(["source-0"]).decode()
    return _plain_p95(
        found, plain.JOINED, [(plain.expression(word), named, HITS) for word in words]
    )


def naive_p95(found: Corpus, words: Sequence[str]) -> float:
    """The p95 in seconds of the peers' statement over everything, in this process."""
    return _plain_p95(found, plain.SEARCH, [(plain.expression(word), HITS) for word in words])


def _plain_p95(found: Corpus, sql: str, asked: Sequence[tuple[object, ...]]) -> float:
    seconds = []
    with closing(plain.connect(str(found.plain))) as db:
        db.execute(sql, asked[0]).fetchall()  # opens the file before the clock starts
        for values in asked:
            begun = time.perf_counter()
            db.execute(sql, values).fetchall()
            seconds.append(time.perf_counter() - begun)
    return figures.percentiles(seconds)[1]


def _in_process(large: Corpus, small: Corpus, words: Sequence[str]) -> Iterator[Note]:
    """The same without HTTP and rendering, which make ratios of short times look better."""

    def seconds(found: Corpus, token: str) -> tuple[float, float, float]:
        upstream = Store(found.store).open(token)
        taken = []
        for word in (words[0], *words):
            begun = time.perf_counter()
            upstream.search(SearchQuery(word, limit=HITS))
            taken.append(time.perf_counter() - begun)
        return figures.percentiles(taken[1:])

    one, some, every = (seconds(large, large.tokens[most]) for most in (1, FEW, CONNECTIONS))
    little = seconds(small, small.token)
    yield Note("in the store alone: growth of p95", f"{every[1] / little[1]:.1f} ×")
    naive = [naive_p95(found, words) for found in (large, small)]
    yield Note("the plain statement alone: growth of p95", f"{naive[0] / naive[1]:.1f} ×")
    yield Note(
        f"in the store alone: {FEW} and {CONNECTIONS} connections, relative to one",
        f"{some[0] / one[0]:.1f} and {every[0] / one[0]:.1f} ×",
    )


def _start(plan: Plan, found: Corpus, query: str, core: int) -> Finding:
    """Seconds from the start of gunicorn to the answer to the first search."""
    (request,) = _searches(found.token, [query])
    seconds = []
    for _ in range(plan.starts):
        begun = time.perf_counter()
        with rung(found.store, core, cached=True) as server:
            result_of(ask(server.port, request))
            seconds.append(time.perf_counter() - begun)
    return Finding("start", tuple(seconds))
