"""The errors of a store that cannot be read, for every engine."""

from evidence.errors import TimedOut, Unavailable


def timed_out() -> TimedOut:
    return TimedOut("The store took too long. Narrow the request by stream, connection or filter.")


def absent() -> Unavailable:
    return _unavailable("does not exist or is not readable. Create it with `rung import`.")


def of_another_version() -> Unavailable:
    return _unavailable("was written by another version. Upgrade it with `rung stats`.")


def unreadable() -> Unavailable:
    return _unavailable("cannot be read. Its owner can find the reason with `rung doctor`.")


def _unavailable(why: str) -> Unavailable:
    return Unavailable(f"The store {why}", code="store_unavailable")
