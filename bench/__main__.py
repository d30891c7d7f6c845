"""`python -m bench [--quick] [--only | --without PLACE ...] [--gate]`: measures `goals.py`.

The full run writes `docs/benchmarks.md`, the quick one `var/bench/quick.md`; a run of `--only` some
places prints only, one `--without` some writes a page that names them. A row that is missed is no
failure, unless `--gate`; one that was not measured is.
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

#: In this order: what others stand on comes first.
PLACES = goals.places()


def measure(plan: Plan, places: list[str]) -> list[Measured]:
    """The places one after the other, each line printed as soon as it is known."""
    found = []
    for place in places:
        print(f"-- {place}", flush=True)
        begun = time.perf_counter()
        one = Measured(place)
        try:
            for line in importlib.import_module(f"bench.rows.{place}").measure(plan):
                one.lines.append(line)
                print(report.printed(line), flush=True)
        except Exception as error:  # the other places can still be measured
            traceback.print_exc()
            one.lines.append(Note("stopped by", f"{type(error).__name__}: {error}"[:300]))
        print(f"    ({time.perf_counter() - begun:.0f} s)", flush=True)
        found.append(one)
    return found


def main() -> int:
    """Measures, prints, and keeps what was found."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, under two minutes")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--only", nargs="+", choices=PLACES, metavar="PLACE", help=", ".join(PLACES))
    some.add_argument("--without", nargs="+", choices=PLACES, metavar="PLACE", default=[])
    parser.add_argument("--gate", action="store_true", help="exit with 1 where a row is missed")
    asked = parser.parse_args()
    plan = QUICK if asked.quick else FULL
    stores.HOME.mkdir(parents=True, exist_ok=True)
    calm = os.getloadavg()[0]
    places = asked.only or [place for place in PLACES if place not in asked.without]
    begun = time.perf_counter()
    measured = measure(plan, places)
    findings = [line for one in measured for line in one.lines if isinstance(line, Finding)]
    missed = [line for line in findings if line.verdict == "missed"]
    left = [row for row in report.unmeasured(findings) if row.place in places]
    for row in left:
        print(f"not measured: {row.work}")
    if not asked.only:
        found = report.results(plan, measured, calm, time.perf_counter() - begun)
        (stores.HOME / f"{plan.name}.json").write_bytes(orjson.dumps(found))
        (stores.HOME / f"{plan.name}.md").write_text(report.read(found, None), encoding="utf-8")
        if plan is FULL:
            report.write()
    print(f"{len(findings) - len(missed)} of {len(findings)} held")
    return 1 if left or (missed and asked.gate) else 0


if __name__ == "__main__":
    sys.exit(main())
