"""What a run found, as a table to print and as `docs/benchmarks.md`."""

import os
import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from bench import load, stores
from bench.findings import Finding, Line, Measured, Note
from bench.goals import GOALS, Goal, goal
from bench.peers import environments
from bench.plan import Plan
from evidence.version import VERSION

PAGE = Path("docs/benchmarks.md")
CALM = 0.7  # load average, above which somebody else is at work
COLUMNS = ("work", "goal", "figure", "spread", "")

_TITLES = {
    "search": "Search beside the peers",
    "million": "A million records",
    "fields": "Fields",
    "lists": "Lists and counts",
    "imports": "Imports",
    "footprint": "Memory",
    "budgets": "Sizes",
    "stages": "Where the time of a search goes",
    "upstreams": "Other servers",
    "papers": "Papers",
}

_HEAD = """\
# Benchmarks

Written by `make bench`; do not edit. Each row is a goal of `bench/goals.py`, measured in one run by
the module of its place under `bench/rows/`. Ratios compare servers in the same run on the same
machine; absolute figures are those of this machine only.

How it is measured:

- The corpus is made from a seed: words by Zipf's law, lengths log-normal from 200 characters on
  with some of 200,000, one record in ten with accents, one in forty with Chinese or Japanese; 64
  connections of 4 streams. A field of 100 MB stands in a store of its own.
- Queries are chosen by how many of 100,000 records hold their words: rare (5-30), medium
  (200-1,000), two (both of two words of 1,000-10,000) and common (5-20 %). Mixed means 60 rare,
  80 medium and 60 two.
- Each server is one process on one core, the load generator is on the other. The share of its core
  that the generator used is told beside each figure: well below 100 %, it waited for the server.
- Servers that are compared are up at the same time and loaded in turns, every second round in the
  opposite order. The figure is the median over the rounds, the spread is the least and the most.
- Rung runs with its defaults: it checks the token and the grant, proves its windows, fills both
  channels, and logs every request.
- Peers live in environments of their own and serve `SELECT … snippet() … ORDER BY rank LIMIT 10`
  over the same records in one SQLite file. They keep their connection to it, log nothing, and
  answer stateless JSON. Before anything is measured, every query must find the same records at all
  of them, ties aside.
- The limit endpoint is a Flask application with no token, no grant and no proof: exact bm25 in two
  steps, plain windows, both channels. It is in `bench/peers/limit.py`.
- What is built once stays under `var/bench`, about 15 GB; `make clean` removes it.
"""


def results(plan: Plan, measured: Sequence[Measured], load_before: float) -> dict[str, Any]:
    """A run as JSON. `load_before` is the load average of the machine before it."""
    return {
        "plan": plan.name,
        "sizes": {"small": plan.small, "middle": plan.middle, "large": plan.large},
        "when": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "load_before": load_before,
        "versions": dict(versions()),
        "places": [[one.place, [_line(line) for line in one.lines]] for one in measured],
    }


def _line(line: Line) -> dict[str, Any]:
    if isinstance(line, Finding):
        return {"key": line.key, "rounds": line.rounds}
    return {"what": line.what, "measured": line.measured}


def line_of(line: dict[str, Any]) -> Line:
    if "key" in line:
        return Finding(line["key"], tuple(line["rounds"]))
    return Note(line["what"], line["measured"])


