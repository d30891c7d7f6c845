"""Decides which request gets a worker's next free thread.

A caller is a grant, a token of an upstream, or an address. While another caller waits or was served
in the last ten seconds, a caller holds at most its share of the threads; otherwise it may hold all.
A free thread goes to the caller that used least CPU time recently, and the last free one only to a
caller that used at most the average: several callers with long requests leave it to the others.

A request waits before its token is checked. It counts for its address until the worker has accepted
a request with the same credentials, so that nobody can wait in the name of others.
"""

import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from evidence.limits import BUDGETS
from evidence.request_log import RequestLog
from evidence.work import Deadline, spent
from service.access.rates import client
from service.keys import hashed
from service.lru import LruCache

#: In a WSGI environment: the turn of the request.
TURN: Final = "rung.turn"
_IDENTITY: Final = re.compile(
    rb"\r\n(authorization|cookie|x-forwarded-for)[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)", re.I
)
_FORWARDED: Final = b"x-forwarded-for"
_NEVER: Final = Deadline(math.inf)
#: CPU seconds of receiving and parsing a request and of sending its answer, as measured.
_AROUND_SECONDS: Final = 0.0005
_UNANSWERED: Final = RequestLog()


@dataclass(slots=True, eq=False)
class Turn:
    """A request that waits for a thread, or has one.

    `credentials` is the hash of the headers that may name a grant, None without them. `entry` is
    what the application records about the request. `charge` adds CPU seconds of the request, from
    any thread; `charged` are those that it added before the end of the request. `pause` lets others
    go first; `resumed` is set when a request that paused gets its turn again. `late` is True if the
    deadline passed before a thread was free; `learned` if its credentials need no further look.
    """

    connection: Any
    address: str
    credentials: bytes | None
    deadline: Deadline
    entry: RequestLog = field(default_factory=lambda: _UNANSWERED)
    charge: Callable[[float], None] = lambda seconds: None
    charged: float = 0.0
    pause: Callable[[], None] = lambda: None
    resumed: threading.Event | None = None
    late: bool = False
    learned: bool = False


