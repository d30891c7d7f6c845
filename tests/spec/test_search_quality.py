"""How often search finds the right record, in our own collection and in papers."""

from quality import collections, runs
from quality.runs import Run


def missed(run: Run) -> list[str]:
    """The missed measures of a run, with their values."""
    return [
        f"{row.measure.title}: {row.measure.metric} {row.value:.3f}, gate {row.gate}"
        for row in run.rows
        if row.verdict != "held"
    ]


def test_questions_as_people_ask_them_find_their_record() -> None:
    assert not missed(runs.run(collections.read(collections.OWN), baselines=False))


def test_plurals_inflections_and_typos_find_the_expected_paper() -> None:
    assert not missed(runs.run_papers())
