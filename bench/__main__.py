"""`python -m bench [--quick] [--no-gate]`: prints one table; exits with 1 for a missed goal."""

import argparse
import sys

from bench import goals, run


def main() -> int:
    """Measures everything once and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--quick", action="store_true", help="20,000 records and fewer requests")
    parser.add_argument("--no-gate", action="store_true", help="exit with 0 whatever was measured")
    asked = parser.parse_args()
    plan = run.QUICK if asked.quick else run.FULL
    lines = list(run.measure(plan))
    print(goals.table(lines))
    missed = [line for line in lines if line.holds is False]
    return 1 if missed and not asked.no_gate else 0


if __name__ == "__main__":
    sys.exit(main())
