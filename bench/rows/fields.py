"""Windows of a huge field, compared with a small one, and searches of the huge one, over HTTP."""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import figures
from bench.calls import MODERN, call, result_of
from bench.findings import Finding, Line, Note
from bench.load import ask, drive, loaded
from bench.plan import Plan
from bench.servers import Server, pinned, rung, two_cores
from bench.stores import INNER_PART, LAST_WORD, Deep, open_deep

CLIENTS = 8
WINDOW_CHARS = 8_192
PLACES = (0, 50, 99)  # percent of the field
WARM = 200
LOOK_SECONDS = 0.01
MB, MS = 1_000_000, 1_000


def measure(plan: Plan) -> Iterator[Line]:
    deep = open_deep(plan.huge_chars)
    core, client = two_cores()
    with rung(deep.store, core) as server, pinned(client):
        yield from _windows(plan, server, deep)
        yield from _finds(plan, server, deep)


def _windows(plan: Plan, server: Server, deep: Deep) -> Iterator[Line]:
    """Windows of the small field and of each place of the huge one, in turn."""
    last = deep.huge_chars - WINDOW_CHARS
    requests = {place: _window(deep.token, deep.huge_id, last * place // 100) for place in PLACES}
    small = _window(deep.token, deep.small_id, 0)
    for request in (small, *requests.values()):
        read = result_of(ask(server.port, request))["structuredContent"]["window"]
        if read["end_chars"] - read["start_chars"] != WINDOW_CHARS:
            raise RuntimeError("the window does not have the requested size")

    def p50(request: bytes) -> float:
        return loaded(server.port, [request], seconds=plan.seconds / 2, connections=CLIENTS).p50

    drive(server.port, [small], total=WARM, connections=CLIENTS)
    before = server.memory()
    rounds = []
    for _ in range(plan.rounds):
        rounds.append((p50(small), {place: p50(requests[place]) for place in PLACES}))
    grown = (server.memory() - before) / MB
    base = [little for little, _ in rounds]
    for place in PLACES:
        found = figures.ratios([huge[place] for _, huge in rounds], base)
        yield Finding(f"window-{place}", found)
    yield Finding("window-memory", (grown,))
    yield Note("window of the small field: p50", f"{statistics.median(base) * MS:.2f} ms")


def _window(token: str, record: str, offset: int) -> bytes:
    where = {"offset_chars": offset, "limit_chars": WINDOW_CHARS}
    return _read(token, record, where)


def _read(token: str, record: str, where: dict[str, Any]) -> bytes:
    arguments = {"id": record, "field_path": "text", **where}
    return call(token, "read_record_field", arguments, era=MODERN)


def _finds(plan: Plan, server: Server, deep: Deep) -> Iterator[Line]:
    """Finds the last word, which the index contains, and its inner part, which no index does."""
    whole = _read(deep.token, deep.huge_id, {"query": LAST_WORD})
    inner = _read(deep.token, deep.huge_id, {"query": INNER_PART})
    start = deep.huge_chars - len(LAST_WORD) - 1
    _check_match(server, whole, start, LAST_WORD)
    rounds = [
        drive(server.port, [whole], total=plan.asks, connections=1).p50 * MS
        for _ in range(plan.rounds)
    ]
    yield Finding("find-index", tuple(rounds))
    before = server.memory()
    seconds = []
    with watched(server) as seen:
        for _ in range(plan.scans):
            begun = time.perf_counter()
            _check_match(server, inner, start + LAST_WORD.index(INNER_PART), INNER_PART)
            seconds.append(time.perf_counter() - begun)
    yield Finding("find-scan", tuple(seconds))
    yield Finding("find-memory", ((max(seen) - before) / MB,))


@contextmanager
def watched(server: Server) -> Iterator[list[int]]:
    """Samples the RssAnon of a worker during the block."""
    seen, done = [server.memory()], threading.Event()

    def look() -> None:
        while not done.wait(LOOK_SECONDS):
            seen.append(server.memory())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def _check_match(server: Server, request: bytes, start: int, text: str) -> None:
    """Raises `RuntimeError` unless the match is reported at its position in the whole text."""
    window = result_of(ask(server.port, request))["structuredContent"]["window"]
    found = window["match_start_chars"]
    if found != start or window["text"][found - window["start_chars"] :][: len(text)] != text:
        raise RuntimeError(f"{text!r} is at {start}, but was reported at {found}")
