"""All errors, as one tree.

One class per *kind* (a closed set: each surface maps it to a status once); *codes* are open
strings in PDPP's words and travel unchanged to every surface. Messages tell readers what to do.

    EvidenceError
     ├─ InvalidRequest    the request cannot be understood or is out of bounds        400
     ├─ Unauthenticated   no token, or one that is unknown, expired or revoked      401
     ├─ Forbidden         the token may not do this                                   403
     ├─ NotFound          nothing there, or nothing this token may see                404
     ├─ Ambiguous         several sources match; `retry_with` names the argument      409
     ├─ Gone              a cursor or bookmark that no longer works                   410
     ├─ TooLarge          the request or the value passes a bound                     413
     ├─ NotText           the field cannot be read as text                            422
     ├─ RateLimited       too many requests                                           429
     ├─ Unavailable       something behind us is unreachable or broken                503
     ├─ TimedOut          the deadline passed                                         504
     └─ Internal          a fault of ours; the message is fixed, the cause is logged  500
"""

from typing import Any, ClassVar, Final


class EvidenceError(Exception):
    """A typed error: `code`, `message`, a `hint`, and what to retry with.

    `details` are extra members of the error object (JSON values), such as `param`,
    `available_connections` or `did_you_mean`. `calls` are ready calls (`Continuation`s) that
    would work instead.
    """

    kind: ClassVar[str] = "internal"
    default_code: ClassVar[str] = "api_error"

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

    def body(self) -> dict[str, Any]:
        """The error object as every surface shows it, without request id and HTTP type."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            error["hint"] = self.hint
        if self.retry_with:
            error["retry_with"] = self.retry_with
        error.update(self.details)
        return error


class InvalidRequest(EvidenceError):
    kind = "invalid"
    default_code = "invalid_request"


class Unauthenticated(EvidenceError):
    kind = "unauthenticated"
    default_code = "authentication_error"


#: Codes of a token that was sent: it is unknown, or its grant has ended. Without a token the code
#: is `authentication_error`.
UNKNOWN_TOKEN: Final = "invalid_token"
ENDED: Final = ("grant_expired", "grant_revoked")


class Forbidden(EvidenceError):
    kind = "forbidden"
    default_code = "permission_error"


class NotFound(EvidenceError):
    kind = "not_found"
    default_code = "not_found"


class Ambiguous(EvidenceError):
    kind = "ambiguous"
    default_code = "ambiguous_connection"


class Gone(EvidenceError):
    kind = "gone"
    default_code = "cursor_expired"


class TooLarge(EvidenceError):
    kind = "too_large"
    default_code = "request_too_large"


class NotText(EvidenceError):
    kind = "not_text"
    default_code = "field_not_text"


class RateLimited(EvidenceError):
    kind = "rate_limited"
    default_code = "rate_limit_exceeded"


class Unavailable(EvidenceError):
    kind = "unavailable"
    default_code = "upstream_unreachable"


class TimedOut(EvidenceError):
    kind = "timed_out"
    default_code = "deadline_exceeded"


class Internal(EvidenceError):
    kind = "internal"
    default_code = "api_error"

    def __init__(self, message: str = "Something went wrong on our side.", **details: Any) -> None:
        super().__init__(message, hint="Try again; report the request id if it stays.", **details)


#: The kinds, in the order of the tree.
KINDS: tuple[type[EvidenceError], ...] = tuple(EvidenceError.__subclasses__())
