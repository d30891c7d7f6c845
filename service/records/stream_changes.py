"""Finds which streams of a store changed after a position in its change log."""

from datetime import datetime
from typing import Final, NamedTuple

from service.records.engine.change_log import commit_time
from service.records.engine.engine import Reader

#: How long the change log may be read; the first time, all of it is.
READ_SECONDS: Final = 60.0


class LogPosition(NamedTuple):
    """A version of the change log, with the epoch of its commit."""

    version: int = 0
    epoch: str | None = None


class ChangedStream(NamedTuple):
    """A stream, how many of its records changed, and the time of the newest commit of a change."""

    connection_id: str
    stream: str
    records: int
    at: datetime


def changes_after(reader: Reader, position: LogPosition) -> tuple[list[ChangedStream], LogPosition]:
    """The streams that changed after a position, and the new position.

    Of all streams, all changes, if the store was replaced or an older one restored.
    """
    with reader.snapshot(READ_SECONDS) as snapshot:
        snapshot.confine(None)
        same = snapshot.epoch(position.version) == position.epoch
        start = position.version if same else 0
        changes = snapshot.changed_streams(start)
        version = max((change.version for change in changes), default=start)
        streams = [
            ChangedStream(*change[:3], commit_time(snapshot.epoch(change.version) or ""))
            for change in changes
        ]
        return streams, LogPosition(version, snapshot.epoch(version))
