"""`python -m tests.figures [ROW ...] [--short]`: runs the rows of docs/figures.md and writes it.

Without rows, all but the long ones run. `--short` runs the short form of the commands,
which `make test-all` does not run, and writes nothing. Other options are passed to the commands of
the rows: `make figures ROWS="14 --records 20000"`.
"""

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import orjson

from tests.figures.audit import NOT_CHECKED
from tests.figures.rows import ROWS, Row
from tests.helpers import commits
from tests.helpers.alone import leave_home

RESULTS = Path(__file__).with_name("results.json")
#: Rows that run at the same time, because most of a row is waiting.
AT_ONCE = 3
PAGE = Path(__file__).resolve().parents[2] / "docs" / "figures.md"
#: A row stays open if what it needs was not there.
OUTCOMES = {True: "passed", False: "**failed**", None: "**open: not checked**"}
HEAD = """# Fault tests

For each row, tests inject a fault and check that Rung behaves as the third column requires.
[rows.py](../tests/figures/rows.py) lists the tests. `make figures` runs them and writes this page.
The tests of rows 14 and 17 take up to an hour and run only if `ROWS` names these rows; otherwise,
the table shows their last result. A row is open if it could not be checked, for example because no
vulnerability database answered.

| # | fault | expected behavior | result | tests | counts | seconds | date | commit |
|---|---|---|---|---|---|---|---|---|
"""


def main() -> int:
    """Runs the rows; returns 0 if all of them passed."""
    leave_home()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, metavar="ROW")
    parser.add_argument("--short", action="store_true")
    asked, more = parser.parse_known_args()
    chosen = [row for row in ROWS if row.number in asked.rows or not (asked.rows or row.long)]
    if asked.short:
        return int(any([_command(row.short, Counter()) for row in ROWS if row.short]))
    began, held = perf_counter(), True
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(_run, row, more): row for row in chosen}
        for done in as_completed(running):
            row, result = running[done], done.result()
            held &= result["held"] is True
            print(f"row {row.number}: {result}", flush=True)
            # Read now, because another run may have written since.
            known = orjson.loads(RESULTS.read_bytes()) if RESULTS.exists() else {}
            known[str(row.number)] = result
            RESULTS.write_bytes(orjson.dumps(known, option=orjson.OPT_INDENT_2) + b"\n")
            PAGE.write_text(page(known), encoding="utf-8")
    print(f"{len(chosen)} rows took {perf_counter() - began:.0f} s")
    return int(not held)


def _run(row: Row, more: list[str]) -> dict[str, Any]:
    began, result = perf_counter(), Counter[str]()
    held = _pytest(row.tests, result) if row.tests else True
    status = _command((*row.command, *more), result) if row.command else 0
    return {
        "held": None if held and status == NOT_CHECKED else held and status == 0,
        "tests": result.pop("tests", 0),
        "skipped": result.pop("skipped", 0),
        "counts": dict(result),
        "seconds": round(perf_counter() - began),
        "date": commits.today(),
        "commit": commits.current(RESULTS, PAGE),
    }


def _command(words: tuple[str, ...], result: Counter[str]) -> int:
    """Runs a command, and adds what it prints as `count NAME=NUMBER`; returns its exit status."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    for line in done.stdout.splitlines():
        if line.startswith("count "):
            name, _, value = line.removeprefix("count ").rpartition("=")
            result[name] += int(value)
    return done.returncode


def _pytest(tests: tuple[str, ...], result: Counter[str]) -> bool:
    """Runs tests in their full form, and adds what they counted."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-o", "junit_family=xunit1"]
        command += [f"--junitxml={report}", *tests]
        done = subprocess.run(command, env={**os.environ, "FIGURES": "full"}, check=False)
        if not report.exists():
            return False
        suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None, "pytest writes one suite"
    for name in ("tests", "skipped"):
        result[name] = int(suite.attrib[name])
    for counted in suite.iter("property"):
        if counted.attrib["value"].isdigit():  # Hypothesis adds properties of its own
            result[counted.attrib["name"]] += int(counted.attrib["value"])
    return done.returncode == 0


def page(results: dict[str, Any]) -> str:
    """The page with the last result of each row."""
    lines = []
    for row in ROWS:
        last = results.get(str(row.number))
        cells = [str(row.number), row.done, row.holds]
        if last is None:
            cells += ["not run yet", "", "", "", "", ""]
        else:
            counts = ", ".join(f"{count:,} {name}" for name, count in last["counts"].items())
            skipped = f" ({last['skipped']} skipped)" if last["skipped"] else ""
            cells += [OUTCOMES[last["held"]]]
            cells += [f"{last['tests']}{skipped}" if last["tests"] else ""]
            cells += [counts, str(last["seconds"]), last["date"], last.get("commit", "")]
        lines.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
