"""Checks this machine: settings, store, snapshot, disk, port."""

import platform
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.errors import EvidenceError
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.doctor.findings import Finding, Step, fail, ok, skip, walk, warn
from service.place import Database, Place
from service.records.opening import open_reader
from service.settings.explanation import strangers
from service.settings import examine
from service.sources.remote import health_check
from service.papers.snapshot_library import Papers
from service.records.sqlite import checkup
from service.records.sqlite.checkup import Checkup, Foreign, Unreadable

IN_USE = "Address already in use".lower()


@dataclass
class Host:
    """The environment of a service on this machine, with the findings so far."""

    environ: Mapping[str, str]
    file: str  # the fault in the configuration file of commands
    reads: bool = False  # whether its commands read from a server
    values: dict[str, Any] = field(default_factory=dict)
    store: Checkup | None = None


def look(environ: Mapping[str, str], file: str = "", *, reads: bool = False) -> Iterator[Finding]:
    """A finding for each requirement of a service started with this environment.

    `file` is the fault in the configuration file of commands, if any; `reads` is
    True if commands here read from a server, and need no store.
    """
    return walk(_STEPS, Host(environ, file, reads))


def settings(place: Host) -> Finding:
    effective, faults = examine(place.environ)
    place.values = {each.setting.name: each.value for each in effective}
    if faults:
        return fail(
            " ".join(faults),
            "The service does not start with these settings.",
            "Run `rung config --check` to list them.",
        )
    changed = [each.setting.variable for each in effective if each.origin == "environment"]
    return ok(f"{', '.join(changed)} from the environment" if changed else "all are defaults")


def config(place: Host) -> Finding:
    if not place.file:
        return ok("the configuration file is valid, or does not exist")
    fault = " ".join(place.file.split())
    return fail(fault, "Commands that read records fail.", "Correct the line, or remove the file.")


def names(place: Host) -> Finding:
    typos = list(strangers(place.environ))
    if not typos:
        return ok("no variable looks like a misspelled setting")
    return warn(" ".join(typos), "The intended settings have their defaults.", "Correct the names.")


def versions(place: Host) -> Finding:
    message = f"Python {platform.python_version()}, SQLite {checkup.SQLITE}"
    if checkup.has_full_text():
        return ok(f"{message} with FTS5")
    return fail(
        f"{message} without FTS5",
        "Search needs the full-text index of SQLite.",
        "Use a Python whose SQLite has FTS5, such as those of python.org and Debian.",
    )


def store(place: Host) -> Finding:
    path: Place = place.values["store"]
    if place.values["store_url"]:
        return skip("not checked: RUNG_STORE_URL is downloaded at start")
    if not isinstance(path, Path):
        return _database(path)
    if not path.exists():
        others = [
            name for name in ("upstream_url", "papers_db", "papers_url") if place.values[name]
        ]
        if place.reads:
            return skip(f"{path} does not exist; commands read from a server")
        if others:
            return skip(f"{path} does not exist; other sources are served")
        return fail(
            f"{path} does not exist",
            "There is nothing to serve.",
            "Create it (`rung import`, `rung demo`), or set RUNG_STORE to another path.",
        )
    deadline = Deadline.after(BUDGETS.doctor_seconds)
    try:
        examined = place.store = checkup.examine(path, deadline)
    except Unreadable as error:
        return _unreadable(path, error)
    if not examined.readable or not examined.has_secret:
        return fail(
            f"{path} was written by another version (layout {examined.layout} of {checkup.NEWEST})",
            "It is not served by this version.",
            (
                "Install the version of Rung that wrote it, or a later one."
                if examined.layout > checkup.NEWEST
                else f"rung stats --store {path}"
            ),
        )
    if examined.damage is not None:
        return fail(
            f"{path} is damaged: {examined.damage[:200]}",
            "Answers may be missing or wrong.",
            f"rung stats --reindex --store {path} rebuilds the index. If more is damaged, put a "
            "copy in its place, or import into a new store.",
        )
    if not examined.servable:
        return fail(
            f"{path} cannot be served from a read-only directory",
            "It has a write-ahead log, for which SQLite needs a writable directory even to read.",
            f"Make {path.parent} writable for this user, or download the store at start with "
            "RUNG_STORE_URL, which needs no disk but TMPDIR.",
        )
    more = "" if examined.checked else "; too large to check here"
    return ok(f"{path} opens, {examined.records} records, layout {examined.layout}{more}")


