"""Change-log entries and commit epochs, as every engine reads and writes them."""

import base64
import secrets
from datetime import UTC, datetime
from typing import Final, NamedTuple

#: Characters of the epoch of a commit: its time, then random bits.
EPOCH_CHARS: Final = 12
_TIME_BYTES, _RANDOM_BYTES = 5, 4
#: Ticks of the time in an epoch.
_TICKS_PER_SECOND: Final = 100
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


class StreamChange(NamedTuple):
    """A stream with changes after a version: its changed records, deleted ones too, and the newest
    version."""

    connection_id: str
    stream: str
    records: int
    version: int


def new_epoch() -> str:
    """The epoch of a commit that is made now."""
    ticks = int(datetime.now(UTC).timestamp() * _TICKS_PER_SECOND)
    raw = ticks.to_bytes(_TIME_BYTES, "big") + secrets.token_bytes(_RANDOM_BYTES)
    return base64.urlsafe_b64encode(raw).decode()


def commit_time(epoch: str) -> datetime:
    """The time in an epoch, but at most now: epochs of older versions of Rung have none."""
    ticks = int.from_bytes(base64.urlsafe_b64decode(epoch)[:_TIME_BYTES], "big")
    now = datetime.now(UTC)
    return datetime.fromtimestamp(min(ticks / _TICKS_PER_SECOND, now.timestamp()), UTC)
