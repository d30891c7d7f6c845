"""Checks the sources of the store: the owner's file, the clock, and each source."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from evidence.errors import EvidenceError
from service.access.entries import Entries
from service.access.sidecar import BEHIND, Rows
from service.doctor.findings import Finding, ok, problem, skip
from service.place import Place
from service.records.freshness import OK, PAUSED, Freshness, all_sources
from service.records.sidecar import open_sidecar
from service.syncing.connector import SourceSettings
from service.syncing.owner_file import OwnerFile
from service.syncing.syncing import kind_of


def look(config: Path, store: Place, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Findings about the owner's file, the clock and each source; none without sources.

    The file is beside the configuration file `config`; `RUNG_SOURCES` in `environ` replaces it.
    """
    now, states = datetime.now(UTC), dict[str, Freshness]()
    try:
        sources = OwnerFile(config, store, environ).sources()
        with closing(open_sidecar(store)) as sidecar:
            if sources and store.exists() and sidecar.exists():
                states = all_sources(Entries(sidecar))
                with sidecar.transaction(writes=False) as rows:
                    now = rows.now
                    yield replace(_clock(rows), step="clock")
    except (EvidenceError, OSError) as error:
        yield replace(problem("sources-unreadable", fault=str(error)), step="sources")
        return
    for name, source in sources.items():
        yield replace(_source(source, states.get(name), now), step="source")


def _clock(rows: Rows) -> Finding:
    """Compares the clock with the latest time of the store, and with that of its database."""
    off = max(rows.mark - rows.clock, abs(rows.ahead))
    if off > BEHIND:
        return problem("clock-off", seconds=int(off.total_seconds()))
    return ok(f"{rows.clock:%Y-%m-%d %H:%M} UTC")


def _source(source: SourceSettings, state: Freshness | None, now: datetime) -> Finding:
    """Reaches a source and signs in, then looks at its last rounds."""
    name = source.name
    if source.paused:
        return skip(f"{name} is paused. To resume it, run: rung source resume {name}")
    try:
        with closing(kind_of(source.kind).open(source)) as connector:
            connector.check()
    except Exception as error:  # also one of a library or another package
        fault = error.text if isinstance(error, EvidenceError) else type(error).__name__
        return problem("source-fails", name=name, fault=fault)
    if state is None:
        return problem("source-new", name=name)
    current = state.state(now)
    if current == OK:
        return ok(state.described(now))
    waits = "source-waits" if current == PAUSED else "source-stale"
    return problem(waits, name=name, state=state.described(now))
