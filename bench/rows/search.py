"""Search at 100,000 records beside the peers and the limit, and an identical call repeated."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from bench import exact, figures
from bench.calls import MODERN, call, ids_of, result_of
from bench.findings import BUSIEST, Finding, Line, Note
from bench.load import Load, ask, drive, loaded
from bench.peers.environments import DATASETTE, FASTMCP, HITS, OFFICIAL, PEERS, QUICKER, Peer
from bench.peers.scripts import SCRIPTS, missing
from bench.plan import Plan
from bench.servers import Server, limit, peer, pinned, rung, two_cores
from bench.stores import Corpus, open_corpus, open_queries

RUNG, LIMIT = "Rung", "limit endpoint"
REMEMBERING = "Rung with its answer cache"
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
    beside, lacking = scripts(plan)
    peers = (*PEERS, QUICKER)
    requests = requests_for(found.token, queries, (*peers, *beside))
    with ExitStack() as stack:
        servers = {RUNG: stack.enter_context(rung(found.store, core))}
        for each in (*peers, *beside):
            servers[each.title] = stack.enter_context(peer(each, found.plain, core))
        servers[LIMIT] = stack.enter_context(limit(found.plain, core))
        stack.enter_context(pinned(client))
        yield from check_alike(servers, requests, (*peers, *beside))
        yield from _overlap(servers[RUNG], requests[RUNG], found, queries)
        yield from _rates(in_turns(servers, requests, plan.rounds, plan.seconds, CLIENTS))
        if lacking:
            yield Note("the TypeScript SDKs were not run", lacking)
        for clients in plan.beside:
            judged = {name: servers[name] for name in (RUNG, *(one.title for one in peers), LIMIT)}
            turns = in_turns(judged, requests, max(1, plan.rounds // 2), plan.seconds, clients)
            yield from told(turns, clients)
        for name, server in servers.items():
            yield Note(f"RssAnon after it: {name}", f"{server.memory() / MB:.0f} MB")
        servers[REMEMBERING] = stack.enter_context(rung(found.store, core, remembering=True))
        yield from _repeated(plan, servers, {**requests, REMEMBERING: requests[RUNG]})


def scripts(plan: Plan) -> tuple[Sequence[Peer], str]:
    """The peers in TypeScript, or why there are none."""
    if not plan.scripts:
        return (), f"the {plan.name} run leaves them out"
    lacking = missing()
    return (() if lacking else SCRIPTS), lacking


def requests_for(
    token: str, queries: Sequence[str], peers: Sequence[Peer] = PEERS
) -> dict[str, list[bytes]]:
    """The same searches for every server, in its own spelling."""
    arguments = [{"query": query, "limit": HITS} for query in queries]
    found = {RUNG: [call(token, "search", each, era=MODERN) for each in arguments]}
    found |= {each.title: [each.request(query) for query in queries] for each in peers}
    found[LIMIT] = [call(None, "search", each, era=MODERN) for each in arguments]
    return found


def check_alike(
    servers: Mapping[str, Server], requests: Requests, peers: Sequence[Peer]
) -> Iterator[Note]:
    """How large answers are; raises `RuntimeError` where a peer finds other records."""
    sizes: dict[str, list[int]] = {name: [] for name in servers}

    def answer(name: str, place: int) -> bytes:
        body = ask(servers[name].port, requests[name][place])
        sizes[name].append(len(body))
        return body

    for place in range(len(requests[LIMIT])):
        answer(RUNG, place)
        expected = set(ids_of(answer(LIMIT, place)))
        for each in peers:
            ids = set(each.ids(answer(each.title, place)))
            # What ties with the tenth may come instead of it.
            if len(ids) != len(expected) or len(ids - expected) > TIES:
                raise RuntimeError(f"{each.title} finds other records: {ids ^ expected}")
    for name, found in sizes.items():
        yield Note(f"bytes of an answer: {name}", f"{statistics.mean(found):,.0f}")


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


def rate_rows(key: str, rounds: Rounds, theirs: str, ours: str = RUNG) -> Finding:
    """The ratio of requests a second, ours over theirs, of each round."""
    return Finding(
        key, figures.ratios(*([each[name].rate for each in rounds] for name in (ours, theirs)))
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
            f"{name}, {clients} {'client' if clients == 1 else 'clients'}",
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
    yield Note(BUSIEST, f"{busiest:.0%}")


def _repeated(plan: Plan, servers: Mapping[str, Server], requests: Requests) -> Iterator[Line]:
    """One call again and again, for which answers may be kept; then what that does to the mix."""
    three = {name: servers[name] for name in (REMEMBERING, RUNG, FASTMCP.title)}
    one = {name: [asked[len(asked) // 2]] for name, asked in requests.items()}
    rounds = in_turns(three, one, plan.rounds, plan.seconds, CLIENTS)
    yield rate_rows("repeat", rounds, FASTMCP.title, ours=REMEMBERING)
    for note in told(rounds, CLIENTS):
        yield Note(f"one call repeated: {note.what}", note.measured)
    two = {name: servers[name] for name in (REMEMBERING, RUNG)}
    for name, server in two.items():  # once, so that whatever is kept is there
        drive(server.port, requests[name], total=len(requests[name]), connections=CLIENTS)
    rounds = in_turns(two, requests, max(1, plan.rounds // 2), plan.seconds, CLIENTS)
    kept, worked = (statistics.median(each[name].rate for each in rounds) for name in two)
    yield Note(
        f"the {len(requests[RUNG])} mixed queries again and again, with the answer cache "
        "(never quoted as the speed of search)",
        f"{kept:,.0f} requests/s; {worked:,.0f} without it",
    )


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
        len(shown["evidence_preview"].encode())
        + sum(len(part["preview_text"].encode()) for part in shown["evidence"][1:])
        for answer in answers
        for shown in result_of(answer)["structuredContent"]["content_ladder"]["records"]
        if "evidence" in shown
    ]
    hits = sum(len(ids_of(answer)) for answer in answers)
    yield Note("evidence a hit, in one channel", f"{sum(evidence) / max(1, hits):.0f} bytes")
