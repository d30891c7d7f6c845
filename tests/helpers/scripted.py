"""A scripted upstream, and the resource server over it, as seen by one request."""

from collections.abc import Callable
from typing import Any

import pytest

from evidence.errors import EvidenceError
from evidence.work import Deadline
from service.sources.remote.server import HttpResourceServer
from service.sources.remote.origin import Origin
from service.ports import ResourceServer
from tests.helpers.loopback import Loopback, Reply

Ask = Callable[[ResourceServer], Any]

TOKEN = "tok-secret"
LIST = {"object": "list", "data": [], "has_more": False}


class Scripted:
    """A scripted server, and the waits between requests to it."""

    def __init__(self, server: Loopback) -> None:
        self.server = server
        self.waited: list[float] = []
        self.origin = Origin(server.url, pause=self.waited.append)

    def gives(self, *replies: Reply) -> None:
        """Gives these answers in order, then repeats the last one."""
        left = list(replies)
        self.server.answer = lambda asked: left.pop(0) if len(left) > 1 else left[0]

    def open(self, seconds: float = 15.0) -> HttpResourceServer:
        return HttpResourceServer(self.origin, TOKEN, Deadline.after(seconds))

    def refused(self, ask: Ask, seconds: float = 15.0) -> EvidenceError:
        with pytest.raises(EvidenceError) as raised:
            ask(self.open(seconds))
        shown = f"{raised.value.body()} {raised.value.calls}"
        assert TOKEN not in shown and "127.0.0.1" not in shown
        return raised.value

    @property
    def targets(self) -> list[str]:
        return [asked.target for asked in self.server.asked]
