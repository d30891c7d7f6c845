"""A long run of schemathesis over both surfaces: `python -m tests.fuzz --examples 200`.

Fills the demo, asks everything `/openapi.json` describes, and ends with 1 where an answer was not
as described. tests/spec/test_openapi_fuzz.py is the short form of it.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from flask import Flask

from service import bootstrap, settings
from service.app import create_app
from service.demo.fill import fill, token_for
from service.demo.papers import write
from service.records.sqlite.writer import open_writer
from tests.helpers.fuzzing import KNOWN_PAPERS, KNOWN_RECORDS, Report, fuzz
from tests.helpers.server import UNLIMITED

SHOWN = 20


def main() -> int:
    """0 where every answer was as described."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200, help="random requests per operation")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        store = Path(folder) / "rung.db"
        with open_writer(store) as writer:
            token = token_for(writer, fill(writer), Path(folder) / "token")
        snapshot = write(Path(folder) / "papers")
        records = fuzz(
            _app(RUNG_STORE=str(store)),
            token,
            examples=asked.examples,
            known=KNOWN_RECORDS,
            seed=asked.seed,
        )
        _tell("records", records)
        papers = fuzz(
            _app(RUNG_STORE=str(store), RUNG_PAPERS_DB=str(snapshot)),
            token,
            examples=asked.examples,
            known=KNOWN_RECORDS | KNOWN_PAPERS,
            seed=asked.seed + 1,
        )
        _tell("records and papers", papers)
    print(f"count REST requests={records.cases + papers.cases}")
    return 1 if records.failures or papers.failures else 0


def _app(**environ: str) -> Flask:
    return create_app(bootstrap.build(settings.load({**UNLIMITED, **environ})))


def _tell(name: str, report: Report) -> None:
    print(f"{name}: {report.cases} requests, {len(report.failures)} not as described")
    for (label, status), count in sorted(report.statuses.items()):
        print(f"  {status} {count:6} {label}")
    for failure in sorted(set(report.failures))[:SHOWN]:
        print(f"\n{failure}")


if __name__ == "__main__":
    sys.exit(main())
