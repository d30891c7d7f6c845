"""The walk on this machine: settings, store, snapshot, disk, port."""

import platform
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.doctor.findings import Finding, Step, fail, ok, skip, walk, warn
from service.settings.explanation import strangers
from service.settings import examine
from service.sources.remote import health_check
from service.papers.snapshot_library import Papers
from service.records.sqlite import checkup
from service.records.sqlite.checkup import Checkup, Foreign, Unreadable

IN_USE = "Address already in use".lower()


@dataclass
class Place:
    """The environment of a service on this machine, and what was found of it."""

    environ: Mapping[str, str]
    file: str  # what is wrong with the configuration file of commands
    reads: bool = False  # whether its commands read from a server
    values: dict[str, Any] = field(default_factory=dict)
    store: Checkup | None = None


def look(environ: Mapping[str, str], file: str = "", *, reads: bool = False) -> Iterator[Finding]:
    """A finding for each thing a service started with this environment stands on.

    `file` is what is wrong with the configuration file of commands, if anything is; `reads` is
    whether commands here read from a server, and need no store.
    """
    return walk(_STEPS, Place(environ, file, reads))


def settings(place: Place) -> Finding:
    found, faults = examine(place.environ)
    place.values = {each.setting.name: each.value for each in found}
    if faults:
        return fail(
            " ".join(faults), "Nothing starts with these.", "`rung config --check` names them."
        )
    changed = [each.setting.variable for each in found if each.origin == "environment"]
    return ok(f"{', '.join(changed)} from the environment" if changed else "all are defaults")


def config(place: Place) -> Finding:
    if not place.file:
        return ok("the configuration file of commands can be read, or is not there")
    told = " ".join(place.file.split())
    return fail(told, "Commands that read do not run.", "Correct the line, or remove the file.")


def names(place: Place) -> Finding:
    found = list(strangers(place.environ))
    if not found:
        return ok("no variable looks like a mistyped one of ours")
    return warn(" ".join(found), "What they should set has its default.", "Correct the names.")


def versions(place: Place) -> Finding:
    told = f"Python {platform.python_version()}, SQLite {checkup.SQLITE}"
    if checkup.has_full_text():
        return ok(f"{told} with FTS5")
    return fail(
        f"{told} without FTS5",
        "Search needs the full-text index of SQLite.",
        "Use a Python whose SQLite has FTS5, such as those of python.org and Debian.",
    )


def store(place: Place) -> Finding:
    path: Path = place.values["store"]
    if place.values["store_url"]:
        return skip("not tried: RUNG_STORE_URL is fetched at start")
    if not path.exists():
        others = [
            name for name in ("upstream_url", "papers_db", "papers_url") if place.values[name]
        ]
        if place.reads:
            return skip(f"{path} is not there, and commands read from a server")
        if others:
            return skip(f"{path} is not there, and others are served")
        return fail(
            f"{path} is not there",
            "There is nothing to serve.",
            "Fill it (`rung import`, `rung demo`), or set RUNG_STORE to the file.",
        )
    deadline = Deadline.after(BUDGETS.doctor_seconds)
    try:
        found = place.store = checkup.examine(path, deadline)
    except Unreadable as error:
        return _unreadable(path, error)
    if not found.readable or not found.has_secret:
        return fail(
            f"{path} was written by another version (layout {found.layout} of {checkup.NEWEST})",
            "It is not served until it is brought up to date.",
            f"rung stats --store {path}",
        )
    if found.damage is not None:
        return fail(
            f"{path} is damaged: {found.damage[:200]}",
            "Answers may be missing or wrong.",
            f"rung stats --reindex --store {path} rebuilds the index. If more is damaged, put a "
            "copy in its place, or import into a new store.",
        )
    if not found.servable:
        return fail(
            f"{path} cannot be served from a folder that cannot be written",
            "It keeps a log, which SQLite needs beside it for reading too.",
            f"Let this user write to {path.parent}; or have the store fetched at start by "
            "RUNG_STORE_URL, which needs no disk but TMPDIR.",
        )
    more = "" if found.checked else "; it is too large to be looked through here"
    return ok(f"{path} opens, {found.records} records, layout {found.layout}{more}")


def _unreadable(path: Path, error: Unreadable) -> Finding:
    told = f"{path} cannot be read: {error}"
    if isinstance(error, Foreign):
        return fail(told, "It is no store of Rung.", "Set RUNG_STORE to the file of a store.")
    return fail(
        told,
        "The file or its folder may not be read; or the folder cannot be written, which a store "
        "that was written to needs.",
        "Give this user both, or have the store fetched at start by RUNG_STORE_URL.",
    )


def permissions(place: Place) -> Finding:
    path: Path = place.values["store"]
    assert place.store is not None, "store comes before"
    if place.store.private:
        return ok(f"nobody else can read {path}")
    return warn(
        f"others on this machine can read {path}",
        "It holds records, and the secret of this deployment.",
        f"chmod 600 {path}",
    )


def grants(place: Place) -> Finding:
    assert place.store is not None, "store comes before"
    counts = place.store.grants
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    if counts["active"]:
        return ok(told)
    return warn(
        told, "No token opens this store.", "rung grant create --connection ID --label NAME"
    )


def snapshot(place: Place) -> Finding:
    path = place.values["papers_db"]
    if place.values["papers_url"]:
        return skip("not tried: RUNG_PAPERS_URL is fetched at start")
    if path is None:
        return ok("none is named")
    status = _within(BUDGETS.doctor_seconds, Papers(path).status)
    if status is None:
        return warn(
            f"{path} is still being opened",
            "A large snapshot is read through once.",
            "Look at /readyz of the service.",
        )
    if status["status"] != "ready":
        return fail(
            f"{path} is refused: {status['refused']}",
            "Papers answer 503.",
            "Put a good snapshot there: rung papers swap.",
        )
    return ok(f"{path} opens, {status['papers']} papers")


def _within(seconds: float, ask: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """What is answered in time."""
    found: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: found.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None


def disk(place: Place) -> Finding:
    folders = {_there(place.values["store"].parent), Path(tempfile.gettempdir())}
    if place.values["papers_db"] is not None:
        folders.add(_there(place.values["papers_db"].parent))
    free = {folder: shutil.disk_usage(folder).free for folder in sorted(folders)}
    told = ", ".join(f"{size // 1_048_576} MB at {folder}" for folder, size in free.items())
    if min(free.values()) < BUDGETS.disk_free_bytes:
        return warn(
            f"free: {told}",
            "An import, a snapshot that is fetched or kept assets may not fit.",
            "Free space there, or set RUNG_STORE, RUNG_PAPERS_DB or TMPDIR to another disk.",
        )
    return ok(f"free: {told}")


def _there(folder: Path) -> Path:
    return next(one for one in (folder.absolute(), *folder.absolute().parents) if one.is_dir())


def port(place: Place) -> Finding:
    number: int = place.values["port"]
    reason = health_check.free("127.0.0.1", number)
    if reason is None:
        return ok(f"{number} is free")
    meaning = "Rung may be running already." if reason == IN_USE else "This user may not use it."
    return warn(
        f"{number} cannot be listened on: {reason}",
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
