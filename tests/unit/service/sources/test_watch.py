"""A connection is cut when its time is over, whatever other requests wait for."""

import os
import socket
from collections.abc import Iterator

import pytest

from evidence.work import Deadline
from service.sources.remote.deadline_sockets import Watch

LONG, SHORT, PATIENCE = 60.0, 0.05, 5.0

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(PATIENCE)
        yield ours, theirs


def test_the_earlier_deadline_comes_first(pair: Pair) -> None:
    ours, theirs = pair
    with Watch(Deadline.after(LONG)) as patient, Watch(Deadline.after(SHORT)) as hasty:
        hasty.keep(ours)
        assert theirs.recv(1) == b""
        assert hasty.fired and not patient.fired


def test_a_watch_that_ended_cuts_nothing(pair: Pair) -> None:
    ours, theirs = pair
    with Watch(Deadline.after(SHORT)) as ended:
        ended.keep(ours)
    other, far = socket.socketpair()
    with other, far, Watch(Deadline.after(2 * SHORT)) as watch:
        far.settimeout(PATIENCE)
        watch.keep(other)
        assert far.recv(1) == b""  # by now the first deadline has passed as well
    ours.sendall(b"x")
    assert theirs.recv(1) == b"x" and not ended.fired


def test_a_passed_deadline_takes_no_connection(pair: Pair) -> None:
    with Watch(Deadline.after(0)) as watch, pytest.raises(TimeoutError):
        watch.keep(pair[0])


def test_a_forked_process_watches_for_itself(pair: Pair) -> None:
    ours, theirs = pair
    with Watch(Deadline.after(LONG)):  # the deadline enforcer of this process is at work
        child = os.fork()
        if child == 0:
            with Watch(Deadline.after(SHORT)) as watch:
                watch.keep(ours)
                ours.settimeout(PATIENCE)
                try:
                    cut = ours.recv(1) == b""
                except OSError:
                    cut = False
                os._exit(0 if cut and watch.fired else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
