"""A million records: the same search, narrow and wide grants, growth, and the start of a worker."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

import orjson

from bench import exact, figures
from bench.calls import MODERN, call, ids_of, result_of
from bench.corpus import CONNECTIONS
from bench.findings import BUSIEST, Finding, Line, Note
from bench.load import ask, drive
from bench.peers import plain
from bench.peers.environments import HITS, OFFICIAL
from bench.plan import Plan
from bench.rows.search import CLIENTS, MS, RUNG, in_turns, rate_rows, requests_for, told
from bench.servers import Server, peer, pinned, rung, two_cores
from bench.stores import Corpus, open_corpus, open_queries
from service.ports import SearchQuery
from service.records.store import Store

FEW = 8


def measure(plan: Plan) -> Iterator[Line]:
    """The SDK beside us for the mix; then grants and sizes in turns, by one client."""
    large, small = open_corpus(plan.large), open_corpus(plan.small)
    queries = open_queries(plan.middle)
    core, client = two_cores()
    requests = requests_for(large.token, queries.mix)
    with ExitStack() as stack:
        ours = stack.enter_context(rung(large.store, core))
        servers = {
            RUNG: ours,
            OFFICIAL.title: stack.enter_context(peer(OFFICIAL, large.plain, core)),
        }
        stack.enter_context(pinned(client))
        rounds = in_turns(servers, requests, plan.rounds, plan.seconds, CLIENTS)
        yield rate_rows("sdk-million", rounds, OFFICIAL.title)
        yield from told(rounds, CLIENTS)
        busiest = max(load.client_share for each in rounds for load in each.values())
        yield Note(BUSIEST, f"{busiest:.0%}")
        yield from _complete(ours, large, queries.mix, queries.common)
        few = stack.enter_context(rung(small.store, core))
        yield from _common(plan, ours, large, few, small, queries.common)
    yield from _in_process(large, small, queries.common)
    yield _start(plan, large, queries.mix[0], core)


def _searches(token: str, queries: Sequence[str]) -> list[bytes]:
    arguments = ({"query": query, "limit": HITS} for query in queries)
    return [call(token, "search", each, era=MODERN) for each in arguments]


def _complete(
    server: Server, found: Corpus, mix: Sequence[str], common: Sequence[str]
) -> Iterator[Line]:
    """Whether ten hits are the exact ten, where the answer says that nothing was left out."""
    whole, bounded = list[float](), list[float]()
    for kind, queries in (("mixed", mix), ("common", common)):
        answers = [ask(server.port, request) for request in _searches(found.token, queries)]
        for answer, truth in zip(answers, exact.best(found.exact, queries, HITS), strict=True):
            share = figures.overlap(ids_of(answer), truth.ids, ties=truth.ties)
            (whole if complete(answer) else bounded).append(share)
        number = sum(map(complete, answers))
        yield Note(f"{kind} queries whose recall is complete", f"{number} of {len(queries)}")
    yield Finding("complete", (statistics.mean(share == 1.0 for share in whole),))
    if bounded:
        mean = f"{statistics.mean(bounded):.2f}"
        yield Note("overlap@10 of the others, which say that they are bounded", mean)


def complete(answer: bytes) -> bool:
    """What the answer says of its recall."""
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
        what = "small store, all connections" if name == "small" else f"{name} of {CONNECTIONS}"
        yield Note(f"common word, {what}: p50 / p95", f"{p50:.2f} / {p95:.2f} ms")
    shares = [load.client_share for each, _ in rounds for load in each.values()]
    yield Note(
        "the client's core was busy, by one client", f"{min(shares):.0%} to {max(shares):.0%}"
    )
    joined = statistics.median(p95 for _, p95 in rounds) * MS
    yield Note("the plain join filter, 1 connection: p95", f"{joined:.1f} ms")


def joined_p95(found: Corpus, words: Sequence[str]) -> float:
    """Seconds of the join filter of one connection, in this process."""
    named = orjson.dumps(["source-0"]).decode()
    return _plain_p95(
        found, plain.JOINED, [(plain.expression(word), named, HITS) for word in words]
    )


def naive_p95(found: Corpus, words: Sequence[str]) -> float:
    """Seconds of the statement of the peers over everything, in this process."""
    return _plain_p95(found, plain.SEARCH, [(plain.expression(word), HITS) for word in words])


def _plain_p95(found: Corpus, sql: str, asked: Sequence[tuple[object, ...]]) -> float:
    seconds = []
    with closing(plain.connect(str(found.plain))) as db:
        db.execute(sql, asked[0]).fetchall()  # opens the file, which is nobody's search
        for values in asked:
            begun = time.perf_counter()
            db.execute(sql, values).fetchall()
            seconds.append(time.perf_counter() - begun)
    return figures.percentiles(seconds)[1]


def _in_process(large: Corpus, small: Corpus, words: Sequence[str]) -> Iterator[Note]:
    """The same without HTTP and rendering, which flatter ratios of short times."""

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
        f"in the store alone: {FEW} and {CONNECTIONS} connections, of one",
        f"{some[0] / one[0]:.1f} and {every[0] / one[0]:.1f} ×",
    )


def _start(plan: Plan, found: Corpus, query: str, core: int) -> Finding:
    """Seconds from the start of gunicorn to the answer of a first search."""
    (request,) = _searches(found.token, [query])
    seconds = []
    for _ in range(plan.starts):
        begun = time.perf_counter()
        with rung(found.store, core, remembering=True) as server:
            result_of(ask(server.port, request))
            seconds.append(time.perf_counter() - begun)
    return Finding("start", tuple(seconds))