def _database(place: Database) -> Finding:
    engine = open_reader(place)
    try:
        with engine.snapshot(BUDGETS.doctor_seconds):
            return ok(f"{place} answers and has a store")
    except EvidenceError as error:
        return fail(
            f"{place} cannot be read: {error.message}",
            "Records return 503.",
            "Check the address, and that the database is up. `rung import` makes the tables.",
        )
    finally:
        engine.close()


def _unreadable(path: Path, error: Unreadable) -> Finding:
    message = f"{path} cannot be read: {error}"
    if isinstance(error, Foreign):
        return fail(message, "It is not a Rung store.", "Set RUNG_STORE to the path of a store.")
    return fail(
        message,
        "The file or its directory is not readable, or the directory is not writable, which a "
        "store that was written to needs.",
        "Give this user both permissions, or download the store at start with RUNG_STORE_URL.",
    )


def permissions(place: Host) -> Finding:
    path: Place = place.values["store"]
    if not isinstance(path, Path):
        return _role(path)
    assert place.store is not None, "store comes before"
    if place.store.private:
        return ok(f"other users cannot read {path}")
    return warn(
        f"other users of this machine can read {path}",
        "It contains the records and the secret key.",
        f"chmod 600 {path}",
    )


def _role(place: Database) -> Finding:
    from service.records.postgres import checkup as database

    if not database.sees_everything(place.url):
        return ok("the role sees the connections that a request names, and no other")
    return warn(
        "the role of the service can read every record",
        "The check of each grant is the only wall.",
        f"Import as this role, and serve as a second one: {database.SECOND_ROLE}",
    )


def grants(place: Host) -> Finding:
    if place.store is None:
        return skip("see them with rung grant list")
    counts = place.store.grants
    message = ", ".join(f"{count} {state}" for state, count in counts.items())
    if counts["active"]:
        return ok(message)
    return warn(
        message, "No token can read this store.", "rung grant create --connection ID --label NAME"
    )


def snapshot(place: Host) -> Finding:
    path = place.values["papers_db"]
    if place.values["papers_url"]:
        return skip("not checked: RUNG_PAPERS_URL is downloaded at start")
    if path is None:
        return ok("none is configured")
    status = _within(BUDGETS.doctor_seconds, Papers(path).status)
    if status is None:
        return warn(
            f"{path} is still being opened",
            "A large snapshot is checked once, which takes time.",
            "Check /readyz of the service.",
        )
    if status["status"] != "ready":
        return fail(
            f"{path} is refused: {status['refused']}",
            "Papers return 503.",
            "Replace it with a valid snapshot: rung papers swap.",
        )
    return ok(f"{path} opens, {status['papers']} papers")


def _within(seconds: float, ask: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """The result, if it arrives in time."""
    results: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: results.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else None


def disk(place: Host) -> Finding:
    folders = {_there(place.values["store"].parent), Path(tempfile.gettempdir())}
    if place.values["papers_db"] is not None:
        folders.add(_there(place.values["papers_db"].parent))
    free = {folder: shutil.disk_usage(folder).free for folder in sorted(folders)}
    space = ", ".join(f"{size // 1_048_576} MB at {folder}" for folder, size in free.items())
    if min(free.values()) < BUDGETS.disk_free_bytes:
        return warn(
            f"free: {space}",
            "An import, a downloaded snapshot or cached assets may not fit.",
            "Free space there, or set RUNG_STORE, RUNG_PAPERS_DB or TMPDIR to another disk.",
        )
    return ok(f"free: {space}")


def _there(folder: Path) -> Path:
    return next(one for one in (folder.absolute(), *folder.absolute().parents) if one.is_dir())


def port(place: Host) -> Finding:
    number: int = place.values["port"]
    reason = health_check.free("127.0.0.1", number)
    if reason is None:
        return ok(f"{number} is free")
    meaning = (
        "Rung may be running already."
        if reason == IN_USE
        else ("This user is not allowed to use it.")
    )
    return warn(
        f"cannot listen on {number}: {reason}",
        meaning,
        f"If it is not Rung: PORT={number + 1 if number < 65_535 else 8_000}",
    )


_STEPS = (
    Step("settings", settings),
    Step("names", names),
    Step("config", config),
    Step("versions", versions),
    Step("store", store),
    Step("files", permissions, ("store",)),
    Step("grants", grants, ("store",)),
    Step("snapshot", snapshot),
    Step("disk", disk),
    Step("port", port),
)
