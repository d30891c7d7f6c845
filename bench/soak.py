"""`python -m bench.soak [--seconds N] [--records N]`: a mixed load for long, and whether it leaks.

Every kind of call, both eras, REST, and errors, from eight clients that come and go. Memory and
open files of the worker are looked at between batches; the slope over all but the first quarter
says whether they stay flat. Exits with 1 where they do not, or where a good request failed.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from bench import corpus, figures, report
from bench.calls import LEGACY, MODERN, call, get, request
from bench.load import drive, post
from bench.plan import FULL
from bench.queries import Queries
from bench.servers import Server, pinned, rung, two_cores
from bench.stores import HOME, Corpus, open_corpus, open_queries

HOUR = 3_600.0
CLIENTS = 8
BATCH = 400
ERRORS = 24  # after each batch
WARM_SHARE = 0.25
POINTS = 300  # for a slope, of all samples
MB = 1_000_000
RECORDS = 200  # that are fetched and read
#: What still counts as flat over the time looked at: the noise of an allocator.
FLAT_SHARE, FLAT_MB, FLAT_FILES = 0.02, 1.0, 0.5

#: Refused tokens are part of the load, all from one address.
SETTINGS = {"RUNG_RATE_LIMIT_FAILURES": "off"}


@dataclass(slots=True)
class Soaked:
    """Samples of a soak: (seconds, value), and how it was answered. Memory in MB."""

    seconds: float = 0.0
    records: int = 0
    requests: int = 0
    errors: int = 0
    searches: int = 0
    failed: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    worst_p99: float = 0.0
    memory: list[tuple[float, float]] = field(default_factory=list)
    files: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Growth:
    """How something grew over the time that was looked at: an hour, all of it, and the verdict."""

    hourly: float
    total: float
    level: float
    flat: bool


def growth(samples: Sequence[tuple[float, float]], *, allowed: float, share: float = 0.0) -> Growth:
    """By slope, without the first quarter; flat up to `allowed`, or a share of the level."""
    whole = samples[-1][0]
    later = [point for point in samples if point[0] >= whole * WARM_SHARE]
    slope = figures.slope(figures.thinned(later, POINTS))
    level = sorted(value for _, value in later)[len(later) // 2]
    total = slope * (later[-1][0] - later[0][0])
    return Growth(slope * HOUR, total, level, total <= max(allowed, share * level))


def memory_growth(soaked: Soaked) -> Growth:
    return growth(soaked.memory, allowed=FLAT_MB, share=FLAT_SHARE)


def files_growth(soaked: Soaked) -> Growth:
    return growth(soaked.files, allowed=FLAT_FILES)


def soak(server: Server, found: Corpus, queries: Queries, seconds: float, records: int) -> Soaked:
    """Loads the server for that long."""
    good, bad = calls(found, queries), errors(found)
    soaked, begun = Soaked(records=records), time.perf_counter()
    while soaked.seconds < seconds:
        turned = _turned(good, soaked.requests)
        load = drive(server.port, turned, total=BATCH, connections=CLIENTS, tolerant=True)
        refused = drive(server.port, bad, total=ERRORS, connections=CLIENTS, tolerant=True)
        soaked.seconds = time.perf_counter() - begun
        soaked.requests += load.count
        soaked.errors += refused.count
        soaked.failed += load.count - load.statuses[200]
        soaked.failed += sum(n for status, n in refused.statuses.items() if status >= 500)
        soaked.searches += load.count * SEARCHES // len(KINDS)
        soaked.statuses.update(load.statuses + refused.statuses)
        soaked.worst_p99 = max(soaked.worst_p99, load.p99)
        soaked.memory.append((soaked.seconds, server.memory() / MB))
        soaked.files.append((soaked.seconds, float(server.files())))
    return soaked


def _turned(requests: Sequence[bytes], place: int) -> list[bytes]:
    """The requests from a place on, and around."""
    at = place % len(requests)
    return [*requests[at:], *requests[:at]]


#: The calls of one turn, in order. Half are searches.
KINDS = (
    *("search", "query_records", "search", "fetch", "common", "read_record_field"),
    *("search", "aggregate", "rest_search", "schema", "search", "rest_record"),
)
SEARCHES = sum(kind in ("search", "common", "rest_search") for kind in KINDS)


def calls(found: Corpus, queries: Queries) -> list[bytes]:
    """Good requests, kinds and eras in turns, over all queries and some records."""
    records = list(corpus.records(RECORDS))
    made = []
    for turn, query in enumerate(queries.mix):
        record = records[turn % RECORDS]
        source = f"source-{record.connection}"
        id = f"{source}/{record.stream}:{record.id}"
        common = queries.common[turn % len(queries.common)]
        where = {"stream": record.stream, "connection_id": source}
        counted = {**where, "metric": "count", "group_by": "kind"}
        arguments: dict[str, tuple[str, dict[str, Any]]] = {
            "search": ("search", {"query": query}),
            "common": ("search", {"query": common}),
            "query_records": ("query_records", {**where, "limit": 10}),
            "fetch": ("fetch", {"id": id}),
            "read_record_field": ("read_record_field", {"id": id, "field_path": "body"}),
            "aggregate": ("aggregate", counted),
            "schema": ("schema", {} if turn % 2 else {"stream": record.stream}),
        }
        for place, kind in enumerate(KINDS):
            era = MODERN if (turn + place) % 2 else LEGACY
            if kind in arguments:
                tool, asked = arguments[kind]
                made.append(call(found.token, tool, asked, era=era))
            elif kind == "rest_search":
                made.append(get(f"/v1/search?q={quote(query)}", found.token))
            else:
                target = f"/v1/streams/{record.stream}/records/{record.id}?connection_id={source}"
                made.append(get(target, found.token))
    return made


def errors(found: Corpus) -> list[bytes]:
    """Requests that must be refused, or answered with what is wrong about them."""
    token, bearer = found.token, {"Authorization": f"Bearer {found.token}"}
    made = []
    for era in (LEGACY, MODERN):
        made += [
            call(token, "fetch", {"id": "source-0/notes:none"}, era=era),
            call(token, "search", {}, era=era),
            call(token, "query_records", {"stream": "notes", "cursor": "bent"}, era=era),
            call(token, "no_such_tool", {}, era=era),
            call("a-token-of-nobody", "schema", {}, era=era),
            request(token, "no/such/method", {}, era=era),
        ]
    made += [
        post("/mcp", b'{"jsonrpc": "2.0", "id": 1', bearer),
        post("/mcp", b"[]", bearer),
        call(token, "schema", {}, era="1999-01-01"),
        get("/v1/search?q=", token),
        get("/v1/streams/none/records", token),
        get("/v1/streams/notes/records/none", token),
        get("/v1/streams"),
        get("/nowhere", token),
    ]
    return made


def lines(soaked: Soaked) -> Iterable[tuple[str, str, str]]:
    """(what, measured, verdict) of a soak."""
    memory, files = memory_growth(soaked), files_growth(soaked)
    yield "time", f"{soaked.seconds:,.0f} s over {soaked.records:,} records", ""
    yield "requests", f"{soaked.requests:,} good, {soaked.errors:,} bad", ""
    answered = ", ".join(
        f"{status}: {count:,}" for status, count in sorted(soaked.statuses.items())
    )
    yield "answers by status", answered, ""
    failed = "good ones not answered with 200, bad ones answered with 5xx"
    yield failed, f"{soaked.failed:,}", "missed" if soaked.failed else "held"
    yield "worst p99 of a batch of good ones", f"{soaked.worst_p99 * 1_000:.0f} ms", ""
    for what, found, unit in (("RssAnon", memory, "MB"), ("open files", files, "")):
        grown = f"{found.hourly:+.2f} {unit} an hour, {found.total:+.2f} in all"
        shown = f"{found.level:.1f} {unit}, {grown}"
        yield what, " ".join(shown.split()), "held" if found.flat else "missed"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak")
    parser.add_argument("--seconds", type=float, default=HOUR)
    parser.add_argument("--records", type=int, default=FULL.large)
    asked = parser.parse_args()
    found, queries = open_corpus(asked.records), open_queries(min(asked.records, FULL.middle))
    core, client = two_cores()
    with rung(found.store, core, **SETTINGS) as server, pinned(client):
        soaked = soak(server, found, queries, asked.seconds, asked.records)
    kept = {**asdict(soaked), "statuses": {f"{k}": n for k, n in soaked.statuses.items()}}
    shown = list(lines(soaked))
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "soak.json").write_bytes(orjson.dumps({"samples": kept, "lines": shown}))
    report.write()
    for line in shown:
        print("  ".join(line).rstrip())
    return 1 if any(verdict == "missed" for _, _, verdict in shown) else 0


if __name__ == "__main__":
    sys.exit(main())
