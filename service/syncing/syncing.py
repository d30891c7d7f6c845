"""Keeps a store up to date with its sources: rounds, their freshness, and what is left of them."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from threading import Event, Thread
from typing import Final

from evidence.errors import EvidenceError, NotFound, Unavailable
from service.access.entries import Entries
from service.place import Place
from service.records import freshness
from service.records.freshness import Freshness
from service.records.intake import Row
from service.records.opening import open_writer
from service.records.sidecar import open_sidecar
from service.records.sql.sources import SourceTables, stored_sources
from service.records.writing import Writing
from service.records.writing.ingest import Batch
from service.records.writing.streams import open_stream
from service.syncing.connector import SourceSettings
from service.syncing.round import Outcome, Round
from service.syncing.table import kind_of

#: After failures, the next round waits for a multiple of the interval, at most so many seconds.
LONGEST_SECONDS: Final = 3_600

stored = stored_sources


def sync(store: Place, source: SourceSettings, *, accept: bool = False) -> Outcome | None:
    """Does a round of a source, and notes its outcome.

    Returns None if the source waits for the owner. Raises `EvidenceError`s.
    """
    with open_writer(store) as writer:
        entries = Entries(open_sidecar(store))
        before = freshness.all_sources(entries).get(source.name)
        if before and before.is_paused and not accept:
            return None
        state = replace(
            before or Freshness(source.name, source.connection, source.every),
            connection=source.connection,
            every=source.every,
            tried_at=_now(entries),
            failure="",
            is_paused=False,
        )
        try:
            with closing(kind_of(source.kind).open(source)) as connector:
                outcome = Round(writer, source, connector, accept=accept).run()
        except EvidenceError as error:
            freshness.save(entries, replace(state, failure=error.message))
            raise
        except Exception as error:  # a library or another package
            failure = f"The source failed: {type(error).__name__}."
            freshness.save(entries, replace(state, failure=failure))
            raise Unavailable(failure) from error
        state = replace(state, is_paused=outcome.is_paused)
        if not outcome.is_paused:
            state = replace(state, synced_at=_now(entries), complete_until=state.tried_at)
        freshness.save(entries, state)
    return outcome


def _now(entries: Entries) -> int:
    with entries.reading() as rows:
        return rows.now


def go_on(
    store: Place, source: SourceSettings, stop: Event, do_round: Callable[[SourceSettings], bool]
) -> None:
    """Does rounds of a source at its interval, and after changes that it notices, until `stop`."""
    due, failures = Event(), 0
    if kind_of(source.kind).watches:
        Thread(target=_watch, args=(source, stop, due.set), daemon=True).start()
    while not stop.is_set():
        due.clear()
        failures = 0 if do_round(source) else failures + 1
        wait = min(source.every << min(failures, 8), max(LONGEST_SECONDS, source.every))
        _wait(stop, due, wait)


def _wait(stop: Event, due: Event, seconds: int) -> None:
    """Waits for one of two events, at most so many seconds."""
    for _ in range(seconds):
        if due.is_set() or stop.wait(1):
            return


def _watch(source: SourceSettings, stop: Event, changed: Callable[[], None]) -> None:
    """Watches a source; after an error, only its interval is left for a while."""
    while not stop.is_set():
        try:
            with closing(kind_of(source.kind).open(source)) as connector:
                connector.watch(stop, changed)
        except Exception:  # the round reports it
            pass
        stop.wait(source.every)


def remove(writer: Writing, name: str, *, with_records: bool) -> int:
    """Removes what the store keeps of a source; returns how many records were removed."""
    tables = SourceTables(writer, name)
    source = tables.source()
    if source is None:
        return 0
    batch = Batch(writer)
    for stream, key in sorted(tables.all_records()) if with_records else ():
        try:
            handle = open_stream(writer, source.connection, stream)
        except NotFound:
            continue
        batch.add(handle, Row({}, key=key, deleted=True))
    batch.flush()
    with writer.transaction():
        tables.remove()
    return batch.counts.deleted
