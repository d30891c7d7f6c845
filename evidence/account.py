"""What is known of one request while it is answered, for its log line, its metrics and its trace.

Nothing of what is read or said stands here: no token, id, query, name or text.
"""

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import getrandbits
from typing import Final

#: A message of MCP without a method we know.
UNKNOWN: Final = "other"

_TRACEPARENT: Final = re.compile(
    "(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_TRACEPARENT_CHARS: Final = 512
#: All we say of a trace is whether it is sampled; other flags are not ours to pass on.
_SAMPLED: Final = 0x01


@dataclass(frozen=True, slots=True)
class Trace:
    """W3C trace context: the trace a request is part of, and our own span in it."""

    trace_id: str
    span_id: str
    sampled: bool = False

    @classmethod
    def begun(cls) -> "Trace":
        """A trace of our own, for a request that came with none."""
        return cls(f"{getrandbits(128):032x}", f"{getrandbits(64):016x}")

    @property
    def header(self) -> str:
        """The `traceparent` of what we ask of others on behalf of this request."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def continued(traceparent: object) -> Trace | None:
    """A span of ours in the trace of a `traceparent`; None where that is none."""
    if not isinstance(traceparent, str) or len(traceparent) > _TRACEPARENT_CHARS:
        return None
    found = _TRACEPARENT.fullmatch(traceparent.strip())
    if found is None or (found[1] == "00" and found[5]):
        return None
    return Trace(found[2], f"{getrandbits(64):016x}", bool(int(found[4], 16) & _SAMPLED))


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a rate limit leaves: of `limit` requests so many, and seconds until all are back."""

    limit: int
    remaining: int
    reset: int


def uncounted(outcome: str) -> None:
    """Counts nothing."""


@dataclass(slots=True)
class Account:
    """One request. Surfaces fill in what they learn; who opened it tells log and metrics.

    `error` is the code of the error it was answered with. `asked` hears the outcome of each
    request to an upstream, from any thread. `began` is by the clock of who opened it, and `told`
    is whether the trace came in a header. `streams` is whether the body is made while it is sent,
    `incomplete` whether the answer leaves something out because time was over.
    """

    request_id: str = ""
    address: str = ""
    trace: Trace = field(default_factory=Trace.begun)
    told: bool = False
    operation: str = ""
    era: str = ""
    error: str = ""
    allowance: Allowance | None = None
    asked: Callable[[str], None] = uncounted
    began: float = 0.0
    streams: bool = False
    incomplete: bool = False

    def join(self, traceparent: object) -> None:
        """Takes the trace a message names, unless a header named one.

        The header is nearer: what stands between the client and us keeps it up to date.
        """
        if not self.told and (trace := continued(traceparent)) is not None:
            self.trace = trace


_current: ContextVar[Account | None] = ContextVar("account", default=None)


def begin(account: Account) -> None:
    """Makes this the account of the request that this thread answers."""
    _current.set(account)


def end() -> None:
    """The request is answered."""
    _current.set(None)


def current() -> Account:
    """The account of the request being answered; outside of one, an account nobody reads."""
    return _current.get() or Account()


def headers() -> dict[str, str]:
    """What requests to other servers carry: whose request this is, and its trace."""
    account = _current.get()
    if account is None:
        return {}
    return {"Request-Id": account.request_id, "traceparent": account.trace.header}
