"""Explains SQLite errors to the owner of a store."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from evidence.errors import Unavailable


@contextmanager
def explain_failures() -> Iterator[None]:
    """Turns errors of SQLite into `Unavailable` with what to do."""
    try:
        yield
    except sqlite3.Error as error:
        advice = (
            "Check the free space, the permissions of its directory, and whether the disk became "
            "read-only."
        )
        if isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error):
            advice = "If only its index is damaged, `rung check --repair` rebuilds it."
        raise Unavailable(f"The store cannot be used: {error}.", hint=advice) from error
