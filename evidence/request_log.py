"""Collects facts about a request while it is answered, for its log line, metrics and trace.

They include no token, record id, query or text. `used` names streams, for the owner's counts; it
is never logged.
"""

import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import getrandbits
from typing import Any, Final

#: An MCP message without a known method.
UNKNOWN: Final = "other"

_TRACEPARENT: Final = re.compile(
    "(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_TRACEPARENT_CHARS: Final = 512
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
#: The only flag that is forwarded: whether the trace is sampled.
_SAMPLED: Final = 0x01


@dataclass(frozen=True, slots=True)
class Trace:
    """W3C trace context: the trace a request is part of, and our own span in it."""

    trace_id: str
    span_id: str
    sampled: bool = False

    @classmethod
    def begun(cls) -> "Trace":
        """A new trace, for a request without one."""
        return cls(f"{getrandbits(128):032x}", f"{getrandbits(64):016x}")

    @property
    def header(self) -> str:
        """The `traceparent` of our requests to other servers for this request."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def continued(traceparent: object) -> Trace | None:
    """A new span in the trace of a `traceparent`; None if it is invalid."""
    if not isinstance(traceparent, str) or len(traceparent) > _TRACEPARENT_CHARS:
        return None
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None or (match[1] == "00" and match[5]):
        return None
    return Trace(match[2], f"{getrandbits(64):016x}", bool(int(match[4], 16) & _SAMPLED))


@dataclass(frozen=True, slots=True)
class Allowance:
    """The requests that a rate limit of `limit` still allows, and seconds until it is reset."""

    limit: int
    remaining: int
    reset: int


def uncounted(outcome: str) -> None:
    """Counts nothing."""


@dataclass(slots=True)
class RequestLog:
    """What is recorded about one request: filled in by the surfaces, for the log and the metrics.

    `error` is the code of the returned error. `on_upstream_outcome` is called with the outcome of
    each request to an upstream, from any thread. `began` is a value of `perf_counter`. `traced` is
    True if the trace came from a header, `streamed` if the body is generated while it is sent,
    `incomplete` if the answer leaves something out because time ran out. `grant` is the id of the
    grant or package of the token, `used` the (grant id, stream) of the records in the answer, and
    `payer` whose budget of work pays; empty for the address. `refused` is True after a 401.
    """

    request_id: str = ""
    address: str = ""
    trace: Trace = field(default_factory=Trace.begun)
    traced: bool = False
    operation: str = ""
    era: str = ""
    error: str = ""
    allowance: Allowance | None = None
    on_upstream_outcome: Callable[[str], None] = uncounted
    began: float = 0.0
    streamed: bool = False
    incomplete: bool = False
    grant: str = ""
    used: set[tuple[str, str]] = field(default_factory=set)
    payer: str = ""
    refused: bool = False

    def join(self, traceparent: object) -> None:
        """Adopts the trace of a message, unless a header named one.

        The header wins because proxies between the client and us update it.
        """
        if not self.traced and (trace := continued(traceparent)) is not None:
            self.trace = trace


_current: ContextVar[RequestLog | None] = ContextVar("request_log", default=None)


def begin(opened: RequestLog) -> None:
    """Makes this the log of the request that this thread is answering."""
    _current.set(opened)


def end() -> None:
    """Ends the log of this thread's request, which has been answered."""
    _current.set(None)


def current() -> RequestLog:
    """The log of the request being answered; outside a request, a new one, which is discarded."""
    return _current.get() or RequestLog()


def id_of(environ: Mapping[str, Any]) -> str:
    """The id of a request: the logged one, or its own if well formed, or a new one."""
    return current().request_id or sent_id(environ)


def sent_id(environ: Mapping[str, Any]) -> str:
    """The id in the header of a request if it is well formed, else a new one."""
    sent = environ.get("HTTP_REQUEST_ID") or environ.get("HTTP_X_REQUEST_ID")
    return sent if sent and _REQUEST_ID.fullmatch(sent) else new_id()


def new_id() -> str:
    """A new request id."""
    return f"req_{getrandbits(64):016x}"


def headers() -> dict[str, str]:
    """The headers of requests to other servers: the id of this request, and its trace."""
    opened = _current.get()
    if opened is None:
        return {}
    return {"Request-Id": opened.request_id, "traceparent": opened.trace.header}
