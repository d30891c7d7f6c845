"""The results of a run: saved as JSON, printed by line, and written as `docs/benchmarks.md`."""

import os
import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from bench import load, page, stores
from bench.findings import Finding, Line, Measured, Note
from bench.goal import Goal
from bench.goals import GOALS, goal, groups
from bench.page import shown, wanted
from bench.peers import environments, scripts
from bench.plan import Plan
from evidence.version import VERSION
from tests.helpers import commits

PAGE = Path("docs/benchmarks.md")


def results(
    plan: Plan, measured: Sequence[Measured], load_before: float, seconds: float
) -> dict[str, Any]:
    """A run as JSON. `load_before` is the machine's load average before the run."""
    return {
        "plan": plan.name,
        "sizes": {"small": plan.small, "middle": plan.middle, "large": plan.large},
        "when": commits.today(),
        "commit": commits.current(PAGE),
        "minutes": seconds / 60,
        "machine": machine(),
        "load_before": load_before,
        "versions": dict(versions(plan)),
        "places": [[one.group, [_line(line) for line in one.lines]] for one in measured],
    }


def replaced(found: dict[str, Any]) -> dict[str, Any] | None:
    """The saved run of the same plan, its groups replaced by those of this run.

    None if no run was saved.
    """
    saved = _saved(found["plan"])
    if saved is None:
        return None
    latest, order = dict((*saved["places"], *found["places"])), groups()
    return {
        **saved,
        "load_before": max(saved["load_before"], found["load_before"]),
        "places": sorted(latest.items(), key=lambda one: order.index(one[0])),
        "again": sorted({*saved.get("again", ()), *(name for name, _ in found["places"])}),
    }


def _saved(name: str) -> dict[str, Any] | None:
    kept = stores.HOME / f"{name}.json"
    return orjson.loads(kept.read_bytes()) if kept.exists() else None


def _line(line: Line) -> dict[str, Any]:
    if isinstance(line, Finding):
        return {"key": line.key, "rounds": line.rounds}
    return {"what": line.what, "measured": line.measured}


def line_of(line: dict[str, Any]) -> Line:
    """The line that was saved as this JSON."""
    if "key" in line:
        return Finding(line["key"], tuple(line["rounds"]))
    return Note(line["what"], line["measured"])


def machine() -> str:
    """Processor, cores, memory, system."""
    cpus = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    name = next((one.partition(":")[2].strip() for one in cpus if one.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    cores = len(os.sched_getaffinity(0))
    return f"{name or platform.machine()}, {cores} cores, {memory:.0f} GB, {platform.system()}"


def versions(plan: Plan) -> Iterator[tuple[str, str]]:
    """The versions of Rung, its dependencies, the peers that run, and the load generator."""
    yield "Rung", VERSION
    yield "Python", platform.python_version()
    yield "SQLite", sqlite3.sqlite_version
    for name in ("Flask", "gunicorn", "orjson"):
        yield name, version(name)
    for peer in (*environments.PEERS, *(scripts.SCRIPTS if plan.scripts else ())):
        yield from peer.versions()
    yield "load generator", load.generator(plan.seconds)


def write() -> None:
    """Writes the page from the last full run and the last soak, if they were saved."""
    saved = _saved("full")
    if saved is not None:
        PAGE.write_text(read(saved, _saved("soak")), encoding="utf-8")


def read(found: dict[str, Any], soak: dict[str, Any] | None) -> str:
    """The page of a saved run."""
    places = [(place, [line_of(line) for line in lines]) for place, lines in found["places"]]
    return page.page({**found, "places": places}, soak)


def printed(line: Line) -> str:
    """A line as the terminal shows it."""
    if isinstance(line, Note):
        return f"    {line.what}: {line.measured}"
    row = line.goal
    figure = shown(line.figure, row.unit)
    return f"{line.verdict:6}  {row.key:14}  {figure} ({wanted(row)})  {row.work}"


def unmeasured(findings: Iterable[Finding]) -> list[Goal]:
    """The rows that were not measured."""
    there = {line.key for line in findings}
    return [goal(one.key) for one in GOALS if one.key not in there]


if __name__ == "__main__":
    write()
    sys.exit(0)
