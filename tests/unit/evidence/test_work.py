"""Deadlines are values, and one outcome comes of every item."""

import logging

import pytest

from evidence.errors import NotFound, TimedOut
from evidence.work import Deadline, Done, Failed, Overdue, attempt, serial


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_deadline_says_how_much_is_left_and_never_less_than_nothing() -> None:
    clock = Clock()
    deadline = Deadline.after(8, clock)
    assert deadline.left() == 8 and not deadline.expired()
    clock.now += 9
    assert deadline.left() == 0 and deadline.expired()
    with pytest.raises(TimedOut):
        deadline.check("testing")


@pytest.mark.parametrize("most, seconds", [(5.0, 4.0), (3.0, 3.0)])
def test_a_share_is_a_part_of_what_is_left_and_bounded(most: float, seconds: float) -> None:
    clock = Clock()
    assert Deadline.after(8, clock).share(0.5, most=most).left() == seconds


def test_serial_keeps_the_order_and_what_has_not_begun_in_time_is_late() -> None:
    clock = Clock()

    def work(item: int) -> int:
        clock.now += 2
        return item * 10

    outcomes = serial(work, [1, 2, 3], Deadline.after(3, clock))
    assert outcomes == [Done(10), Done(20), Overdue()]


def test_an_error_that_can_be_told_is_the_outcome() -> None:
    error = NotFound("No such thing. Ask for another.")

    def work(_: int) -> None:
        raise error

    assert attempt(work, 1) == Failed(error)


def test_a_fault_of_ours_is_logged_without_what_it_was_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def work(secret: str) -> None:
        raise ValueError(secret)

    with caplog.at_level(logging.ERROR):
        outcome = attempt(work, "rung_token_of_somebody")
    assert isinstance(outcome, Failed) and outcome.error.code == "api_error"
    assert "ValueError in work" in caplog.text
    assert "rung_token_of_somebody" not in caplog.text + outcome.error.message
