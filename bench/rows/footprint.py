"""Memory of a worker after mixed load over a million records, compared with fastmcp's."""

from collections.abc import Iterator

from bench import soak
from bench.findings import Finding, Line, Note
from bench.load import drive
from bench.peers.environments import FASTMCP
from bench.plan import Plan
from bench.servers import peer, pinned, rung, two_cores
from bench.stores import open_corpus, open_queries

MOST = 2_000  # searches of fastmcp: its memory is stable long before, and common words are slow


def measure(plan: Plan) -> Iterator[Line]:
    found, queries = open_corpus(plan.large), open_queries(plan.middle)
    core, client = two_cores()
    with (
        soak.copied(found) as own,
        rung(own.store, core, cached=True, **soak.SETTINGS) as server,
        pinned(client),
    ):
        soaked = soak.soak(server, own, queries, plan.soak_seconds, plan.large)
        ours = server.memory() / soak.MB
    asked = [FASTMCP.request(query) for query in (*queries.rare, *queries.common)]
    with peer(FASTMCP, found.plain, core) as server, pinned(client):
        drive(server.port, asked, total=min(soaked.searches, MOST), connections=soak.CLIENTS)
        theirs = server.memory() / soak.MB
    yield Finding("rss", (ours / theirs,))
    yield Note("RssAnon: Rung, fastmcp", f"{ours:.0f}, {theirs:.0f} MB")
    for what, measured, _ in soak.lines(soaked):
        yield Note(f"soak: {what}", measured)
