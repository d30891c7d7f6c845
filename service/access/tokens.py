"""Tokens of this store and their expiry. Only the SHA-256 of a token is kept."""

import secrets
from datetime import UTC, datetime

from evidence.errors import InvalidRequest, Unauthenticated
from evidence.times import microseconds, moment

PREFIX = "rung_"
OWNER_PREFIX = "rung_owner_"
PACKAGE_PREFIX = "rung_pkg_"
# Of sign-in, see `signins`. An ordinary token may begin the same way by chance.
ACCESS_PREFIX = "rung_at_"
REFRESH_PREFIX = "rung_rt_"
CODE_PREFIX = "rung_code_"
TOKEN_BYTES = 32
ID_BYTES = 8

#: A time; None is now, by the clock of this machine.
Now = datetime | None


def new(prefix: str) -> str:
    """A new random token."""
    return prefix + secrets.token_urlsafe(TOKEN_BYTES)


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(ID_BYTES)


def check_expiry(expires_at: str | None) -> None:
    """Raises `InvalidRequest` for an expiry that is not a time."""
    if expires_at is not None and microseconds(expires_at) is None:
        raise InvalidRequest(f"expires_at {expires_at!r} is not an ISO 8601 date-time.")


def check_active(what: str, revoked_at: str | None, expires_at: str | None, now: Now) -> None:
    """Raise `Unauthenticated` (`grant_revoked`, `grant_expired`) if it has ended."""
    status = state(revoked_at, expires_at, now)
    if status == "revoked":
        raise Unauthenticated(
            f"This {what} was revoked by its owner. Ask for a new one.", code="grant_revoked"
        )
    if status == "expired":
        raise Unauthenticated(
            f"This {what} expired at {expires_at}. Ask for a new one.", code="grant_expired"
        )


def state(revoked_at: str | None, expires_at: str | None, now: Now) -> str:
    """`active`, `revoked` or `expired`."""
    if revoked_at:
        return "revoked"
    return "expired" if is_past(expires_at, now) else "active"


def iso(now: Now) -> str:
    """A time as the store writes it."""
    at = now or datetime.now(UTC)
    return moment(microseconds(at.isoformat()) or 0)


def is_past(expires_at: str | None, now: Now = None) -> bool:
    """Return whether a time has passed; true for an unreadable one."""
    if expires_at is None:
        return False
    end = microseconds(expires_at)
    return end is None or end <= (microseconds(iso(now)) or 0)
