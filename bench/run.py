"""One run: every promise measured once, side by side with the limit where it is a ratio."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench import goals, papers, remote, stages
from bench.calls import call, message, result_of
from bench.goals import Line
from bench.limit import DATABASE
from bench.load import Load, ask, drive, post
from bench.servers import Server, pinned, running, two_cores
from bench.stores import DEEP_CHARS, SHALLOW_CHARS, Corpus, Deep, open_corpus, open_deep
from evidence.limits import BUDGETS, CONTRACT

RUNG, LIMIT = "service.app:create_app()", "bench.limit:create_app()"
CONNECTIONS = 8
WINDOW_CHARS = CONTRACT.window_chars
SEARCHES_BEFORE_MEMORY = 2_000
WIDEST_PAGES = 40  # of the queries, asked for as many hits as can be
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    records: int
    rounds: int
    searches: int
    windows: int
    passes: int
    remote: remote.Plan
    papers: int
    pages: int
    swaps: int


FULL = Plan(
    records=100_000,
    rounds=5,
    searches=2_000,
    windows=4_000,
    passes=5,
    remote=remote.Plan(turns=20, rounds=5, loaded=1_200, fan_ins=60, packages=300, reads=2_000),
    papers=3_000,
    pages=1_000,
    swaps=100,
)
QUICK = Plan(
    records=20_000,
    rounds=3,
    searches=600,
    windows=1_000,
    passes=2,
    remote=remote.Plan(turns=10, rounds=3, loaded=600, fan_ins=30, packages=100, reads=800),
    papers=500,
    pages=300,
    swaps=25,
)


def measure(plan: Plan) -> Iterator[Line]:
    """The lines of the table, each as soon as it is known."""
    corpus, deep = open_corpus(plan.records), open_deep()
    yield from _search(plan, corpus)
    yield stages_line(plan, corpus)
    yield from _deep(plan, deep)
    yield from remote.measure(plan.remote, corpus)
    yield from papers.measure(
        papers=plan.papers, rounds=plan.rounds, pages=plan.pages, swaps=plan.swaps
    )


def _search(plan: Plan, corpus: Corpus) -> Iterator[Line]:
    """Throughput and hits beside the limit; then what only the loaded server can tell."""
    core, client = two_cores()
    queries = corpus.queries.mix
    ours = [call(corpus.token, "search", {"query": query, "limit": 10}) for query in queries]
    theirs = [call(None, "search", {"query": query, "limit": 10}) for query in queries]
    with (
        _rung(corpus.store, core) as rung,
        running(LIMIT, {DATABASE: str(corpus.limit.absolute())}, core=core) as limit,
        pinned(client),
    ):
        answers = [result_of(ask(rung.port, request)) for request in ours]
        expected = [result_of(ask(limit.port, request)) for request in theirs]
        pairs = [
            (_load(rung, ours, plan.searches), _load(limit, theirs, plan.searches))
            for _ in range(plan.rounds)
        ]
        yield from _throughput(pairs)
        yield goals.note("hits shared with the limit, of ten", _overlap(answers, expected))
        yield goals.note("evidence a hit, ours and the limit's", _evidence(answers, expected))
        done = len(queries) + plan.rounds * plan.searches
        _load(rung, ours, max(1, SEARCHES_BEFORE_MEMORY - done))
        yield goals.at_most(
            "RssAnon of the worker after its searches", rung.memory() / MB, goals.MEMORY_MB, " MB"
        )
        yield from _sizes(rung, corpus, answers)
        yield goals.at_most("start to first answer", rung.boot, goals.BOOT_SECONDS, " s")


def _rung(store: Path, core: int) -> Any:
    return running(RUNG, {"RUNG_STORE": str(store.absolute())}, core=core)


def _load(server: Server, requests: Sequence[bytes], total: int) -> Load:
    return drive(server.port, requests, total=total, connections=CONNECTIONS)


def _throughput(pairs: Sequence[tuple[Load, Load]]) -> Iterator[Line]:
    ours, theirs = zip(*pairs)
    found = goals.ratio([load.rate for load in ours], [load.rate for load in theirs])
    yield goals.at_least("search requests/s, of the limit's", found, goals.SEARCH_RATIO)
    for name, loads in (("Rung", ours), ("limit", theirs)):
        rate, p50, p95, p99 = (
            statistics.median(getattr(load, figure) for load in loads)
            for figure in ("rate", "p50", "p95", "p99")
        )
        times = " / ".join(f"{seconds * 1000:.1f}" for seconds in (p50, p95, p99))
        yield goals.note(f"  {name}: req/s, p50 / p95 / p99 ms", f"{rate:,.0f}, {times}")
    share = max(load.client_share for load in (*ours, *theirs))
    yield goals.note("  the client's core was busy for", f"{share:.0%}")


def _overlap(answers: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> str:
    shares = [
        goals.overlap(
            *([hit["id"] for hit in result["structuredContent"]["results"]] for result in pair)
        )
        for pair in zip(answers, expected)
    ]
    return f"{statistics.mean(shares):.2f}"


def _evidence(answers: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> str:
    """Mean bytes of record text a hit shows in one channel."""
    ours = [
        len(part["preview_text"].encode())
        for result in answers
        for rung in result["structuredContent"]["content_ladder"]["records"]
        for part in rung.get("evidence", ())
    ]
    hits = sum(len(result["structuredContent"]["results"]) for result in answers)
    theirs = [
        len(hit["evidence"].encode())
        for result in expected
        for hit in result["structuredContent"]["results"]
    ]
    return f"{sum(ours) / max(1, hits):.0f}, {statistics.mean(theirs):.0f} bytes"


def text_bytes(result: dict[str, Any]) -> int:
    """Bytes a model sees of a result."""
    return sum(len(block["text"].encode()) for block in result["content"])


def _sizes(rung: Server, corpus: Corpus, answers: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """The largest answers of all the queries, and of pages and windows as large as they go."""
    most = CONTRACT.page_items
    largest = [
        result_of(ask(rung.port, call(corpus.token, tool, {"limit": most, **arguments})))
        for tool, arguments in [
            *(("search", {"query": query}) for query in corpus.queries.mix[:WIDEST_PAGES]),
            ("query_records", {"stream": "messages"}),
        ]
    ]
    page = max(map(text_bytes, answers))
    text = max(map(text_bytes, (*answers, *largest)))
    data = max(len(orjson.dumps(found["structuredContent"])) for found in (*answers, *largest))
    headers = {"Authorization": f"Bearer {corpus.token}"}
    listed = ask(rung.port, post("/mcp", message("tools/list", {}), headers))
    tools = len(orjson.dumps(orjson.loads(listed)["result"]))
    for what, size, budget in (
        ("largest text of ten hits", page, BUDGETS.search_text_bytes),
        ("largest text of a result", text, BUDGETS.text_bytes),
        ("largest structured result", data, BUDGETS.structured_bytes),
        ("tools/list", tools, BUDGETS.tools_list_bytes),
    ):
        yield goals.at_most(what, size, budget, " bytes", digits=0)


def stages_line(plan: Plan, corpus: Corpus) -> Line:
    """How much of a search, all in this process, goes into reading the envelope and rendering."""
    found = stages.profile(corpus, passes=plan.passes)
    return goals.at_most(
        "reading, wire and rendering, of a search",
        found.share("reading", "wire", "fits", "render"),
        goals.READING_SHARE,
    )


def _deep(plan: Plan, deep: Deep) -> Iterator[Line]:
    """A window at the end of a huge field beside one of the same size in a small field."""
    core, client = two_cores()

    def window(record: str, size: int) -> list[bytes]:
        where = {"offset_chars": size - WINDOW_CHARS, "limit_chars": WINDOW_CHARS}
        arguments = {"id": record, "field_path": "text", **where}
        return [call(deep.token, "read_record_field", arguments)]

    huge, small = window(deep.huge_id, DEEP_CHARS), window(deep.small_id, SHALLOW_CHARS)
    with _rung(deep.store, core) as rung, pinned(client):
        _load(rung, small, plan.windows)
        before = rung.memory("VmRSS")
        for request in (small, huge):
            read = result_of(ask(rung.port, request[0]))["structuredContent"]["window"]
            if read["end_chars"] - read["start_chars"] != WINDOW_CHARS:
                raise RuntimeError("the window is not as large as was asked for")
        pairs = [
            (_load(rung, huge, plan.windows).p50, _load(rung, small, plan.windows).p50)
            for _ in range(plan.rounds)
        ]
        grown = (rung.memory("VmRSS") - before) / MB
    found = goals.ratio(*map(list, zip(*pairs)))
    yield goals.at_most("window at the end of 100 MB, of one in 8 KB", found, goals.DEEP_RATIO)
    yield goals.at_most("  growth of the worker by it", grown, goals.DEEP_MB, " MB")
