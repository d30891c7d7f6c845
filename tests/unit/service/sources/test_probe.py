"""Looks at a server leave nothing open, however they end."""

import gc
import socket
import warnings

import pytest

from evidence.work import Deadline
from service.sources.remote import health_check


def test_a_deadline_that_passes_while_connecting_leaves_no_socket_open() -> None:
    times = iter([0.0])
    deadline = Deadline(10.0, clock=lambda: next(times, 10.0))
    with warnings.catch_warnings(record=True) as caught, socket.create_server(("", 0)) as server:
        warnings.simplefilter("always")
        with pytest.raises(TimeoutError):
            health_check.connect("127.0.0.1", server.getsockname()[1], deadline)
        gc.collect()
    assert [found.category for found in caught] == []
