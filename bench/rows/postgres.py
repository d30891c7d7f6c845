"""The same store on PostgreSQL: a question right after a commit, and later ones."""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bench import corpus
from bench.findings import Finding, Line, Note
from bench.load import drive
from bench.plan import Plan
from bench.rows.search import MS, RUNG, requests_for
from bench.servers import pinned, rung, two_cores
from bench.stores import EMITTED_AT, data_of, open_corpus, open_queries
from service.place import Database
from service.records import copying
from service.records.intake import Row
from service.records.opening import open_writer
from service.records.writing import Writing
from service.records.writing.ingest import Batch
from service.records.writing.streams import open_stream
from tests.postgres.server import found

NAME = "rung_bench"


def measure(plan: Plan) -> Iterator[Line]:
    """Copies the store, then asks each question after a commit, and again without one."""
    source, queries = open_corpus(plan.middle), open_queries(plan.middle)
    core, client = two_cores()
    requests = requests_for(source.token, queries.natural[: plan.asks // 3], ())[RUNG]
    with ExitStack() as stack:
        database = stack.enter_context(_database())
        copying.copy(source.store, database, lambda step: None)
        server = stack.enter_context(rung(database, core))
        commits = _commits(stack.enter_context(open_writer(database)))
        stack.enter_context(pinned(client))
        drive(server.port, requests, total=len(requests), connections=1)
        for key, before in (("postgres-first", commits.__next__), ("postgres-later", _nothing)):
            rounds = list[float]()
            for _ in range(plan.rounds):
                seconds = list[float]()
                for request in requests:
                    before()
                    seconds.append(drive(server.port, [request], total=1, connections=1).p50)
                rounds.append(statistics.median(seconds) * MS)
            yield Finding(key, tuple(rounds))
        yield Note("over PostgreSQL", f"{len(requests)} natural questions in each round")


@contextmanager
def _database() -> Iterator[Database]:
    """A new database, of a server of our own if none runs here."""
    try:
        with found() as server, psycopg.connect(server, autocommit=True) as db:
            db.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
            db.execute(f"CREATE DATABASE {NAME} TEMPLATE template0")
            try:
                yield Database(urlunsplit(urlsplit(server)._replace(path=f"/{NAME}")))
            finally:
                db.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
    except SystemExit as stopped:  # the other groups can still be measured
        raise RuntimeError(stopped.code) from None


def _commits(writer: Writing) -> Iterator[None]:
    """Adds a record to one of the connections each time, and commits."""
    for number, record in enumerate(corpus.records(1_000)):
        batch = Batch(writer)
        stream = open_stream(writer, f"source-{record.connection}", record.stream)
        batch.add(stream, Row(data_of(record), f"new-{number}", EMITTED_AT))
        batch.flush()
        yield


def _nothing() -> None:
    """Leaves the store as it is."""
