"""The errors for a store that cannot be read, the same for every engine."""

from evidence.errors import TimedOut, Unavailable

NEWER = "was written by a newer version of Rung. Install that version or a later one"


def timed_out() -> TimedOut:
    return TimedOut(
        "Reading the store took too long. Narrow the request by stream, connection or filter."
    )


def absent() -> Unavailable:
    return _unavailable(
        "does not exist or is not readable. If it does not exist, create it with `rung import`; "
        "otherwise, check its permissions."
    )


def busy() -> Unavailable:
    return Unavailable(
        "Another process is writing to the same records. Try again.", code="store_unavailable"
    )


def index_damaged() -> Unavailable:
    """The error for a store whose full-text index lacks words of its records."""
    return Unavailable(
        "The store's full-text index is damaged, so a search would miss records. The owner can "
        "rebuild the index with `rung check --repair`. Listing and reading by id still work.",
        code="store_unavailable",
    )


def locked_away() -> Unavailable:
    return _unavailable(
        "cannot be opened. The file must be readable, and its folder writable. On a read-only "
        "disk, set RUNG_STORE_URL."
    )


def of_another_version(*, newer: bool) -> Unavailable:
    why = NEWER if newer else "was written by an older version. Upgrade it with `rung stats`"
    return _unavailable(f"{why}.")


def unreadable() -> Unavailable:
    return _unavailable("cannot be read. Its owner can find the reason with `rung doctor`.")


def _unavailable(why: str) -> Unavailable:
    return Unavailable(f"The store {why}", code="store_unavailable")
