"""The cost of a record and of each kind of request on PostgreSQL, and what a large load would need.

    python -m bench.scale postgresql://user@host [RECORDS]

Copies the corpus of `bench.stores` into a new database of that server with `rung store copy` and
sends the same requests to the file and to the database. Prints the unit costs of docs/scale.md, the
figures under "What differs" in docs/postgres.md, and what the planned load needs. docs/scale.md
also covers the costs that do not grow in proportion.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from bench import corpus, stores
from bench.rows.imports import import_command, run
from bench.servers import memory_of
from evidence.handles import parse
from evidence.records import RecordPage
from service import bootstrap, settings
from service.ports import AggregateQuery, RecordQuery, ResourceServer, SearchQuery, WindowRequest

RECORDS, QUESTIONS, IMPORTED = 100_000, 60, 20_000
FAR_PAGE, WINDOW_CHARS = 400, 4_096
#: How often each other request is repeated, and the characters of the huge field.
REPEATED, HUGE_CHARS = 10, 100_000_000
#: The planned load: records, requests a second, and the share of each kind of request.
PLANNED_RECORDS, PLANNED_REQUESTS = 1_000_000_000, 10_000
MIX = {"question in one connection": 0.6, "list": 0.4}
UNLIMITED = {"RUNG_RATE_LIMIT_TOKEN": "off"}
_BARE = """
SELECT date_trunc('month', to_timestamp(at / 1e6)), count(*) FROM record
WHERE NOT deleted AND stream IN (SELECT id FROM stream WHERE name = %s) GROUP BY 1
"""
_SIZES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of one kind of request: median, 95th percentile, our own CPU, first median."""

    p50: float
    p95: float
    own: float
    first: float


def main(server: str, records: int = RECORDS) -> None:
    files, deep = stores.open_corpus(records), stores.open_deep(HUGE_CHARS)
    questions = stores.open_queries(records).mix[:QUESTIONS]
    database, huge = (f"{server.rstrip('/')}/rung_scale_{name}" for name in (records, "deep"))
    seconds = copied(files.store, server, database)
    print(f"copied {records / seconds:,.0f} records a second")
    copied(deep.store, server, huge)
    each = sizes(database, records)
    print(f"{sum(each.values()):,.0f} bytes a record: {each}")
    places = {"file": (files.store, deep.store), "database": (database, huge)}
    found = {}
    for engine, (records_at, deep_at) in places.items():
        with ProcessPoolExecutor(1, get_context("spawn")) as worker:
            asking = worker.submit(asked, str(records_at), files.tokens, questions)
            found[engine] = asking.result()
            reading = (deep.huge_id, deep.small_id)
            found[engine] |= worker.submit(windows, str(deep_at), deep.token, *reading).result()
            print(f"{engine}: RssAnon {worker.submit(anonymous).result() / 1_000:.0f} MB")
    found["bare SQL"] = {"count by month": cost([partial(bare, database)] * REPEATED)}
    for kind, costs in found["database"].items():
        print(kind, {engine: each[kind] for engine, each in found.items() if kind in each}, costs)
    for place in (Path("var/bench/scale.db"), f"{server.rstrip('/')}/rung_scale_import"):
        print(f"imported {IMPORTED / imported(place, server):,.0f} records a second: {place}")
    needs(sum(each.values()), found["database"])


def copied(store: Path, server: str, database: str) -> float:
    """Copies a store into a new database with `rung store copy`; returns the seconds it took."""
    create(server, database)
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "service", "store", "copy", str(store), database], check=True
    )
    return time.monotonic() - began


