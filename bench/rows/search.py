"""Search at 100,000 records beside the peers and the limit, and an identical call repeated."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from bench import exact, figures
from bench.calls import MODERN, call, ids_of, result_of
from bench.findings import Finding, Line, Note
from bench.load import Load, ask, drive, loaded
from bench.peers.environments import DATASETTE, FASTMCP, HITS, OFFICIAL, PEERS, QUICKER, Peer
from bench.plan import Plan
from bench.servers import Server, limit, peer, pinned, rung, two_cores
from bench.stores import Corpus, open_corpus, open_queries

RUNG, LIMIT = "Rung", "limit endpoint"
CLIENTS = 8
TIES = 2  # of ten hits, where many records are as good as the tenth
MS = 1_000
MB = 1_000_000

Requests = Mapping[str, Sequence[bytes]]
Rounds = list[dict[str, Load]]


def measure(plan: Plan) -> Iterator[Line]:
    """Every server is up at once; rounds go through them in turns."""
    found, queries = open_corpus(plan.middle), open_queries(plan.middle).mix
    core, client = two_cores()
    requests = requests_for(found.token, queries, (*PEERS, QUICKER))
    with ExitStack() as stack:
        servers = {RUNG: stack.enter_context(rung(found.store, core))}
        for each in (*PEERS, QUICKER):
            servers[each.title] = stack.enter_context(peer(each, found.plain, core))
        servers[LIMIT] = stack.enter_context(limit(found.plain, core))
        stack.enter_context(pinned(client))
        check_alike(servers, requests)
        yield from _bytes(servers, requests)
        yield from _overlap(servers[RUNG], requests[RUNG], found, queries)
        rounds = in_turns(servers, requests, plan.rounds, plan.seconds, CLIENTS)
        yield from _rates(rounds)
        for clients in plan.beside:
            turns = in_turns(servers, requests, max(1, plan.rounds // 2), plan.seconds, clients)
            yield from told(turns, clients)
        for name, server in servers.items():
            yield Note(f"RssAnon after it: {name}", f"{server.memory() / MB:.0f} MB")
        repeated = {name: [asked[len(asked) // 2]] for name, asked in requests.items()}
        yield from _repeated(
            in_turns(servers, repeated, plan.rounds, plan.seconds, CLIENTS),
        )


def requests_for(
    token: str, queries: Sequence[str], peers: Sequence[Peer] = PEERS
) -> dict[str, list[bytes]]:
    """The same searches for every server, in its own spelling."""
    arguments = [{"query": query, "limit": HITS} for query in queries]
    found = {RUNG: [call(token, "search", each, era=MODERN) for each in arguments]}
    found |= {each.title: [each.request(query) for query in queries] for each in peers}
    found[LIMIT] = [call(None, "search", each, era=MODERN) for each in arguments]
    return found


def check_alike(servers: Mapping[str, Server], requests: Requests) -> None:
    """Every peer must find the same records; raises `RuntimeError` where one does not."""
    for place, request in enumerate(requests[LIMIT]):
        expected = set(ids_of(ask(servers[LIMIT].port, request)))
        for each in (*PEERS, QUICKER):
            ids = set(each.ids(ask(servers[each.title].port, requests[each.title][place])))
            # What ties with the tenth may come instead of it.
            if len(ids) != len(expected) or len(ids - expected) > TIES:
                raise RuntimeError(f"{each.title} finds other records: {ids ^ expected}")


def in_turns(
    servers: Mapping[str, Server],
    requests: Requests,
    rounds: int,
    seconds: float,
    clients: int,
) -> Rounds:
    """A load on each server, one after the other, again and again; every second round backwards."""
    for name, server in servers.items():
        drive(server.port, requests[name], total=2 * CLIENTS, connections=CLIENTS)
    found = []
    for number in range(rounds):
        names = list(servers)[:: -1 if number % 2 else 1]
        found.append(
            {
                name: loaded(
                    servers[name].port, requests[name], seconds=seconds, connections=clients
                )
                for name in names
            }
        )
    return found


def rate_rows(key: str, rounds: Rounds, theirs: str) -> Finding:
    """The ratio of requests a second, ours over theirs, of each round."""
    return Finding(
        key, figures.ratios(*([each[name].rate for each in rounds] for name in (RUNG, theirs)))
    )


def told(rounds: Rounds, clients: int) -> Iterator[Note]:
    """The figures of each server, medians over the rounds."""
    for name in sorted(rounds[0]):
        rate, p50, p95, p99, busy = (
            statistics.median(getattr(each[name], figure) for each in rounds)
            for figure in ("rate", "p50", "p95", "p99", "client_share")
        )
        times = " / ".join(f"{seconds * MS:.2f}" for seconds in (p50, p95, p99))
        yield Note(
            f"{name}, {clients} clients",
            f"{rate:,.0f} requests/s; p50 / p95 / p99 {times} ms; client's core {busy:.0%}",
        )


def _rates(rounds: Rounds) -> Iterator[Line]:
    titles = {"sdk": OFFICIAL.title, "fastmcp": FASTMCP.title}
    titles |= {"datasette": DATASETTE.title, "limit": LIMIT}
    for key, theirs in titles.items():
        yield rate_rows(key, rounds, theirs)
    slowest = ([each[name].p99 for each in rounds] for name in (RUNG, FASTMCP.title))
    yield Finding("p99", figures.ratios(*slowest))
    yield from told(rounds, CLIENTS)
    busiest = max(load.client_share for each in rounds for load in each.values())
    yield Note("the client's core was busy at most", f"{busiest:.0%}")


def _repeated(rounds: Rounds) -> Iterator[Line]:
    yield rate_rows("repeat", rounds, FASTMCP.title)
    for note in told(rounds, CLIENTS):
        if note.what.startswith((RUNG, FASTMCP.title)):
            yield Note(f"repeated: {note.what}", note.measured)


def _overlap(
    server: Server, requests: Sequence[bytes], found: Corpus, queries: Sequence[str]
) -> Iterator[Line]:
    answers = [ask(server.port, request) for request in requests]
    truths = exact.best(found.exact, queries, HITS)
    shares = [
        figures.overlap(ids_of(answer), truth.ids, ties=truth.ties)
        for answer, truth in zip(answers, truths, strict=True)
    ]
    yield Finding("overlap", (statistics.mean(shares),))
    evidence = [
        len(part["preview_text"].encode())
        for answer in answers
        for card in result_of(answer)["structuredContent"]["content_ladder"]["records"]
        for part in card.get("evidence", ())
    ]
    hits = sum(len(ids_of(answer)) for answer in answers)
    yield Note("evidence a hit, in one channel", f"{sum(evidence) / max(1, hits):.0f} bytes")


def _bytes(servers: Mapping[str, Server], requests: Requests) -> Iterator[Note]:
    for name, server in servers.items():
        sizes = [len(ask(server.port, request)) for request in requests[name]]
        yield Note(f"bytes of an answer: {name}", f"{statistics.mean(sizes):,.0f}")
