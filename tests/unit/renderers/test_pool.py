"""The pool: in order, by the deadline, in every process, and never in the way of the end."""

import os
import subprocess
import sys
import threading
from contextvars import ContextVar
from pathlib import Path


from evidence.errors import NotFound
from evidence.limits import BUDGETS
from evidence.work import Deadline, Done, Failed, Outcome, Overdue
from renderers.pool import WorkerPool

ROOT = Path(__file__).parents[3]
LONG, SHORT = 30.0, 0.05
request_id: ContextVar[str] = ContextVar("request_id")


def soon() -> Deadline:
    return Deadline.after(LONG)


def test_outcomes_come_in_the_order_of_the_items_whoever_is_done_first() -> None:
    turns = [threading.Event() for _ in range(4)]
    turns[3].set()

    def work(number: int) -> int:
        assert turns[number].wait(LONG)
        if number:
            turns[number - 1].set()
        return number

    assert WorkerPool(4, "test").map(work, range(4), soon()) == [Done(n) for n in range(4)]


def test_an_item_that_is_late_leaves_the_others_and_its_result_is_dropped() -> None:
    gate, left = threading.Event(), threading.Event()

    def work(number: int) -> int:
        if number == 1:
            gate.wait(LONG)
            left.set()
        return number

    outcomes = WorkerPool(3, "test").map(work, range(3), Deadline.after(SHORT * 4))
    assert outcomes == [Done(0), Overdue(), Done(2)]
    gate.set()
    assert left.wait(LONG)
    assert outcomes == [Done(0), Overdue(), Done(2)]


def test_time_in_the_queue_counts_and_what_waits_too_long_is_never_begun() -> None:
    gate, begun = threading.Event(), list[int]()
    pool = WorkerPool(1, "test")

    def work(number: int) -> int:
        begun.append(number)
        gate.wait(LONG)
        return number

    assert pool.map(work, range(3), Deadline.after(SHORT)) == [Overdue()] * 3
    gate.set()
    assert pool.map(str, range(2), soon()) == [Done("0"), Done("1")]
    assert begun == [0]


def test_a_full_queue_makes_late_not_more_memory() -> None:
    gate = threading.Event()
    pool = WorkerPool(1, "test")
    many = range(BUDGETS.pool_queue_items + 10)
    outcomes = pool.map(lambda _: gate.wait(LONG), many, Deadline.after(SHORT))
    gate.set()
    assert outcomes == [Overdue()] * len(many)


def test_failures_are_outcomes_and_the_threads_live_on() -> None:
    def work(number: int) -> int:
        if number == 0:
            raise NotFound("No such thing. Ask for another.")
        return 1 // (number - 1)

    pool = WorkerPool(2, "test")
    first, second, third = pool.map(work, range(3), soon())
    assert isinstance(first, Failed) and first.error.code == "not_found"
    assert isinstance(second, Failed) and second.error.code == "api_error"
    assert third == Done(1)
    assert pool.map(str, range(2), soon()) == [Done("0"), Done("1")]


def test_every_item_sees_the_context_of_its_caller() -> None:
    token = request_id.set("req_1")
    try:
        found = WorkerPool(2, "test").map(lambda _: request_id.get(), range(4), soon())
    finally:
        request_id.reset(token)
    assert found == [Done("req_1")] * 4


def test_one_item_and_work_inside_a_pool_are_done_by_the_thread_that_asks() -> None:
    pool = WorkerPool(1, "test")
    here = threading.current_thread
    assert pool.map(lambda _: here(), [1], soon()) == [Done(here())]
    assert pool.map(lambda _: here(), [], soon()) == []

    def threads_of(outcomes: list[Outcome[threading.Thread]]) -> set[threading.Thread]:
        return {outcome.value for outcome in outcomes if isinstance(outcome, Done)}

    def inside(_: int) -> bool:
        return threads_of(pool.map(lambda _: here(), range(3), soon())) == {here()}

    assert pool.map(inside, range(2), soon()) == [Done(True), Done(True)]


def test_threads_are_made_when_needed_and_never_too_many() -> None:
    pool = WorkerPool(3, "made-late")

    def ours() -> int:
        return sum(thread.name.startswith("made-late") for thread in threading.enumerate())

    assert ours() == 0
    all_here = threading.Barrier(3)
    assert pool.map(lambda _: all_here.wait(LONG) >= 0, range(3), soon()) == [Done(True)] * 3
    pool.map(str, range(50), soon())
    assert ours() == 3


def test_a_pool_that_was_used_before_a_fork_works_in_the_child() -> None:
    pool = WorkerPool(2, "test")
    assert pool.map(str, range(2), soon()) == [Done("0"), Done("1")]
    child = os.fork()
    if child == 0:
        well = pool.map(str, range(2), Deadline.after(LONG)) == [Done("0"), Done("1")]
        os._exit(0 if well else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_process_ends_although_its_pool_hangs() -> None:
    code = (
        "import threading; from renderers.pool import WorkerPool;"
        "from evidence.work import Deadline;"
        "hang = threading.Event();"
        "print(WorkerPool(2, 'x').map(lambda _: hang.wait(), range(2), Deadline.after(0.01)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=LONG, check=True
    )
    assert found.stdout == b"[Overdue(), Overdue()]\n"
