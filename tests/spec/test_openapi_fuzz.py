"""Every answer is one that /openapi.json describes: a short run of schemathesis.

`python -m tests.fuzz` is the long run.
"""

import pytest
from flask import Flask

from tests.helpers.caller import Local
from tests.helpers.fuzzing import KNOWN_PAPERS, KNOWN_RECORDS, Report, fuzz
from tests.helpers.papers import ATTENTION, DEEP_LEARNING, in_process

pytestmark = pytest.mark.slow

EXAMPLES, PAPER_EXAMPLES = 4, 20
PAPERS = KNOWN_PAPERS | {"paper_id": (ATTENTION, DEEP_LEARNING, "nothing of this name")}


def check(report: Report, prefix: str, operations: int, cases: int) -> None:
    """Fails on any problem, or if an operation of a prefix had no success or no refusal."""
    assert not report.failures, "\n\n".join(report.failures[:5])
    assert report.cases > cases
    asked = {label for label, _ in report.statuses if prefix in label}
    assert len(asked) == operations
    assert asked <= report.labels(200, 206)
    assert asked <= report.labels(400, 404)


def test_every_answer_about_records_is_described(demo: Local) -> None:
    assert isinstance(demo.api.app, Flask)
    report = fuzz(demo.api.app, demo.api.token, examples=EXAMPLES, known=KNOWN_RECORDS)
    check(report, " /v1/", operations=11, cases=1_000)


def test_every_answer_about_papers_is_described() -> None:
    app = in_process().api.app
    assert isinstance(app, Flask)
    check(
        fuzz(app, None, examples=PAPER_EXAMPLES, known=PAPERS),
        " /papers/v1/",
        operations=7,
        cases=500,
    )
