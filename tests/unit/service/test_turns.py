"""Threads of a worker go to those who used least, and one caller cannot hold all beside others."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

import pytest

from evidence import work
from evidence.limits import BUDGETS
from evidence.request_log import RequestLog
from evidence.work import Deadline
from service.running import hooks
from service.running.turns import Turn, Turns, identify
from tests.helpers.waiting import WAIT_SECONDS

THREADS, SHARE = 5, 3
ADDRESS = "address:203.0.113.7"


class Worker:
    """The turns of a worker at a time that a test sets."""

    def __init__(self, threads: int = THREADS, share: int | None = None) -> None:
        self.now = 1_000.0
        self.paused = SimpleQueue[Turn]()
        self.turns = Turns(threads, share, self.paused.put, lambda: self.now)

    def wait(self, credentials: str = "", count: int = 1, address: str = ADDRESS) -> list[Turn]:
        """Requests that begin to wait."""
        deadline = Deadline(self.now + BUDGETS.store_seconds)
        turns = [Turn(None, address, credentials.encode() or None, deadline) for _ in range(count)]
        for turn in turns:
            self.turns.wait(turn)
        return turns

    def end(self, turn: Turn, seconds: float = 0.1, *, refused: bool = False) -> None:
        """Ends a request; that of the grant with its credentials, unless they are refused."""
        if turn.credentials and not refused:
            self.accept(turn)
        turn.entry = replace(turn.entry, refused=refused)
        turn.charge(seconds)
        self.turns.end(turn)

    def accept(self, turn: Turn) -> None:
        """The application accepts the credentials of a request that runs."""
        assert turn.credentials is not None
        grant = turn.credentials.decode()
        turn.entry = RequestLog(grant=grant, payer=f"grant:{grant}")

    def serve(self, *grants: str, seconds: float = 0.1) -> None:
        """Answers a request of each of these grants."""
        for grant in grants:
            (turn,) = self.wait(grant)
            assert self.turns.begin() == [turn]
            self.end(turn, seconds)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_a_caller_that_is_alone_may_hold_all_threads(worker: Worker) -> None:
    worker.serve("one")
    assert len(worker.wait("one", 9)) == 9 and len(worker.turns.begin()) == THREADS


def test_beside_another_that_was_served_it_holds_half_for_ten_seconds(worker: Worker) -> None:
    worker.serve("one", "other")
    worker.wait("one", 9)
    assert len(worker.turns.begin()) == SHARE
    worker.now += BUDGETS.served_seconds - 1
    assert worker.turns.begin()[1:] == [], "but one whose deadline has passed"
    worker.now += 1
    assert len(worker.turns.begin()) == THREADS - SHARE


def test_beside_another_that_waits_it_holds_half(worker: Worker) -> None:
    worker.serve("one", "other")
    worker.now += BUDGETS.served_seconds
    many, other = worker.wait("one", 9), worker.wait("other")
    begun = worker.turns.begin()
    assert [turn for turn in begun if turn in many] == many[:SHARE]
    assert len(begun) == SHARE + 1 and other[0] in begun


@pytest.mark.parametrize(
    "threads, share, most", [(1, None, 1), (2, None, 1), (3, None, 2), (4, 3, 3)]
)
def test_the_share_is_half_rounded_up_or_set(threads: int, share: int | None, most: int) -> None:
    worker = Worker(threads, share)
    worker.serve("one", "other")
    worker.wait("one", 9)
    assert len(worker.turns.begin()) == most


def test_a_free_thread_goes_to_the_caller_that_used_least() -> None:
    worker = Worker(threads=1)
    worker.serve("one", "other", "third")
    for grant, seconds in (("one", 3.0), ("other", 2.0), ("third", 1.0)):
        worker.serve(grant, seconds=seconds)
    waiting = [worker.wait(grant)[0] for grant in ("one", "other", "third")]
    for turn in reversed(waiting):
        assert worker.turns.begin() == [turn]
        worker.end(turn, 0.0)


def test_several_callers_with_long_requests_leave_the_last_thread_to_the_others() -> None:
    worker = Worker(threads=2)
    worker.serve("light")
    worker.serve("heavy", "heavier", "as heavy", seconds=3.0)
    for grant in ("heavy", "heavier", "as heavy"):
        worker.wait(grant)
    assert len(worker.turns.begin()) == 1 and worker.turns.begin() == []
    (turn,) = worker.wait("light")
    assert worker.turns.begin() == [turn]


def test_many_cheap_requests_count_for_what_is_done_around_them() -> None:
    worker = Worker(threads=1)
    worker.serve("cheap", "costly", seconds=0.0)
    for _ in range(100):
        worker.serve("cheap", seconds=0.0)
    worker.serve("costly", seconds=0.03)
    worker.wait("cheap")
    (first,) = worker.wait("costly")
    assert worker.turns.begin() == [first]


def test_what_was_used_long_ago_counts_less() -> None:
    worker = Worker(threads=1)
    worker.serve("one", "other", seconds=1.0)
    worker.serve("one", seconds=2.0)
    worker.now += 0.9 * BUDGETS.served_seconds
    worker.serve("other", seconds=1.5)
    worker.wait("other")
    (first,) = worker.wait("one")
    assert worker.turns.begin() == [first]


def test_one_that_pauses_saves_up_no_turns() -> None:
    worker = Worker(threads=1)
    worker.serve("busy", seconds=5.0)
    first, *_ = worker.wait("newcomer", 3)
    (busy,) = worker.wait("busy")
    assert worker.turns.begin() == [first]
    worker.end(first)
    assert worker.turns.begin() == [busy]


def test_newcomers_do_not_catch_up_from_one_that_used_little() -> None:
    worker = Worker(threads=1)
    worker.serve("light", seconds=0.01)
    worker.serve("steady", seconds=1.0)
    first, *_ = worker.wait("newcomer", 3)
    assert worker.turns.begin() == [first]
    worker.end(first)
    (steady,) = worker.wait("steady")
    assert worker.turns.begin() == [steady]


def test_newcomers_go_first_one_at_a_time() -> None:
    worker = Worker(threads=2)
    worker.serve("steady")
    newcomers = [worker.wait(name, address=f"address:{name}")[0] for name in ("one", "two")]
    (steady,) = worker.wait("steady")
    assert worker.turns.begin() == [newcomers[0], steady]


def test_a_batch_lets_others_go_first_between_its_messages() -> None:
    worker = Worker(threads=1)
    batch, later = worker.wait("one", 2)
    assert worker.turns.begin() == [batch]
    worker.accept(batch)
    batch.pause()  # returns at once: only its own caller waits
    (other,) = worker.wait("other", address="address:198.51.100.7")
    with ThreadPoolExecutor(1) as thread:
        paused = thread.submit(batch.pause)
        worker.turns.wait(worker.paused.get(timeout=WAIT_SECONDS))
        assert worker.turns.begin() == [other]
        worker.end(other)
        assert worker.turns.begin() == [batch], "what has begun goes before what has not"
        assert batch.resumed is not None and not paused.done()
        batch.resumed.set()
    worker.end(batch)
    assert worker.turns.begin() == [later]


def test_a_batch_that_paused_is_charged_once() -> None:
    worker = Worker(threads=1)
    (turn,) = worker.wait("one")
    worker.turns.begin()
    charged = list[float]()
    turn.charge = charged.append
    spending = work.begin(60)
    work.spend(2.0)
    turn.pause()
    work.spend(1.0)
    spending.end(partial(hooks.charge, None, turn.entry, turn))
    work.end()
    assert len(charged) == 2 and 3.0 <= sum(charged) < 3.5


def test_unknown_credentials_wait_in_the_name_of_their_address(worker: Worker) -> None:
    worker.serve("known")
    for number in range(9):
        worker.wait(f"stranger {number}")
    strangers = worker.turns.begin()
    assert len(strangers) == SHARE, "the known one was served"
    (known,) = worker.wait("known")
    assert worker.turns.begin() == [known]


def test_those_of_the_same_grant_are_counted_together_once_one_is_accepted() -> None:
    worker = Worker(threads=2)
    worker.serve("known")
    many = worker.wait("hostile", 4)
    (begun,) = worker.turns.begin()
    (newcomer,) = worker.wait("newcomer")
    assert begun is many[0] and worker.turns.begin() == []
    worker.accept(begun)
    assert worker.turns.begin() == [newcomer]


def test_credentials_that_are_refused_no_longer_stand_for_their_grant() -> None:
    worker = Worker(threads=2)
    worker.serve("revoked", "known")
    (turn,) = worker.wait("revoked")
    worker.turns.begin()
    worker.end(turn, refused=True)
    first, second = worker.wait("revoked") + worker.wait("no such token")
    assert worker.turns.begin() == [first], "the address of both holds half"
    worker.end(first, refused=True)
    assert worker.turns.begin() == [second]


def test_tokens_of_another_server_count_for_their_address_until_it_accepts_them() -> None:
    worker = Worker(threads=2)
    worker.serve("known")
    first, second = worker.wait("forged 1") + worker.wait("forged 2")
    assert worker.turns.begin() == [first]
    first.entry = RequestLog(payer="token:1")
    assert worker.turns.begin() == []
    worker.end(first, refused=True)
    assert worker.turns.begin() == [second]


def test_one_request_at_a_time_whose_deadline_has_passed_gets_a_thread_in_addition() -> None:
    worker = Worker(threads=2)
    worker.serve("other")
    begun, *late = worker.wait("one", 3)
    assert worker.turns.begin() == [begun]
    worker.now += BUDGETS.store_seconds
    for turn in late:
        assert worker.turns.begin() == [turn] and turn.late
        assert worker.turns.begin() == []
        worker.end(turn)


def test_the_rest_of_an_answer_waits_for_a_thread_without_a_deadline() -> None:
    worker = Worker(threads=2)
    worker.serve("other")
    rest, following = worker.wait("one", 2)
    assert worker.turns.begin() == [rest]
    worker.end(rest)
    assert worker.turns.begin() == [following]
    worker.turns.wait(rest)
    worker.now += BUDGETS.store_seconds
    assert worker.turns.begin() == []


HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"


def credentials_of(*lines: bytes) -> bytes | None:
    return identify(HEAD + b"\r\n".join((*lines, b"\r\n")), ("127.0.0.1", 1), 0)[1]


def test_credentials_are_the_headers_that_may_name_a_grant() -> None:
    one = credentials_of(b"Authorization: Bearer one")
    assert one is not None and one == credentials_of(b"authorization:  Bearer one ", b"Accept: *")
    others = [
        credentials_of(b"Authorization: Bearer two"),
        credentials_of(b"Authorization: Bearer one", b"Authorization: Bearer two"),
        credentials_of(b"Authorization: Bearer one", b"Cookie: a=b"),
        credentials_of(b"Cookie: Bearer one"),
        credentials_of(b"X-Authorization: Bearer one"),
    ]
    assert one not in others and others[-1] is None


@pytest.mark.parametrize(
    "proxies, lines, address",
    [
        (0, [], "8.8.4.4"),
        (0, [b"X-Forwarded-For: 1.1.1.1"], "8.8.4.4"),
        (1, [b"X-Forwarded-For: 9.9.9.9, 1.1.1.1"], "1.1.1.1"),
        (1, [b"X-Forwarded-For: 9.9.9.9", b"x-forwarded-for: 1.1.1.1"], "1.1.1.1"),
        (2, [b"X-Forwarded-For: 9.9.9.9, 1.1.1.1"], "9.9.9.9"),
        (3, [b"X-Forwarded-For: 9.9.9.9, 1.1.1.1"], "8.8.4.4"),
    ],
)
def test_the_address_is_the_one_that_trusted_proxies_report(
    proxies: int, lines: list[bytes], address: str
) -> None:
    head = HEAD + b"\r\n".join((*lines, b"\r\n"))
    assert identify(head, ("8.8.4.4", 1), proxies) == (f"address:{address}", None)


@pytest.mark.parametrize("peer", [("127.0.0.1", 1), ("10.0.0.7", 1), "", b""])
def test_addresses_that_many_may_share_are_one(peer: object) -> None:
    assert identify(HEAD + b"\r\n", peer, 0) == ("address:", None)