class Turns:
    """The requests of one worker that wait for its threads, or have them.

    `threads` is their number, `share` how many a caller may hold beside others, by default half,
    rounded up. `on_pause` gets a request that pauses, and passes it to `wait` on the main thread,
    which calls all methods. `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        threads: int,
        share: int | None = None,
        on_pause: Callable[[Turn], None] = lambda turn: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_pause = on_pause
        self._threads, self._share, self._clock = threads, share or (threads + 1) // 2, clock
        self._waiting: dict[Turn, None] = {}  # in the order in which they began to wait
        self._running: dict[Turn, None] = {}
        self._accepted = LruCache[bytes, str](BUDGETS.tokens_cached)  # {credentials: caller}
        #: {caller: (recent CPU seconds, when they were added up)}, the latest last.
        self._used: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait(self, turn: Turn) -> None:
        """Adds a request or half-sent answer that needs a thread, or a request that paused."""
        if turn.resumed is None:
            turn.charge, turn.pause = partial(self._charge, turn), partial(self._pause, turn)
            self._waiting[turn] = None
        elif self._running.pop(turn, turn) is None:
            # Before those of the same caller that have not begun, so that it pauses only once.
            self._waiting = {turn: None, **self._waiting}

    def end(self, turn: Turn) -> None:
        """Frees the thread of a request, and charges what was done around it."""
        self._charge(turn, _AROUND_SECONDS)
        self._running.pop(turn, None)
        self._waiting.pop(turn, None)  # if it paused too long
        turn.late, turn.deadline = False, _NEVER  # what else is sent of the answer may wait

    def clear(self) -> list[Turn]:
        """Removes the requests that wait, and returns them."""
        waiting, self._waiting = list(self._waiting), {}
        return waiting

    def begin(self) -> list[Turn]:
        """The requests that get a thread now.

        One request whose deadline has passed is among them, unless another such is running: it gets
        a thread of its own.
        """
        if not self._waiting:
            return []
        if not self._running and len(self._waiting) == 1:
            return [self._start(next(iter(self._waiting)))]
        for turn in self._running:
            if turn.entry.grant:  # another server decides about the tokens that it issues
                self._learn(turn)
        begun, now = list[Turn](), self._clock()
        overdue = next((turn for turn in self._waiting if turn.deadline.at <= now), None)
        if overdue is not None and not any(turn.late for turn in self._running):
            overdue.late = True
            begun.append(self._start(overdue))
        in_use = Counter(self._caller(turn) for turn in self._running if not turn.late)
        while in_use.total() < self._threads and (following := self._next(in_use, now)) is not None:
            in_use[self._caller(following)] += 1
            begun.append(self._start(following))
        return begun

    def _next(self, in_use: Counter[str], now: float) -> Turn | None:
        """The waiting request whose caller used least and may hold one more thread."""
        first: dict[str, Turn] = {}
        for turn in self._waiting:
            first.setdefault(self._caller(turn), turn)
        with self._lock:
            served = self._served(now)
            most = max(served.values(), default=0.0)
            # Of those that used as little, newcomers go first, but one of them at a time.
            newcomer_runs = not in_use.keys() <= served.keys()
            used = {key: (served.get(key, most), (key in served) ^ newcomer_runs) for key in first}
        active = served.keys() | first.keys() | in_use.keys()
        average = sum(served.values()) / max(1, len(served))
        is_last = self._threads > 1 and in_use.total() == self._threads - 1

        def may_begin(caller: str) -> bool:
            if not active - {caller}:
                return True
            is_heavy = served.get(caller, most) > average
            return in_use[caller] < self._share and not (is_last and is_heavy)

        best = min(filter(may_begin, first), key=used.__getitem__, default=None)
        return first[best] if best is not None else None

    def _pause(self, turn: Turn) -> None:
        """Returns when a request may go on; on its thread.

        Others go first, unless none waits or too many requests have paused.
        """
        used = spent()
        turn.charge(used - turn.charged)
        turn.charged = used
        waiting, caller = list(self._waiting), self._caller(turn)
        paused = sum(queued.resumed is not None for queued in waiting)
        alone = all(self._caller(queued) == caller for queued in waiting)
        if turn.late or alone or paused >= BUDGETS.paused_batches:
            return
        turn.resumed = resumed = threading.Event()
        self._on_pause(turn)
        resumed.wait(BUDGETS.request_seconds)
        turn.resumed = None

    def _start(self, turn: Turn) -> Turn:
        del self._waiting[turn]
        self._running[turn] = None
        return turn

    def _caller(self, turn: Turn) -> str:
        return (turn.credentials and self._accepted.get(turn.credentials)) or turn.address

    def _learn(self, turn: Turn) -> None:
        """Notes whose the credentials of a request are, once the application has decided."""
        if turn.credentials is None or turn.learned:
            return
        refused = turn.entry.refused
        caller = "" if refused else turn.entry.payer
        if caller or (refused and self._accepted.get(turn.credentials)):
            self._accepted.put(turn.credentials, caller)
            turn.learned = True

    def _charge(self, turn: Turn, seconds: float) -> None:
        """Adds CPU seconds of a request to those of its caller; on any thread."""
        self._learn(turn)
        caller, now = self._caller(turn), self._clock()
        with self._lock:
            served = self._served(now)
            used = served.get(caller, max(served.values(), default=0.0))
            self._used.pop(caller, None)
            self._used[caller] = used + seconds, now
            if len(self._used) > BUDGETS.tokens_cached:
                del self._used[next(iter(self._used))]

    def _served(self, now: float) -> dict[str, float]:
        """The recent CPU seconds of the callers that were served in the last `served_seconds`.

        What is added up counts half after this time. Others count as the one that used most, so
        that nobody saves up turns by pausing.
        """
        recent = dict[str, float]()
        for caller, (seconds, at) in reversed(self._used.items()):
            passed = (now - at) / BUDGETS.served_seconds
            if passed >= 1:
                break
            recent[caller] = seconds * 0.5**passed
        return recent


def identify(head: bytes, peer: Any, proxies: int) -> tuple[str, bytes | None]:
    """The address of a request and the hash of its credentials, None without them.

    `peer` is the other end of the connection, as sockets name it, `proxies` how many are trusted.
    """
    fields: dict[bytes, list[bytes]] = {}
    for name, value in _IDENTITY.findall(head):
        fields.setdefault(name.lower(), []).append(value)
    forwarded = b",".join(fields.pop(_FORWARDED, ())).decode("latin-1").split(",")
    address = peer[0] if isinstance(peer, tuple) else ""
    if 0 < proxies <= len(forwarded):
        address = forwarded[-proxies].strip()
    credentials = hashed(repr(sorted(fields.items()))) if fields else None
    return f"address:{client(address, private=proxies > 0) or ''}", credentials
