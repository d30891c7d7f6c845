"""Searches of 100,000 records, compared with the peers and the limit, and a repeated call."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from bench import figures
from bench.calls import MODERN, call, ids_of
from bench.findings import BUSIEST, Finding, Line, Note
from bench.load import Load, ask, drive, loaded
from bench.peers.environments import (
    CARRYING,
    FASTMCP,
    FASTMCP_CARRYING,
    HITS,
    KEEPING,
    OFFICIAL,
    OFFICIAL_CARRYING,
    PEERS,
    Peer,
)
from bench.peers.scripts import SCRIPTS, missing
from bench.plan import Plan
from bench.servers import Server, limit, peer, pinned, rung, two_cores
from bench.stores import open_corpus, open_queries

RUNG, LIMIT = "Rung", "limit endpoint"
CACHED = "Rung with its answer cache"
PLAIN = "Rung without its scorer"
CLIENTS = 8
CHECKED = 5  # one question in five is checked
TIES = 2  # hits in ten that may differ, because many records tie with the tenth
MS = 1_000
MB = 1_000_000

#: The rows of each kind of question, and the server each compares with.
ROWS = {
    "natural": {"natural-sdk": OFFICIAL.title, "natural-fastmcp": FASTMCP.title},
    "rare": {
        "rare-sdk": OFFICIAL.title,
        "rare-fastmcp": FASTMCP.title,
        "carried-sdk": OFFICIAL_CARRYING.title,
        "carried-fastmcp": FASTMCP_CARRYING.title,
    },
}

#: The rows of a server without the compiled scorer, compared with the official SDK.
PLAIN_ROWS = {"natural": "natural-plain", "rare": "rare-plain"}

Requests = Mapping[str, Sequence[bytes]]
Rounds = list[dict[str, Load]]  # the load of each server, by its name


def measure(plan: Plan) -> Iterator[Line]:
    """Starts all servers, and loads them in turn in each round."""
    found, queries = open_corpus(plan.middle), open_queries(plan.middle)
    core, client = two_cores()
    script_peers, lacking = scripts(plan)
    peers = (*PEERS, *script_peers, *CARRYING)
    requests = {
        kind: requests_for(found.token, asked, (*peers, KEEPING))
        for kind, asked in (("natural", queries.natural), ("rare", queries.rare))
    }
    # Natural questions are slow: in a load of fixed length, each server would get other ones.
    loads = {
        "natural": partial(drive, total=len(queries.natural), connections=CLIENTS),
        "rare": partial(loaded, seconds=plan.seconds, connections=CLIENTS),
    }
    with ExitStack() as stack:
        servers = {RUNG: stack.enter_context(rung(found.store, core))}
        servers[PLAIN] = stack.enter_context(rung(found.store, core, RUNG_COMPILED="off"))
        servers[LIMIT] = stack.enter_context(limit(found.plain, core))
        for each in peers:
            servers[each.title] = stack.enter_context(peer(each, found.plain, core))
        stack.enter_context(pinned(client))
        every = Rounds()
        for kind, asked in requests.items():
            yield from check_alike(servers, asked, peers, kind)
            rounds = in_turns(servers, asked, plan.rounds, loads[kind])
            yield from rate_rows(ROWS[kind], rounds)
            yield from rate_rows({PLAIN_ROWS[kind]: OFFICIAL.title}, rounds, ours=PLAIN)
            yield from described(rounds, f"{kind}, {CLIENTS} clients")
            every += rounds
        yield busiest(every)
        if lacking:
            yield Note("the TypeScript SDKs were not run", lacking)
        judged = {name: servers[name] for name in (RUNG, OFFICIAL.title, FASTMCP.title, LIMIT)}
        for clients in plan.more_clients:
            load = partial(drive, total=len(queries.natural), connections=clients)
            several = f"{clients} client" if clients == 1 else f"{clients} clients"
            for name, server in judged.items():  # in turn: some close idle connections
                try:
                    turns = in_turns({name: server}, requests["natural"], plan.rounds // 2, load)
                except RuntimeError as error:
                    yield Note(f"natural, {several}: {name}", f"not measured: {error}")
                else:
                    yield from described(turns, f"natural, {several}")
        kept = {KEEPING.title: stack.enter_context(peer(KEEPING, found.plain, core))}
        load = partial(drive, total=len(queries.natural) // CHECKED, connections=1)
        yield from described(in_turns(kept, requests["natural"], 1, load), "natural, 1 client")
        for name, server in servers.items():
            yield Note(f"RssAnon after these loads: {name}", f"{server.memory() / MB:.0f} MB")
        servers[CACHED] = stack.enter_context(rung(found.store, core, cached=True))
        yield from _repeated(plan, servers, requests["rare"])


def scripts(plan: Plan) -> tuple[Sequence[Peer], str]:
    """(the peers in TypeScript, why there are none)."""
    if not plan.scripts:
        return (), f"the {plan.name} run leaves them out"
    lacking = missing()
    return (() if lacking else SCRIPTS), lacking


def requests_for(token: str, queries: Sequence[str], peers: Sequence[Peer]) -> Requests:
    """The same searches for every server, each in the server's own form."""
    arguments = [{"query": query, "limit": HITS} for query in queries]
    ours = [call(token, "search", each, era=MODERN) for each in arguments]
    found = {RUNG: ours, CACHED: ours, PLAIN: ours}
    for each in peers:
        found[each.title] = ours if each.carrying else [each.request(query) for query in queries]
    found[LIMIT] = [call(None, "search", each, era=MODERN) for each in arguments]
    return found


