"""Keeps a store up to date with its sources: rounds, freshness, and removal of a source's data.

Kinds of sources are ours, or those of other packages.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from importlib.metadata import entry_points
from threading import Event, Thread
from typing import Final

from evidence.errors import EvidenceError, InvalidRequest, Unavailable
from evidence.model import members
from service.access.entries import Entries
from service.place import Place
from service.records import freshness
from service.records.freshness import Freshness
from service.records.opening import open_writer
from service.records.sidecar import open_sidecar
from service.records.sql.sources import SourceTables
from service.records.writing import Writing
from service.syncing.connector import Kind, SourceSettings
from service.syncing.kinds import command, dav, folder, imap, web, zotero
from service.syncing.round import Outcome, Round, delete

#: After failures, the next round waits for a multiple of the interval, at most so many seconds.
LONGEST_SECONDS: Final = 3_600

#: The entry points with which other packages add kinds.
GROUP: Final = "rung.sources"
OURS: Final = {
    kind.name: kind
    for kind in (folder.KIND, imap.KIND, *dav.KINDS, zotero.KIND, web.KIND, command.KIND)
}


def sync(store: Place, source: SourceSettings, *, accept: bool = False) -> Outcome:
    """Does a round of a source, unless it waits for the owner, and notes its outcome.

    Raises `EvidenceError`s.
    """
    with open_writer(store) as writer:
        entries = Entries(open_sidecar(store))
        state = Freshness(source.name, source.connection, source.every, tried_at=_now(entries))
        before = freshness.all_sources(entries).get(source.name, state)
        if before.is_paused and not accept:
            return Outcome(waits="Many records are missing from the source")
        state = replace(state, **members(before, "synced_at", "complete_until"))
        try:
            with closing(kind_of(source.kind).open(source)) as connector:
                outcome = Round(writer, source, connector).run(accept=accept)
        except EvidenceError as error:
            freshness.save(entries, replace(state, failure=error.message))
            raise
        except Exception as error:  # a library or another package
            failure = Unavailable(f"The source failed: {type(error).__name__}.")
            freshness.save(entries, replace(state, failure=failure.message))
            raise failure from error
        state = replace(state, is_paused=bool(outcome.waits))
        if not outcome.waits:
            state = replace(state, synced_at=_now(entries), complete_until=state.tried_at)
        freshness.save(entries, state)
    return outcome


def _now(entries: Entries) -> int:
    with entries.reading() as rows:
        return rows.now


def go_on(source: SourceSettings, stop: Event, do_round: Callable[[SourceSettings], bool]) -> None:
    """Does rounds of a source at its interval, and after changes that it notices, until `stop`."""
    due, failures = Event(), 0
    if kind_of(source.kind).watches:
        Thread(target=_watch, args=(source, stop, due.set), daemon=True).start()
    while not stop.is_set():
        due.clear()
        failures = 0 if do_round(source) else failures + 1
        for _ in range(min(source.every << min(failures, 8), max(LONGEST_SECONDS, source.every))):
            if due.is_set() or stop.wait(1):
                break


def _watch(source: SourceSettings, stop: Event, changed: Callable[[], None]) -> None:
    """Watches a source; after an error, only its interval is left for a while."""
    while not stop.is_set():
        # The round reports an error.
        with suppress(Exception), closing(kind_of(source.kind).open(source)) as connector:
            connector.watch(stop, changed)
        stop.wait(source.every)


def remove(writer: Writing, name: str, *, with_records: bool) -> int | None:
    """Removes what the store keeps of a source.

    Returns how many records were removed, or None if the store has no such source.
    """
    tables = SourceTables(writer, name)
    source = tables.source()
    if source is None:
        return None
    records = tables.all_records() if with_records else ()
    deleted = delete(writer, source.connection, records)
    with writer.transaction():
        tables.remove()
    return deleted


def kind_of(name: str) -> Kind:
    """The kind with a name; raises `InvalidRequest` if there is none, or it cannot be loaded."""
    if name in OURS:
        return OURS[name]
    for point in entry_points(group=GROUP, name=name):
        try:
            kind = point.load()
            if not isinstance(kind, Kind):
                raise TypeError(f"{point.value} is not a Kind")
            return kind
        except Exception as error:  # another package may be broken in any way
            what = f"The kind {name!r} of {point.module} cannot be used: {error}."
            raise InvalidRequest(f"{what} Update or uninstall its package.") from error
    raise InvalidRequest(f"There is no kind {name!r}. Available: {', '.join(kinds())}.")


def kinds() -> list[str]:
    """The names of all kinds; ours come first."""
    plugged = {point.name for point in entry_points(group=GROUP)}
    return [*OURS, *sorted(plugged - OURS.keys())]
