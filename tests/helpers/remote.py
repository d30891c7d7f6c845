"""Callers whose resource server is behind a socket: MCP here, `/v1` there."""

from collections.abc import Callable

from evidence.limits import BUDGETS
from evidence.work import Deadline, Each, serial
from service.mcp.validation import Headers
from service.mcp.protocol import handle
from service.mcp.server import Server
from service.mcp.surface import RecordsSurface
from service.operations.base import Session
from service.sources.remote.server import HttpResourceServer
from service.sources.remote.origin import Origin
from service.ports import ResourceServer
from tests.helpers.caller import Caller

Open = Callable[[], ResourceServer]


def upstream_deadline() -> Deadline:
    """The deadline for the upstreams of a request."""
    return Deadline.after(BUDGETS.upstream_seconds)


def opener(url: str, token: str) -> Open:
    """Opens an upstream for each request, as a service does."""
    origin = Origin(url)
    return lambda: HttpResourceServer(origin, token, upstream_deadline())


def caller_of(
    open: Open, *, fence_key: bytes = b"of a test", base_url: str = "", each: Each = serial
) -> Caller:
    """An MCP caller of this process over any resource server."""
    server = Server(RecordsSurface())

    def post(body: bytes, headers: dict[str, str]) -> bytes:
        environ = {f"HTTP_{name.upper().replace('-', '_')}": headers[name] for name in headers}
        session = Session(open(), base_url, fence_key, each)
        return handle(server, body, Headers(environ), session).body or b""

    return Caller(post, "not looked at")
