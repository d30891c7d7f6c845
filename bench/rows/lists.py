"""One stream of a million records: late pages by cursor, and counts by month."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench import corpus, figures
from bench.calls import MODERN, call, result_of
from bench.findings import Finding, Line, Note
from bench.load import ask, drive
from bench.plan import Plan
from bench.rows.imports import CONNECTION, STREAM, Imported, open_imported
from bench.servers import Server, pinned, rung, two_cores
from bench.stores import kept, seeded

PAGE_ITEMS = 25
MONTHS = 100  # more than there are
COUNTS = 5  # per round
MS = 1_000

BARE = (
    "SELECT substr(sent_at, 1, 7) AS month, count(*) FROM event "
    "WHERE source IN (SELECT value FROM json_each(?)) AND stream = ? GROUP BY month"
)


def measure(plan: Plan) -> Iterator[Line]:
    found = open_imported(plan.large)
    core, client = two_cores()
    with rung(found.store, core) as server, pinned(client):
        yield from _paging(plan, server, found)
        yield from _months(plan, server, found)


def _paging(plan: Plan, server: Server, found: Imported) -> Iterator[Line]:
    def page(cursor: str | None) -> bytes:
        arguments = {"stream": STREAM, "limit": PAGE_ITEMS}
        arguments |= {} if cursor is None else {"cursor": cursor}
        return call(found.token, "query_records", arguments, era=MODERN)

    first = far = page(None)
    for _ in range(plan.page - 1):
        data = result_of(ask(server.port, far))["structuredContent"]["data"]
        far = page(data["next_cursor"])
    for request in (first, far):
        data = result_of(ask(server.port, request))["structuredContent"]["data"]
        if len(data["data"]) != PAGE_ITEMS:
            raise RuntimeError(f"a page of {len(data['data'])} records")
    rounds = [
        tuple(
            drive(server.port, [each], total=plan.asks, connections=1).p50 for each in (far, first)
        )
        for _ in range(plan.rounds)
    ]
    yield Finding("paging", figures.ratios(*zip(*rounds)))
    yield Note(f"page {plan.page}: p50", f"{min(each for each, _ in rounds) * MS:.2f} ms")


def _months(plan: Plan, server: Server, found: Imported) -> Iterator[Line]:
    """Counts over HTTP and with bare SQL, in turn. Raises `RuntimeError` if they differ."""
    grouped = {"group_by_time": "sent_at", "granularity": "month", "limit": MONTHS}
    arguments = {"stream": STREAM, "metric": "count", **grouped}
    request = call(found.token, "aggregate", arguments, era=MODERN)
    with closing(sqlite3.connect(open_events(plan.large))) as db:

        def bare() -> tuple[list[tuple[str, int]], float]:
            begun = time.perf_counter()
            rows = db.execute(BARE, (f'["{CONNECTION}"]', STREAM)).fetchall()
            return rows, time.perf_counter() - begun

        groups = result_of(ask(server.port, request))["structuredContent"]["data"]["groups"]
        if [(group["key"][:7], group["count"]) for group in groups] != bare()[0]:
            raise RuntimeError("the counts by month differ")
        rounds = []
        for _ in range(plan.rounds):
            theirs = figures.percentiles([bare()[1] for _ in range(COUNTS)])[0]
            ours = drive(server.port, [request], total=COUNTS, connections=1).p50
            rounds.append((ours, theirs))
    yield Finding("aggregate", figures.ratios(*zip(*rounds)))
    best = (min(seconds) * MS for seconds in zip(*rounds))
    yield Note("count by month: Rung, bare GROUP BY", "{:.0f}, {:.0f} ms".format(*best))


def open_events(count: int) -> Path:
    """The times of the corpus in a table with the index that such a count needs."""

    def build(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "events.db")) as db:
            db.execute("CREATE TABLE event (source TEXT, stream TEXT, sent_at TEXT)")
            rows = ((CONNECTION, STREAM, record.sent_at) for record in corpus.records(count))
            db.executemany("INSERT INTO event VALUES (?, ?, ?)", rows)
            db.execute("CREATE INDEX event_time ON event (source, stream, sent_at)")
            db.execute("ANALYZE")
            db.commit()

    return kept(f"events-{count}", seeded(), build) / "events.db"