def check_alike(
    servers: Mapping[str, Server], requests: Requests, peers: Sequence[Peer], kind: str
) -> Iterator[Note]:
    """Yields the sizes of answers. Raises `RuntimeError` if a peer finds other records.

    A peer that carries Rung's search must find what Rung finds, the others what the limit endpoint
    finds.
    """
    sizes = defaultdict[str, list[int]](list)

    def answer(name: str, place: int) -> bytes:
        body = ask(servers[name].port, requests[name][place])
        sizes[name].append(len(body))
        return body

    for place in range(0, len(requests[LIMIT]), CHECKED):
        ours, plain = (ids_of(answer(name, place)) for name in (RUNG, LIMIT))
        for each in peers:
            ids, expected = each.ids(answer(each.title, place)), ours if each.carrying else plain
            # Another record may replace one that ties with the tenth.
            others = len(set(ids) - set(expected))
            if len(ids) != len(expected) or others > TIES:
                raise RuntimeError(f"{each.title} finds other records: {ids} {expected}")
    for name, found in sizes.items():
        yield Note(f"{kind}, bytes of an answer: {name}", f"{statistics.mean(found):,.0f}")


def in_turns(
    servers: Mapping[str, Server],
    requests: Requests,
    rounds: int,
    load: Callable[[int, Sequence[bytes]], Load],
) -> Rounds:
    """Loads each server in turn, every second round backwards. Rounds start at other requests."""
    for name, server in servers.items():
        drive(server.port, requests[name], total=2 * CLIENTS, connections=CLIENTS)
    found = []
    for number in range(rounds):
        names = list(servers)[:: -1 if number % 2 else 1]
        first = number * len(requests[names[0]]) // rounds
        found.append(
            {
                name: load(servers[name].port, [*requests[name][first:], *requests[name][:first]])
                for name in names
            }
        )
    return found


def rate_rows(rows: Mapping[str, str], rounds: Rounds, ours: str = RUNG) -> Iterator[Finding]:
    """The ratios of requests per second, ours over theirs, of each round."""
    for key, theirs in rows.items():
        rates = ([each[name].rate for each in rounds] for name in (ours, theirs))
        yield Finding(key, figures.ratios(*rates))


def described(rounds: Rounds, kind: str) -> Iterator[Note]:
    """The figures of each server, medians over the rounds."""
    for name in sorted(rounds[0]):
        rate, p50, p95, p99 = (
            statistics.median(getattr(each[name], figure) for each in rounds)
            for figure in ("rate", "p50", "p95", "p99")
        )
        times = " / ".join(f"{seconds * MS:.2f}" for seconds in (p50, p95, p99))
        yield Note(f"{kind}: {name}", f"{rate:,.1f} requests/s; p50 / p95 / p99 {times} ms")


def busiest(rounds: Rounds) -> Note:
    """How close the load generator came to being the limit."""
    share = max(load.client_share for each in rounds for load in each.values())
    return Note(BUSIEST, f"{share:.0%}")


def _repeated(plan: Plan, servers: Mapping[str, Server], requests: Requests) -> Iterator[Line]:
    """Repeats one call, whose answer may be cached; then all calls, with the cache and without."""
    load = partial(loaded, seconds=plan.seconds, connections=CLIENTS)
    three = {name: servers[name] for name in (CACHED, RUNG, FASTMCP.title)}
    one = {name: [asked[len(asked) // 2]] for name, asked in requests.items()}
    rounds = in_turns(three, one, plan.rounds, load)
    yield from rate_rows({"repeat": FASTMCP.title}, rounds, ours=CACHED)
    yield from described(rounds, "one call repeated")
    two = {name: servers[name] for name in (CACHED, RUNG)}
    for name, server in two.items():  # once, to fill the cache
        drive(server.port, requests[name], total=len(requests[name]), connections=CLIENTS)
    rounds = in_turns(two, requests, max(1, plan.rounds // 2), load)
    kept, worked = (statistics.median(each[name].rate for each in rounds) for name in two)
    yield Note(
        f"the {len(requests[RUNG])} rare questions repeated, with the answer cache "
        "(never quoted as the speed of search)",
        f"{kept:,.0f} requests/s; {worked:,.0f} without it",
    )
