"""What one record and one question cost on PostgreSQL, and what many of both would need.

    python -m bench.scale postgresql://user@host [RECORDS]

Copies the corpus of `bench.stores` into a new database of that server with `rung store copy`, asks
the same questions of the file and of the database, and prints the unit costs of docs/scale.md and
what they add up to. What does not grow in proportion is on that page.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import corpus, stores
from service import bootstrap, settings
from service.operations.base import Session
from service.place import Place, read, spelled
from service.ports import RecordQuery, SearchQuery

RECORDS, QUESTIONS = 100_000, 60
#: What is planned for: records, requests a second, and which share of them is of what.
PLANNED_RECORDS, PLANNED_REQUESTS = 1_000_000_000, 10_000
MIX = {"search in one connection": 0.6, "list": 0.4}
_SIZES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of one kind of request: median, 95th percentile, and our own CPU."""

    p50: float
    p95: float
    own: float


def main(server: str, records: int = RECORDS) -> None:
    files = stores.open_corpus(records)
    questions = stores.open_queries(records).natural[:QUESTIONS]
    database = f"{server.rstrip('/')}/rung_scale_{records}"
    seconds = copied(files.store, server, database)
    print(f"copied {records / seconds:,.0f} records a second")
    each = sizes(database, records)
    print(f"{sum(each.values()):,.0f} bytes a record: {each}")
    found = {
        engine: asked(place, files.tokens, questions)
        for engine, place in (("file", read(str(files.store))), ("database", read(database)))
    }
    for kind, cost in found["database"].items():
        print(kind, "file", found["file"][kind], "database", cost)
    needs(sum(each.values()), found["database"])


def copied(store: Path, server: str, database: str) -> float:
    """Seconds that `rung store copy` into a new database takes."""
    name = database.rpartition("/")[2]
    with psycopg.connect(f"{server.rstrip('/')}/postgres", autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        db.execute(f"CREATE DATABASE {name}".encode())
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "service", "store", "copy", str(store), database], check=True
    )
    return time.monotonic() - began


def sizes(database: str, records: int) -> dict[str, int]:
    """Bytes on the disk of each table with its indexes, for one record."""
    with psycopg.connect(database) as db:
        return {name: round(size / records) for name, size in db.execute(_SIZES) if size > records}


def asked(place: Place, tokens: dict[int, str], questions: Sequence[str]) -> dict[str, Cost]:
    """The cost of each kind of request at one store, asked one after the other."""
    services = bootstrap.build(settings.load({**os.environ, "RUNG_STORE": spelled(place)}))

    def session(connections: int) -> Session:
        return services.open_session(tokens[connections])

    def searches(connections: int) -> list[Callable[[], object]]:
        return [
            lambda q=q: session(connections).rs.search(SearchQuery(q))  # type: ignore[misc]
            for q in questions
        ]

    lists = [
        lambda: session(1).rs.records(RecordQuery(corpus.STREAMS[0], limit=20)) for _ in questions
    ]
    return {
        "search over everything": cost(searches(max(tokens))),
        "search in one connection": cost(searches(1)),
        "list": cost(lists),
    }


def cost(calls: Sequence[Callable[[], object]]) -> Cost:
    """Of three rounds, the cost of each call in its best."""
    rounds = [[timed(call) for call in calls] for _ in range(3)]
    best = [min(times) for times in zip(*rounds)]
    walls = sorted(wall for wall, _ in best)
    own = sum(cpu for _, cpu in best) / len(best)
    p50, p95 = walls[len(walls) // 2], walls[len(walls) * 19 // 20]
    return Cost(round(p50, 2), round(p95, 2), round(own, 2))


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """(milliseconds, those of our own CPU)."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - wall) * 1_000, (time.process_time() - cpu) * 1_000


def needs(bytes_each: float, costs: dict[str, Cost]) -> None:
    """Prints what the planned load needs."""
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
