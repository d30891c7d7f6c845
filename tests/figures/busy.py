"""`python -m tests.figures.busy`: costly calls and batches beside a client that searches.

One worker of two threads serves 100,000 records. For each kind of costly call, one hostile grant
with 8 connections sends it for 60 seconds, and then four such grants together. Meanwhile a victim
with a grant of its own searches. Its times are compared with those that it has alone: the 95th
percentile may be 3 times as long and the longest 2 seconds with one grant, 10 times and 6 seconds
with four. The exit status is 1 if they are longer. Run it on a machine that does nothing else:
the load when it began is printed.
"""

import argparse
import os
import string
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import quantiles
from threading import Event
from time import perf_counter
from typing import Any

import orjson

from bench import corpus, stores
from service.records.sqlite.writer import open_writer
from tests.helpers.api import Api
from tests.helpers.operated import operated
from tests.helpers.posting import JSON, legacy_body

CONNECTIONS = 8
#: Between an answer to the victim and its next request.
PAUSE_SECONDS = 0.1
BATCH_MESSAGES = 20
TOO_MANY = 50
RECORDS, SECONDS, IDLE_SECONDS = 100_000, 60.0, 12.0
LETTERS = string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class Bound:
    """What the victim may wait beside some hostile grants."""

    grants: int
    times: float
    longest: float


BOUNDS = (Bound(1, 3.0, 2.0), Bound(4, 10.0, 6.0))


def costly(random: Random) -> dict[str, tuple[str, dict[str, Any]]]:
    """Calls that take long, by name; words that do not exist are new in each."""

    def unknown(length: int) -> str:
        return "".join(random.choices(LETTERS, k=length))

    prefixes = " ".join(f"{letter}*" for letter in LETTERS)
    common = {"limit": 100, "count": "exact"}
    return {
        "prefixes": ("search", {"query": prefixes}),
        "a prefix": ("search", {"query": f"{random.choice(LETTERS)}*", "limit": 100}),
        "unknown words": ("search", {"query": " ".join(unknown(8) for _ in range(40))}),
        "long unknown words": ("search", {"query": " ".join(unknown(40) for _ in range(12))}),
        "letters": ("search", {"query": " ".join(LETTERS), "words": "all", "limit": 100}),
        "records": ("query_records", {"stream": "messages", **common}),
    }


def body(kind: str, random: Random) -> bytes:
    """The body of a request of this kind."""
    name, _, messages = kind.partition(" x ")
    tool, arguments = costly(random)[name]
    parts = [
        legacy_body("tools/call", {"name": tool, "arguments": arguments}, id=number)
        for number in range(int(messages or 1))
    ]
    return orjson.dumps(parts if messages else parts[0])


KINDS = (
    *costly(Random(0)),
    *(f"{kind} x {BATCH_MESSAGES}" for kind in ("prefixes", "a prefix", "unknown words")),
    f"prefixes x {TOO_MANY}",
)
SHORT = ("prefixes", "unknown words x 20")


@dataclass(slots=True)
class Measured:
    """Seconds of the searches of the victim, and the statuses of the hostile requests."""

    seconds: list[float]
    statuses: Counter[int]

    @property
    def p95(self) -> float:
        return quantiles(self.seconds, n=20)[-1]


def search(victim: Api, seconds: float, questions: Iterator[str]) -> list[float]:
    """Seconds of each search, one after the other with a pause between them."""
    took, pause, end = list[float](), Event(), perf_counter() + seconds
    while perf_counter() < end:
        began = perf_counter()
        answer = victim.rest("/v1/search", q=next(questions))
        took.append(perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"the victim got {answer.status}: {answer.body}")
        pause.wait(PAUSE_SECONDS)
    return took


def send(url: str, token: str, kind: str, ready: Any, done: Any, statuses: Any) -> None:
    """Sends calls of a kind over 8 connections until `done` is set; in a process of its own."""
    answered = Counter[int]()

    def keep_on(number: int) -> None:
        random, api = Random(f"{token} {number}"), Api(url, token)
        while not done.is_set():
            answered[api.send("POST", "/mcp", body(kind, random), JSON).status] += 1

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for number in range(CONNECTIONS):
            pool.submit(keep_on, number)
        ready.wait()
    statuses.put(answered)


def beside(
    url: str, kind: str, hostile: list[str], victim: str, seconds: float, questions: Iterator[str]
) -> Measured:
    """The searches of the victim while the hostile grants send calls of a kind."""
    processes = get_context("spawn")
    ready, done = processes.Barrier(len(hostile) + 1, timeout=60), processes.Event()
    statuses = processes.SimpleQueue()
    senders = [
        processes.Process(target=send, args=(url, token, kind, ready, done, statuses))
        for token in hostile
    ]
    for sender in senders:
        sender.start()
    ready.wait()
    try:
        took = search(Api(url, victim), seconds, questions)
    finally:
        done.set()
    answered = sum((statuses.get() for _ in senders), Counter[int]())
    for sender in senders:
        sender.join()
    return Measured(took, answered)


@contextmanager
def server(store: Path) -> Iterator[str]:
    """The URL of a new server with production settings."""
    env = {"RUNG_STORE": str(store.absolute()), "RUNG_RATE_LIMIT_TOKEN": "60000/minute"}
    with operated(env, workers=1, threads=2) as found:
        yield found.url


def main() -> int:
    """Measures and prints each kind; returns 1 if the victim waited too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--unbounded", action="store_true", help="only show that it works")
    asked = parser.parse_args()
    store = stores.open_corpus(asked.records).store
    questions = cycle(stores.open_queries(asked.records).mix)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    names = [f"source-{number}" for number in range(corpus.CONNECTIONS)]
    with open_writer(store) as writer:
        victim, *hostile = (stores.grant(writer, names) for _ in range(5))
    broken, worst = 0, Counter[str]()
    for bound in BOUNDS:
        for kind in asked.kinds:
            with server(store) as url:
                search(Api(url, victim), 2.0, questions)  # warms up
                idle = Measured(search(Api(url, victim), IDLE_SECONDS, questions), Counter())
                found = beside(url, kind, hostile[: bound.grants], victim, asked.seconds, questions)
            times, longest = found.p95 / idle.p95, max(found.seconds)
            kept = times <= bound.times and longest <= bound.longest
            broken += not kept
            print(
                f"{bound.grants} hostile, {kind}: p95 {found.p95 * 1e3:.0f} ms, {times:.1f} times "
                f"that of {idle.p95 * 1e3:.0f} ms alone; longest {longest:.2f} s; hostile answers "
                f"{dict(found.statuses)}{'' if kept else '  TOO LONG'}",
                flush=True,
            )
            label = f"(hostile clients: {bound.grants})"
            share = f"percent of the normal 95th percentile {label}"
            slowest = f"ms for the longest search {label}"
            worst[share] = max(worst[share], round(times * 100))
            worst[slowest] = max(worst[slowest], round(longest * 1_000))
    for name, number in worst.items():
        print(f"count {name}={number}")
    return int(broken > 0 and not asked.unbounded)


if __name__ == "__main__":
    sys.exit(main())
