"""`python -m bench [--quick] [--only | --without GROUP ...] [--gate]`: measures `goals.py`.

The full run writes `docs/benchmarks.md`, the quick one `var/bench/quick.md`. `--only` measures some
groups and replaces them in the saved run, if there is one. `--without` skips groups and writes a
page that names their rows. A missed goal fails the run only with `--gate`; a row that was not
measured always does.
"""

import argparse
import importlib
import os
import sys
import time
import traceback

import orjson

from bench import goals, report, stores
from bench.findings import Finding, Measured, Note
from bench.plan import FULL, QUICK, Plan

#: They run in this order, because some use what earlier ones build.
GROUPS = goals.groups()


def measure(plan: Plan, groups: list[str]) -> list[Measured]:
    """Measures the groups in order and prints each line as soon as it is known."""
    found = []
    for group in groups:
        print(f"-- {group}", flush=True)
        begun = time.perf_counter()
        one = Measured(group)
        try:
            for line in importlib.import_module(f"bench.rows.{group}").measure(plan):
                one.lines.append(line)
                print(report.printed(line), flush=True)
        except Exception as error:  # the other groups can still be measured
            traceback.print_exc()
            what = "these measurements ended early, with the error"
            one.lines.append(Note(what, f"{type(error).__name__}: {error}"[:300]))
        print(f"    ({time.perf_counter() - begun:.0f} s)", flush=True)
        found.append(one)
    return found


def main() -> int:
    """Measures, prints and saves the results."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, under two minutes")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    some.add_argument("--without", nargs="+", choices=GROUPS, metavar="GROUP", default=[])
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a goal is missed")
    asked = parser.parse_args()
    plan = QUICK if asked.quick else FULL
    stores.HOME.mkdir(parents=True, exist_ok=True)
    calm = os.getloadavg()[0]
    groups = asked.only or [group for group in GROUPS if group not in asked.without]
    begun = time.perf_counter()
    measured = measure(plan, groups)
    findings = [line for one in measured for line in one.lines if isinstance(line, Finding)]
    missed = [line for line in findings if line.verdict == "missed"]
    left = [row for row in report.unmeasured(findings) if row.group in groups]
    for row in left:
        print(f"not measured: {row.work}")
    found = report.results(plan, measured, calm, time.perf_counter() - begun)
    if asked.only:
        found = report.replaced(found)
    if found is not None:
        (stores.HOME / f"{plan.name}.json").write_bytes(orjson.dumps(found))
        (stores.HOME / f"{plan.name}.md").write_text(report.read(found, None), encoding="utf-8")
        if plan is FULL:
            report.write()
    print(f"{len(findings) - len(missed)} of {len(findings)} held")
    return 1 if left or (missed and asked.gate) else 0


if __name__ == "__main__":
    sys.exit(main())