def machine() -> str:
    """Processor, cores, memory, system."""
    said = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    name = next((one.partition(":")[2].strip() for one in said if one.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    cores = len(os.sched_getaffinity(0))
    return f"{name or platform.machine()}, {cores} cores, {memory:.0f} GB, {platform.system()}"


def versions() -> Iterator[tuple[str, str]]:
    yield "Rung", VERSION
    yield "Python", platform.python_version()
    yield "SQLite", sqlite3.sqlite_version
    for name in ("Flask", "gunicorn", "orjson"):
        yield name, version(name)
    for peer in environments.PEERS:
        if peer.python.exists():
            yield peer.packages[0].partition("<")[0], peer.version()
    yield "load generator", load.generator()


def write() -> None:
    """The page from what was kept of the last full run and the last soak, where there was one."""
    kept = stores.HOME / "full.json"
    if kept.exists():
        PAGE.write_text(page(orjson.loads(kept.read_bytes()), _soak()), encoding="utf-8")


def _soak() -> dict[str, Any] | None:
    kept = stores.HOME / "soak.json"
    return orjson.loads(kept.read_bytes()) if kept.exists() else None


def page(found: dict[str, Any], soak: dict[str, Any] | None) -> str:
    """The whole page."""
    places = [(place, [line_of(line) for line in lines]) for place, lines in found["places"]]
    findings = [line for _, lines in places for line in lines if isinstance(line, Finding)]
    findings.sort(key=lambda line: GOALS.index(line.goal))
    parts = [_HEAD, _about(found)]
    parts += ["## Rows\n", _counted(findings), table(findings)]
    parts += _missed(findings)
    for place, lines in places:
        parts += [f"## {_TITLES[place]}\n", *_details(lines)]
    if soak is not None:
        parts += ["## Soak\n", "By `make soak`; the slope leaves out the first quarter.\n"]
        parts.append(markdown(("what", "measured", ""), soak["lines"]))
    return "\n".join(parts).rstrip() + "\n"


def _about(found: dict[str, Any]) -> str:
    sizes = found["sizes"]
    listed = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    said = f"{found['when']}, {found['machine']}; {listed}.\n"
    if found["load_before"] > CALM:
        said += (
            f"\n**The machine was not calm**: its load was {found['load_before']:.1f} before the "
            "run began. Its figures are worth little.\n"
        )
    if found["plan"] != "full":
        said += (
            f"\n**A {found['plan']} run**: {sizes['small']:,}, {sizes['middle']:,} and "
            f"{sizes['large']:,} records stand for the sizes in the rows.\n"
        )
    return said


def _counted(findings: Sequence[Finding]) -> str:
    held = sum(line.verdict == "held" for line in findings)
    left = len(GOALS) - len(findings)
    return f"{held} of {len(findings)} held" + (f", {left} not measured.\n" if left else ".\n")


def _missed(findings: Iterable[Finding]) -> Iterator[str]:
    missed = [line for line in findings if line.verdict == "missed" and line.goal.missed]
    if missed:
        yield "## Missed, and why\n"
        for line in missed:
            yield f"- {line.goal.work}: {line.goal.missed}"
        yield ""


def _details(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        if isinstance(line, Finding):
            yield f"- {line.goal.work}: {line.goal.how}"
    notes = [(line.what, line.measured) for line in lines if isinstance(line, Note)]
    yield ""
    if notes:
        yield markdown(("", ""), notes)


def table(findings: Iterable[Finding]) -> str:
    """Each row with its goal, its figure and whether it is held."""
    rows = []
    for line in findings:
        least, most = line.spread
        spread = f"{shown(least, '')} - {shown(most, '')}" if len(line.rounds) > 1 else ""
        figure = shown(line.figure, line.goal.unit)
        rows.append((line.goal.work, wanted(line.goal), figure, spread, line.verdict))
    return markdown(COLUMNS, rows)


def wanted(goal: Goal) -> str:
    return f"{goal.sign} {goal.goal:,g} {goal.unit}".rstrip()


def shown(value: float, unit: str) -> str:
    """A figure with as many digits as say something."""
    digits = 0 if value >= 1_000 else 1 if value >= 100 else 2 if value >= 0.1 or value == 0 else 4
    return f"{value:,.{digits}f} {unit}".rstrip()


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def printed(line: Line) -> str:
    """A line as the terminal shows it."""
    if isinstance(line, Note):
        return f"    {line.what}: {line.measured}"
    row = line.goal
    figure = shown(line.figure, row.unit)
    return f"{line.verdict:6}  {row.key:14}  {figure} ({wanted(row)})  {row.work}"


def unmeasured(findings: Iterable[Finding]) -> list[Goal]:
    """Rows nobody measured."""
    there = {line.key for line in findings}
    return [goal(one.key) for one in GOALS if one.key not in there]


if __name__ == "__main__":
    write()
    sys.exit(0)
