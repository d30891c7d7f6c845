"""Checks a server in the order of a client's steps."""

from collections.abc import Callable, Iterator
from functools import partial
from datetime import datetime

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.doctor import connection, protocol
from service.doctor.findings import Finding, Step, skip, walk
from service.doctor.route import Stopped, Route

Look = Callable[[Route], Finding]


def look(
    url: str, token: str | None, now: datetime, *, seconds: float = BUDGETS.doctor_seconds
) -> Iterator[Finding]:
    """A finding for each step to the server at `url`, with a timeout of `seconds` per step."""
    return walk(_STEPS, Route(url, token, now, seconds=seconds))


def _bounded(look: Look, route: Route) -> Finding:
    route.deadline = Deadline.after(route.seconds)
    try:
        return look(route)
    except Stopped as stopped:
        return stopped.finding


def _with_access(look: Look, route: Route) -> Finding:
    """The steps for a server that answers this caller; without a token most do not."""
    if not route.is_open and not route.token:
        return skip("not checked: needs a token")
    return look(route)


def _step(name: str, look: Look, *needs: str, access: bool = False) -> Step[Route]:
    allowed = partial(_with_access, look) if access else look
    return Step(name, partial(_bounded, allowed), needs)


_STEPS = (
    _step("address", connection.address),
    _step("proxy", connection.proxy, "address"),
    _step("dns", connection.dns, "proxy"),
    _step("tcp", connection.tcp, "dns"),
    _step("tls", connection.tls, "tcp"),
    _step("health", protocol.health, "tls"),
    _step("post", protocol.post, "tls"),
    _step("headers", protocol.headers, "post"),
    _step("challenge", protocol.challenge, "post"),
    _step("auth", protocol.auth, "post"),
    _step("era", protocol.era, "auth", access=True),
    _step("tools", protocol.tools, "auth", access=True),
    _step("search", protocol.search, "tools", access=True),
)
