"""All errors, as one tree.

There is one class per *kind*, a closed set that each surface maps to a status once. *Codes* are an
open set of strings, mostly from PDPP, and the same on every surface. A message describes what is
wrong and what to do.

    EvidenceError
     ├─ InvalidRequest    the request is malformed or out of bounds                   400
     ├─ Unauthenticated   no token, or one that is unknown, expired or revoked      401
     ├─ Forbidden         the token is not allowed to do this                         403
     ├─ NotFound          it does not exist, or this token cannot read it             404
     ├─ Ambiguous         several sources match; `retry_with` names the argument      409
     ├─ Gone              a cursor or bookmark is no longer valid                     410
     ├─ TooLarge          the request or the value exceeds a limit                    413
     ├─ NotText           the field cannot be read as text                            422
     ├─ RateLimited       too many requests                                           429
     ├─ Unavailable       the store or an upstream is unreachable or broken           503
     ├─ TimedOut          the deadline passed                                         504
     └─ Internal          a bug in Rung; the message is fixed, the cause is logged    500
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
        more = {"hint": self.hint, "retry_with": self.retry_with}
        given = {name: text for name, text in more.items() if text}
        return {"code": self.code, "message": self.message, **given, **self.details}


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
        super().__init__(
            message, hint="Try again. If it fails again, report the request id.", **details
        )


#: The kinds, in the order of the tree.
KINDS: tuple[type[EvidenceError], ...] = tuple(EvidenceError.__subclasses__())
