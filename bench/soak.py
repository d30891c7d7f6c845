"""`python -m bench.soak [--seconds N] [--records N]`: a long mixed load, to find leaks.

Eight clients, which come and go, make calls of every kind, in both eras and over REST, good and
bad, while imports and grants change the store, which is a copy. The worker's memory and open files
and SQLite's log are sampled between batches. The slope over all but the first quarter shows whether
they stay flat. Exits with 1 if they do not, or if a good request or a change failed.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from bench import corpus, figures, report, stores
from bench.calls import LEGACY, MODERN, call, get, request
from bench.changes import Changes, changing
from bench.load import drive, post
from bench.plan import FULL
from bench.queries import Queries
from bench.servers import Server, pinned, rung, two_cores
from bench.stores import Corpus, open_corpus, open_queries

HOUR = 3_600.0
CLIENTS = 8
BATCH = 400
ERRORS = 24  # after each batch
WARM_SHARE = 0.25
STRETCHES = 30  # of equal length; the highest sample of each counts
MB = 1_000_000
RECORDS = 200  # to fetch and read
#: Growth that still counts as flat: the noise of an allocator, of sockets that are being closed, of
#: a log that is emptied when it is full.
FLAT_SHARE, FLAT_MB, FLAT_FILES, FLAT_LOG_MB = 0.02, 1.0, 2.0, 64.0
#: In a shorter soak, the worker is still warming up: growth is not judged.
JUDGED_SECONDS = 600.0

#: The load includes refused tokens, all from one address.
SETTINGS = {"RUNG_RATE_LIMIT_FAILURES": "off"}

Samples = list[tuple[float, float]]


@dataclass(slots=True)
class Soaked:
    """The counts of a soak and its samples, as (seconds, value). Memory and log are in MB."""

    seconds: float = 0.0
    records: int = 0
    requests: int = 0
    errors: int = 0
    searches: int = 0
    failed: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    worst_p99: float = 0.0
    changes: Changes = field(default_factory=Changes)
    memory: Samples = field(default_factory=list)
    files: Samples = field(default_factory=list)
    log: Samples = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth per hour and in total, the median level, and whether the growth counts as flat."""

    hourly: float
    total: float
    level: float
    flat: bool


