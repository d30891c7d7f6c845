"""All errors, one class per kind.

The *kinds* are a closed set, which `service.statuses` maps to HTTP statuses. *Codes* are an open
set of strings, mostly from PDPP, and the same over MCP and REST. A message explains what is wrong
and what to do.
"""

from typing import Any, ClassVar, Final


class EvidenceError(Exception):
    """A typed error: `code`, `message`, a `hint`, and the arguments to retry with.

    `details` are extra members of the error object (JSON values), such as `param`,
    `available_connections` or `did_you_mean`. `calls` are ready calls (`Continuation`s) that
    would work instead.
    """

    kind: ClassVar[str] = "internal"
    default_code: ClassVar[str] = "api_error"

    def __init_subclass__(cls, *, kind: str = "", code: str = "") -> None:
        cls.kind, cls.default_code = kind or cls.kind, code or cls.default_code

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        retry_with: str | None = None,
        calls: tuple[Any, ...] = (),
        **details: Any,
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message
        self.hint = hint
        self.retry_with = retry_with
        self.calls = calls
        self.details = {key: value for key, value in details.items() if value is not None}

    @property
    def text(self) -> str:
        """The message and the hint, for what shows one text."""
        return f"{self.message} {self.hint}" if self.hint else self.message

    def body(self) -> dict[str, Any]:
        """The error object as every surface shows it, without request id and HTTP type."""
        optional = {"hint": self.hint, "retry_with": self.retry_with}
        present = {name: text for name, text in optional.items() if text}
        return {"code": self.code, "message": self.message, **present, **self.details}


class InvalidRequest(EvidenceError, kind="invalid", code="invalid_request"):
    """The request is malformed or out of bounds."""


class Unauthenticated(EvidenceError, kind="unauthenticated", code="authentication_error"):
    """The token is missing, unknown, expired or revoked."""


#: Codes for a token that is unknown or whose grant has ended. Without a token the code is
#: `authentication_error`.
UNKNOWN_TOKEN: Final = "invalid_token"
ENDED: Final = ("grant_expired", "grant_revoked")


class Forbidden(EvidenceError, kind="forbidden", code="permission_error"):
    """The token does not allow this, or the server refuses the origin or host name."""


class NotFound(EvidenceError, kind="not_found", code="not_found"):
    """The requested resource does not exist, or the token does not allow access to it."""


class Ambiguous(EvidenceError, kind="ambiguous", code="ambiguous_connection"):
    """Several connections, papers or blobs match; `retry_with` names the argument to set."""


class Gone(EvidenceError, kind="gone", code="cursor_expired"):
    """A cursor or bookmark is no longer valid."""


class TooLarge(EvidenceError, kind="too_large", code="request_too_large"):
    """The request, the answer or a value exceeds a limit."""


class NotText(EvidenceError, kind="not_text", code="field_not_text"):
    """The field cannot be read as text."""


class RateLimited(EvidenceError, kind="rate_limited", code="rate_limit_exceeded"):
    """Too many requests were sent, or requests used too much CPU time."""


class Unavailable(EvidenceError, kind="unavailable", code="upstream_unreachable"):
    """The store, the papers or an upstream is unreachable, busy or broken."""


class TimedOut(EvidenceError, kind="timed_out", code="deadline_exceeded"):
    """The request took too long."""


class Internal(EvidenceError, kind="internal", code="api_error"):
    """Rung failed because of a bug. The message is always the same; the log contains the cause."""

    def __init__(self, message: str = "Something went wrong in Rung.", **details: Any) -> None:
        super().__init__(
            message, hint="Try again. If the error persists, report the request id.", **details
        )


#: The kinds, in this order.
KINDS: tuple[type[EvidenceError], ...] = tuple(EvidenceError.__subclasses__())
