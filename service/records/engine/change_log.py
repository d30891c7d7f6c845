"""Entries of the change log, as every engine reads and writes them."""

from typing import Final, NamedTuple

#: Characters of the epoch of a commit.
EPOCH_CHARS: Final = 12
#: Before the time of any record, in microseconds.
NO_TIME: Final = -(2**63)


class Change(NamedTuple):
    """An entry of the change log; `fields` are those that changed, None for all.

    `was_at` is the time of the record before the change, `NO_TIME` for none, None if unknown.
    `left_at` is when the change was emitted, if it deleted the record or changed its time.
    """

    version: int
    seq: int
    fields: frozenset[str] | None
    was_at: int | None
    left_at: str | None

    def touches(self, names: frozenset[str]) -> bool:
        """Whether one of some fields changed."""
        return self.fields is None or not names.isdisjoint(self.fields)


class RecordState(NamedTuple):
    """A record that may be deleted; `at` is then the time that it had."""

    key: str
    at: int | None
    deleted_at: str | None