def create(server: str, database: str) -> None:
    """Creates an empty database; drops an existing one of that name."""
    name = database.rpartition("/")[2]
    with psycopg.connect(f"{server.rstrip('/')}/postgres", autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        db.execute(f"CREATE DATABASE {name}".encode())


def imported(place: Path | str, server: str) -> float:
    """Imports the first rows of the corpus into a new store; returns the seconds it took."""
    if isinstance(place, Path):
        for old in place.parent.glob(f"{place.name}*"):
            old.unlink()
    else:
        create(server, place)
    with TemporaryDirectory() as folder:
        return run(import_command(stores.open_rows(IMPORTED), place, Path(folder))).seconds


def anonymous() -> int:
    """KB of anonymous memory of this process."""
    return memory_of(os.getpid(), "RssAnon") // 1_000


def bare(database: str) -> None:
    """Counts by month with one SQL statement."""
    with psycopg.connect(database) as db:
        db.execute(_BARE, (corpus.STREAMS[0],)).fetchall()


def sizes(database: str, records: int) -> dict[str, int]:
    """Bytes on disk of each table with its indexes, per record."""
    with psycopg.connect(database) as db:
        return {name: round(size / records) for name, size in db.execute(_SIZES) if size > records}


def asked(place: str, tokens: dict[int, str], questions: Sequence[str]) -> dict[str, Cost]:
    """The cost of each kind of request to one store, one request at a time."""
    services = bootstrap.build(settings.load({**os.environ, **UNLIMITED, "RUNG_STORE": place}))

    def source(connections: int) -> ResourceServer:
        return services.open_session(tokens[connections]).rs

    everything, stream = max(tokens), corpus.STREAMS[0]

    def searches(connections: int) -> list[Callable[[], object]]:
        return [lambda q=q: source(connections).search(SearchQuery(q)) for q in questions]

    def page(cursor: str | None) -> RecordPage:
        return source(everything).records(RecordQuery(stream, cursor=cursor)).value

    cursor = None
    for _ in range(FAR_PAGE - 1):
        cursor = page(cursor).next_cursor
    months = AggregateQuery(stream, "count", group_by_time="sent_at", granularity="month")
    return {
        "question over everything": cost(searches(everything)),
        "question in one connection": cost(searches(1)),
        "list": cost([lambda: source(1).records(RecordQuery(stream, limit=20))] * REPEATED),
        "page 1": cost([lambda: page(None)] * REPEATED),
        f"page {FAR_PAGE}": cost([lambda: page(cursor)] * REPEATED),
        "count by month": cost([lambda: source(everything).aggregate(months)] * REPEATED),
    }


def windows(place: str, token: str, huge: str, small: str) -> dict[str, Cost]:
    """The cost of a window of a huge field and of a small one."""
    services = bootstrap.build(settings.load({**os.environ, **UNLIMITED, "RUNG_STORE": place}))

    def read(id: str, offset: int) -> object:
        window = WindowRequest(offset_chars=offset, limit_chars=WINDOW_CHARS)
        return services.open_session(token).rs.field_window(parse(id), "text", window)

    return {
        "window of a huge field": cost([lambda: read(huge, HUGE_CHARS // 2)] * REPEATED),
        "window of a field of 8 KB": cost([lambda: read(small, 0)] * REPEATED),
    }


def cost(calls: Sequence[Callable[[], object]]) -> Cost:
    """The cost of these calls: each counts with the fastest of three rounds."""
    rounds = [[timed(call) for call in calls] for _ in range(3)]
    best = [min(times) for times in zip(*rounds)]
    walls = sorted(wall for wall, _ in best)
    own = sum(cpu for _, cpu in best) / len(best)
    p50, p95 = walls[len(walls) // 2], walls[len(walls) * 19 // 20]
    first = sorted(wall for wall, _ in rounds[0])[len(calls) // 2]
    return Cost(round(p50, 2), round(p95, 2), round(own, 2), round(first, 2))


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Runs a call; returns (milliseconds, milliseconds of our own CPU)."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - wall) * 1_000, (time.process_time() - cpu) * 1_000


def needs(bytes_each: float, costs: dict[str, Cost]) -> None:
    """Prints the storage and the cores that the planned load needs."""
    terabytes = bytes_each * PLANNED_RECORDS / 1e12
    own = sum(costs[kind].own * share for kind, share in MIX.items())
    whole = sum(costs[kind].p50 * share for kind, share in MIX.items())
    print(f"{PLANNED_RECORDS:,} records: {terabytes:.1f} TB")
    print(
        f"{PLANNED_REQUESTS:,} requests a second: {PLANNED_REQUESTS * own / 1_000:.0f} cores of web"
    )
    print(f"  and {PLANNED_REQUESTS * max(whole - own, 0) / 1_000:.0f} of databases")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