def growth(samples: Sequence[tuple[float, float]], *, allowed: float, share: float = 0.0) -> Growth:
    """Growth by the slope of the peaks, without the first quarter.

    It is flat up to `allowed`, or up to a share of the level. Caches fill and are emptied: only a
    leak lifts their peaks for long.
    """
    whole = samples[-1][0]
    later = [point for point in samples if point[0] >= whole * WARM_SHARE]
    slope = figures.slope(figures.peaks(later, STRETCHES))
    level = sorted(value for _, value in later)[len(later) // 2]
    total = slope * (later[-1][0] - later[0][0])
    return Growth(slope * HOUR, total, level, total <= max(allowed, share * level))


@contextmanager
def copied(found: Corpus) -> Iterator[Corpus]:
    """The corpus with a copy of its store, which may be written to."""
    with tempfile.TemporaryDirectory(dir=stores.HOME) as folder:
        own = replace(found, folder=Path(folder))
        shutil.copyfile(found.store, own.store)
        yield own


def soak(server: Server, own: Corpus, queries: Queries, seconds: float, records: int) -> Soaked:
    """Loads the server for `seconds` and changes the store it serves, which must be `copied`."""
    good, bad = calls(own, queries), errors(own)
    soaked, begun = Soaked(records=records), time.perf_counter()
    with changing(own.store, server.port, own.token) as soaked.changes:
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
            soaked.log.append((soaked.seconds, _log_bytes(own.store) / MB))
    return soaked


def _log_bytes(store: Path) -> int:
    """The size of SQLite's log, which does not exist if no process has the store open."""
    log = store.with_name(f"{store.name}-wal")
    return log.stat().st_size if log.exists() else 0


def _turned(requests: Sequence[bytes], place: int) -> list[bytes]:
    """The requests, rotated to begin at `place`."""
    at = place % len(requests)
    return [*requests[at:], *requests[:at]]


#: The calls of one turn, in order. Half are searches.
KINDS = (
    *("search", "query_records", "search", "fetch", "common", "read_record_field"),
    *("search", "aggregate", "rest_search", "schema", "search", "rest_record"),
)
SEARCHES = sum(kind in ("search", "common", "rest_search") for kind in KINDS)


def calls(found: Corpus, queries: Queries) -> list[bytes]:
    """Good requests over all queries and some records; kinds and eras alternate."""
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
    """Requests that must be refused or answered with an error."""
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


def lines(soaked: Soaked) -> Iterator[tuple[str, str, str]]:
    """(what, measured, verdict) of a soak."""
    yield "time", f"{soaked.seconds:,.0f} s over {soaked.records:,} records", ""
    rate = (soaked.requests + soaked.errors) / max(soaked.seconds, 1)
    asked = f"{soaked.requests:,} good, {soaked.errors:,} bad; {rate:,.0f} a second"
    yield "requests, by 8 clients on the other core", asked, ""
    answered = ", ".join(
        f"{status}: {count:,}" for status, count in sorted(soaked.statuses.items())
    )
    yield "answers by status", answered, ""
    failed = "good requests not answered with 200, bad ones answered with 5xx"
    yield failed, f"{soaked.failed:,}", "missed" if soaked.failed else "held"
    yield "worst p99 of a batch of good requests", f"{soaked.worst_p99 * 1_000:.0f} ms", ""
    made = soaked.changes
    changed = f"{made.imports:,} imports of {made.rows:,} rows, the slowest {made.slowest:.1f} s"
    yield "changes to the store", f"{changed}; {made.grants:,} grants made and revoked", ""
    wrong = f"{len(made.wrong)}" + "".join(f"; {each}" for each in made.wrong[:3])
    yield "changes not seen by the next request", wrong, "missed" if made.wrong else "held"
    yield from _growths(soaked)


def _growths(soaked: Soaked) -> Iterator[tuple[str, str, str]]:
    watched = (
        ("RssAnon", soaked.memory, "MB", FLAT_MB, FLAT_SHARE),
        ("open files", soaked.files, "", FLAT_FILES, 0.0),
        ("SQLite's log", soaked.log, "MB", FLAT_LOG_MB, FLAT_SHARE),
    )
    for what, samples, unit, allowed, share in watched:
        last, most = _amount(samples[-1][1], unit), _amount(max(v for _, v in samples), unit)
        levels = f"{last} at the end, {most} at most"
        if soaked.seconds < JUDGED_SECONDS:
            yield what, f"{levels}; too short to judge its growth", ""
        else:
            found = growth(samples, allowed=allowed, share=share)
            hourly, total = _amount(found.hourly, unit, "+"), _amount(found.total, unit, "+")
            grown = f"its peaks grow by {hourly} an hour, {total} in total"
            yield what, f"{levels}; {grown}", "held" if found.flat else "missed"


def _amount(value: float, unit: str, sign: str = "") -> str:
    return f"{value:{sign},.1f} {unit}".rstrip()


def counts(soaked: Soaked) -> Iterator[tuple[str, int]]:
    """The counts of a soak that docs/figures.md shows."""
    yield "records", soaked.records
    yield "requests answered", soaked.requests + soaked.errors
    yield "imports", soaked.changes.imports
    yield "wrong statuses", soaked.failed
    yield "MB of memory at most", round(max(value for _, value in soaked.memory))
    if soaked.seconds >= JUDGED_SECONDS:
        found = growth(soaked.memory, allowed=FLAT_MB, share=FLAT_SHARE)
        yield "KB of growth an hour", round(found.hourly * 1_000)
    yield "open files at most", round(max(value for _, value in soaked.files))


def summary(soaked: Soaked) -> dict[str, Any]:
    """A soak as JSON: its date, machine, lines for the page, and all samples."""
    samples = {**asdict(soaked), "statuses": {f"{k}": n for k, n in soaked.statuses.items()}}
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": report.machine(),
        "lines": list(lines(soaked)),
        "samples": samples,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak")
    parser.add_argument("--seconds", type=float, default=HOUR)
    parser.add_argument("--records", type=int, default=FULL.large)
    asked = parser.parse_args()
    found, queries = open_corpus(asked.records), open_queries(min(asked.records, FULL.middle))
    core, client = two_cores()
    with (
        copied(found) as own,
        rung(own.store, core, cached=True, **SETTINGS) as server,
        pinned(client),
    ):
        soaked = soak(server, own, queries, asked.seconds, asked.records)
    kept = summary(soaked)
    (stores.HOME / "soak.json").write_bytes(orjson.dumps(kept))
    report.write()
    for line in kept["lines"]:
        print("  ".join(line).rstrip())
    for name, count in counts(soaked):
        print(f"count {name}={count}")
    return 1 if any(verdict == "missed" for _, _, verdict in kept["lines"]) else 0


if __name__ == "__main__":
    sys.exit(main())
