"""Checks this machine: its settings, store, snapshot and disk."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.doctor.findings import Finding, Step, ok, problem, skip, walk
from service.place import Place
from service.records.engine.health import EMPTY, Depth, Health, Verdict
from service.records.opening import engine_of
from service.settings.explanation import strangers
from service.settings import examine
from service.sources.remote import health_check
from service.papers.snapshot_library import Papers


@dataclass
class Host:
    """The environment of a service on this machine, with the findings so far."""

    environ: Mapping[str, str]
    file: str  # the fault in the configuration file of commands
    reads: bool = False  # whether commands here read from a server
    values: dict[str, Any] = field(default_factory=dict)
    store: Health | None = None


def look(environ: Mapping[str, str], file: str = "", *, reads: bool = False) -> Iterator[Finding]:
    """A finding for each requirement of a service started with this environment.

    `file` is the fault in the configuration file of commands, if any; `reads` is True if commands
    here read from a server and need no store.
    """
    return walk(_STEPS, Host(environ, file, reads))


def store_finding(values: dict[str, Any]) -> Finding | None:
    """The finding about the store that a service with these values of settings would serve.

    None if there is no store yet, as before a first import, and nothing else to serve.
    """
    host = Host({}, "", values=values)
    finding = None if _lacks_store(values) else store(host)
    is_empty = host.store is not None and host.store.state.problem == EMPTY
    return None if is_empty else finding


def _lacks_store(values: Mapping[str, Any]) -> bool:
    """Whether the only thing to serve is a store file that does not exist yet."""
    alternatives = ("store_url", "upstream_url", "papers_db", "papers_url")
    return not values["store"].exists() and not any(map(values.get, alternatives))


def settings(host: Host) -> Finding:
    effective, faults = examine(host.environ)
    host.values = {entry.setting.name: entry.value for entry in effective}
    if faults:
        return problem("settings-invalid", faults=" ".join(faults))
    changed = [entry.setting.variable for entry in effective if entry.origin == "environment"]
    return ok(
        f"{', '.join(changed)} from the environment"
        if changed
        else "all settings have their defaults"
    )


def config(host: Host) -> Finding:
    if not host.file:
        return ok("the configuration file is valid or does not exist")
    return problem("file-invalid", fault=" ".join(host.file.split()))


def names(host: Host) -> Finding:
    if typos := " ".join(strangers(host.environ)):
        return problem("variables-misspelled", typos=typos)
    return ok("no variable looks like a misspelled setting")


def store(host: Host) -> Finding:
    location: Place = host.values["store"]
    if host.values["store_url"]:
        return skip("not checked: the store is downloaded from RUNG_STORE_URL at startup")
    if not location.exists():
        if host.reads:
            return skip(f"{location} does not exist; commands read from a server")
        if _lacks_store(host.values):
            return problem("store-missing", place=location)
        return skip(f"{location} does not exist; other sources are served")
    deadline = Deadline.after(BUDGETS.doctor_seconds)
    host.store = engine_of(location).check(Depth.SAMPLE, deadline)
    return _finding(host, host.store.state)


def permissions(host: Host) -> Finding:
    assert host.store is not None, "store comes before"
    return _finding(host, host.store.privacy)


def _finding(host: Host, verdict: Verdict) -> Finding:
    if verdict.problem is None:
        return ok(verdict.message)
    facts = {"place": host.values["store"], "reason": verdict.message, **verdict.facts}
    return problem(verdict.problem, **facts)


def grants(host: Host) -> Finding:
    assert host.store is not None, "store comes before"
    counts = host.store.grants
    if counts is None:
        return skip("not checked: to list the grants, run `rung grant list`")
    message = ", ".join(f"{count} {state}" for state, count in counts.items())
    return ok(message) if counts["active"] else problem("no-active-grant", counts=message)


def snapshot(host: Host) -> Finding:
    path = host.values["papers_db"]
    if host.values["papers_url"]:
        return skip("not checked: the snapshot is downloaded from RUNG_PAPERS_URL at startup")
    if path is None:
        return ok("no snapshot is configured")
    try:
        status = health_check.within(BUDGETS.doctor_seconds, Papers(path).status)
    except TimeoutError:
        return problem("snapshot-opening", path=path)
    if status["status"] != "ready":
        return problem("snapshot-refused", path=path, reason=status["refused"])
    return ok(f"{path} can be opened and has {status['papers']} papers")


def disk(host: Host) -> Finding:
    paths = filter(None, (host.values["store"], host.values["papers_db"]))
    above = ((path.parent.absolute(), *path.parent.absolute().parents) for path in paths)
    existing = {next(folder for folder in parents if folder.is_dir()) for parents in above}
    folders = existing | {Path(tempfile.gettempdir())}
    free = {folder: shutil.disk_usage(folder).free for folder in sorted(folders)}
    space = ", ".join(f"{size // 1_048_576} MB at {folder}" for folder, size in free.items())
    if min(free.values()) < BUDGETS.disk_free_bytes:
        return problem("disk-full", space=space)
    return ok(f"free: {space}")


_STEPS = (
    Step("settings", settings),
    Step("names", names),
    Step("config", config),
    Step("store", store),
    Step("files", permissions, ("store",)),
    Step("grants", grants, ("store",)),
    Step("snapshot", snapshot),
    Step("disk", disk),
)
