"""What a benchmark works out: classes of queries, percentiles, slopes, verdicts, the page."""

import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from bench import changes, corpus, figures, goals, queries, reasons, report, soak, stores
from bench.findings import BUSIEST, Finding, Measured, Note
from bench.load import read_wrk
from bench.page import TITLES, markdown
from bench.plan import FULL, QUICK

pytestmark = pytest.mark.slow

RECORDS = 100_000


def counted() -> Counter[str]:
    """Words by how many records hold them: every share a question asks for, and stop words."""
    found = Counter(
        {
            f"word{n}x{place}": round(share * RECORDS)
            for n, share in enumerate(
                (*queries.SHARES, *(0.06 + 0.01 * step for step in range(10)))
            )
            for place in range(9)
        }
    )
    return found | Counter({word: RECORDS // 2 for word in corpus.FUNCTION_WORDS})


def test_questions_have_words_as_frequent_as_those_of_real_ones() -> None:
    words = counted()
    found = queries.choose(words, RECORDS)
    assert found == queries.choose(words, RECORDS)
    asked = [set(question.split()) for question in found.natural]
    spoken = set(corpus.FUNCTION_WORDS)
    shares = sorted(words[word] / RECORDS for each in asked for word in each - spoken)
    assert len(found.natural) == len(found.rare) == queries.QUESTIONS
    for part in (0.25, 0.5, 0.75):
        wanted = queries.SHARES[int(part * len(queries.SHARES))]
        assert wanted / 2 <= shares[int(part * len(shares))] <= wanted * 2
    assert all(each & spoken and each - spoken for each in asked)
    rare = {word for question in found.rare for word in question.split()}
    assert max(words[word] for word in rare) <= queries.RARE_SHARE * RECORDS * queries.NEAR
    assert not rare & spoken


def test_common_words_are_single_and_a_corpus_must_have_enough_of_them() -> None:
    words = counted()
    common = queries.choose(words, RECORDS).common
    assert len(set(common)) == queries.COMMON
    assert all(0.05 <= words[word] / RECORDS <= 0.20 for word in common)
    with pytest.raises(ValueError):
        queries.choose(Counter({"alone": 500}), RECORDS)


def test_the_mix_has_both_kinds_in_turn() -> None:
    assert queries.Queries(("n1", "n2"), ("r1", "r2"), ()).mix == ["n1", "r1", "n2", "r2"]


def test_percentiles_are_values_that_occurred() -> None:
    assert figures.percentiles([3.0, 1.0, 2.0]) == (2.0, 3.0, 3.0)
    assert figures.percentiles([float(n) for n in range(100)]) == (50.0, 95.0, 99.0)
    assert figures.percentiles([7.0]) == (7.0, 7.0, 7.0)


def test_ratios_are_those_of_each_round() -> None:
    assert figures.ratios([2.0, 9.0, 3.0], [4.0, 3.0, 3.0]) == (0.5, 3.0, 1.0)
    with pytest.raises(ValueError):
        figures.ratios([1.0], [1.0, 2.0])


def test_a_slope_is_that_of_the_line_and_leaps_do_not_move_it() -> None:
    line = [(float(x), 3.0 * x + 1) for x in range(20)]
    assert figures.slope(line) == pytest.approx(3.0)
    assert figures.slope([*line, (20.0, 9_000.0)]) == pytest.approx(3.0, rel=0.01)
    assert figures.slope([(x, 5.0) for x, _ in line]) == 0.0
    with pytest.raises(ValueError):
        figures.slope([(1.0, 2.0), (1.0, 3.0)])


def test_peaks_are_the_highest_of_each_stretch() -> None:
    points = [(float(x), float(x % 10)) for x in range(100)]
    assert figures.peaks(points, 10) == [(float(x), 9.0) for x in range(9, 100, 10)]
    assert figures.peaks(points[:3], 10) == points[:3]
    assert figures.peaks([(1.0, 5.0)], 10) == [(1.0, 5.0)]
    gap = [(0.0, 1.0), (1.0, 2.0), (9.0, 3.0), (10.0, 2.0)]
    assert figures.peaks(gap, 5) == [(1.0, 2.0), (9.0, 3.0)]


def test_a_soak_is_flat_where_only_its_beginning_grows() -> None:
    warming = [(float(s), min(s, 600) / 10) for s in range(0, 3_600, 10)]
    assert soak.growth(warming, allowed=0.5).flat
    leaking = [(float(s), 50 + s / 600) for s in range(0, 3_600, 10)]
    found = soak.growth(leaking, allowed=1.0, share=0.02)
    assert not found.flat and found.hourly == pytest.approx(6.0)
    assert found.total == pytest.approx(6.0 * 0.75, rel=0.02)
    shrinking = [(x, -y) for x, y in leaking]
    assert soak.growth(shrinking, allowed=0.5).flat


def test_a_cache_that_fills_and_is_emptied_is_flat_and_a_leak_below_it_is_found() -> None:
    rng = Random(1)
    filling = [(float(s), 80 + (s % 97) / 10 + rng.random()) for s in range(0, 3_600, 2)]
    assert soak.growth(filling, allowed=1.0, share=0.02).flat
    leaking = [(s, y + s / 900) for s, y in filling]
    assert not soak.growth(leaking, allowed=1.0, share=0.02).flat


def soaked(seconds: int, hourly: float) -> soak.Soaked:
    """A soak of so many seconds whose worker grew by so many MB an hour."""
    times = [float(second) for second in range(0, seconds + 1, 5)]
    return soak.Soaked(
        seconds=seconds,
        records=1_000,
        memory=[(second, 60 + hourly * second / 3_600) for second in times],
        files=[(second, 20.0) for second in times],
        log=[(second, 0.0) for second in times],
    )


def verdicts(found: soak.Soaked) -> dict[str, str]:
    return {what: verdict for what, _, verdict in soak.lines(found)}


def test_a_short_soak_blames_nobody_for_growing_and_a_long_one_does() -> None:
    assert verdicts(soaked(60, 900.0))["RssAnon"] == ""
    found = verdicts(soaked(3_600, 9.0))
    assert (found["RssAnon"], found["open files"], found["SQLite's log"]) == (
        "missed",
        "held",
        "held",
    )
    assert verdicts(soaked(3_600, 0.5))["RssAnon"] == "held"


def test_a_soak_fails_for_one_bad_answer_or_one_change_that_is_not_seen() -> None:
    assert "missed" not in verdicts(soaked(60, 0.0)).values()
    refused, unseen = soaked(60, 0.0), soaked(60, 0.0)
    refused.failed = 1
    unseen.changes.wrong.append("a revoked grant is answered")
    for found in (refused, unseen):
        assert list(verdicts(found).values()).count("missed") == 1


def test_imports_of_a_soak_add_change_and_delete_the_same_records_in_turn() -> None:
    batches = [changes.batch(number) for number in range(4)]
    assert [len(rows) // changes.ROWS for rows in batches] == [1, 2, 3, 3]
    there: dict[object, object] = {}
    for number, rows in enumerate(batches):
        for row in rows:
            if row.get("op") == "delete":
                assert there.pop(row["key"])
            else:
                assert there.get(row["key"]) != row["data"]
                there[row["key"]] = row["data"]
        assert len(there) == changes.ROWS * min(number + 1, 2)


def test_half_of_a_soak_is_searches_and_all_kinds_are_in_it() -> None:
    assert soak.SEARCHES * 2 == len(soak.KINDS)
    assert {"fetch", "schema", "aggregate", "read_record_field", "rest_record"} < set(soak.KINDS)


def test_a_goal_is_judged_by_what_was_measured_not_by_what_is_printed() -> None:
    for key, bound, beyond in (("rare-sdk", "least", -0.0001), ("start", "most", 0.0001)):
        row = goals.goal(key)
        assert row.bound == bound
        assert Finding(key, (row.goal,)).verdict == "held"
        assert Finding(key, (row.goal + beyond,)).verdict == "missed"


def test_a_figure_is_the_median_of_its_rounds_and_the_spread_is_all_of_them() -> None:
    found = Finding("start", (0.2, 9.0, 0.4))
    assert (found.figure, found.spread, found.verdict) == (0.4, (0.2, 9.0), "held")


def test_every_group_of_rows_has_a_title_on_the_page() -> None:
    assert list(TITLES) == list(goals.groups())


def test_every_row_has_a_name_of_its_own_and_a_module_that_measures_it() -> None:
    keys = [goal.key for goal in goals.GOALS]
    assert len(set(keys)) == len(keys)
    assert set(reasons.MISSED) <= set(keys)
    for group in goals.groups():
        module = __import__(f"bench.rows.{group}", fromlist=["measure"])
        said = Path(str(module.__file__)).read_text(encoding="utf-8")
        assert callable(module.measure)
        named = {goal.key for goal in goals.GOALS if goal.group == group}
        missing = {key for key in named if f'"{re.sub("[0-9]+$", "", key)}' not in said}
        assert not missing, f"bench/rows/{group}.py does not measure {missing}"


def test_the_quick_plan_is_smaller_in_everything() -> None:
    for name in ("small", "middle", "large", "huge_chars", "rounds", "seconds", "asks", "swaps"):
        assert getattr(QUICK, name) < getattr(FULL, name)


def test_figures_of_wrk_are_read_and_failures_are_not_figures() -> None:
    load = read_wrk("x\nRESULT 3000 2000000 1500 3000 9000 0 0 0 0 0\n", 0.25)
    assert (load.rate, load.p50, load.p99) == (1_500.0, 0.0015, 0.009)
    assert (load.count, load.client_share) == (3_000, 0.25)
    for said in ("RESULT 3000 2000000 1 1 1 0 0 0 2 0", "RESULT 0 2000000 0 0 0 0 0 0 0 0", "no"):
        with pytest.raises(RuntimeError):
            read_wrk(said, 0.0)


RUN: dict[str, Any] = {
    "plan": "quick",
    "sizes": {"small": 1, "middle": 2, "large": 3},
    "when": "2026-01-01",
    "minutes": 1.6,
    "machine": "a machine",
    "load_before": 3.0,
    "versions": {"Rung": "1", "mcp": "2.3.0", "load generator": "wrk 4"},
}
NOTE = {"what": "8 clients", "measured": "5 ms"}


def the_page(
    *lines: dict[str, Any], soaked: dict[str, Any] | None = None, plan: str = "quick"
) -> str:
    return report.read({**RUN, "plan": plan, "places": [["search", list(lines)]]}, soaked)


def test_the_page_tells_rows_goals_spread_verdicts_and_what_was_not_measured() -> None:
    kept = {"when": "2026-02-02", "machine": "m", "lines": [("RssAnon", "50 MB", "held")]}
    page = the_page({"key": "rare-p95", "rounds": [0.1, 0.15, 0.4]}, NOTE, soaked=kept)
    work = goals.goal("rare-p95").work
    assert f"| `rare-p95` | {work} | ≤ 0.2 × | 0.15 × | 0.10 - 0.40 | held |" in page
    for said in (
        "1 of 1 goals are met",
        "not measured",
        "A quick run",
        "was busy",
        "took 2 minutes",
    ):
        assert said in page
    assert "| 8 clients | 5 ms |" in page and "| RssAnon | 50 MB | held |" in page
    assert "2026-02-02" in page and "## Missed" not in page
    assert len(report.unmeasured([Finding("rare-p95", (1.0,))])) == len(goals.GOALS) - 1


def test_the_page_says_why_a_row_is_missed_or_that_nobody_knows() -> None:
    missed = {"key": "rare-p95", "rounds": [0.9]}
    page = the_page(missed, plan="full")
    assert "## Missed" not in the_page(missed)
    assert "## Missed" not in the_page({"key": "rare-p95", "rounds": [0.1]}, plan="full")
    reason = goals.goal("rare-p95").missed or "not investigated yet."
    assert f"## Missed, and why\n\n- `rare-p95`: {reason}" in page


def test_the_page_says_how_one_knows_that_the_generator_was_not_the_limit() -> None:
    def said(share: str) -> str:
        return the_page({"what": BUSIEST, "measured": share})

    found = [" ".join(said(share).split()) for share in ("5%", "80%")]
    assert "generated by wrk 4. Each" in found[0]
    assert "at most 5% of the time: the generator waited" in found[0]
    assert "may have been the limit" in found[1] and "may have been" not in found[0]


def test_the_page_names_the_peers_that_ran_and_those_that_did_not() -> None:
    lines = {line.split(" | ")[0]: line for line in the_page(NOTE).splitlines()}
    python, script = (
        next(line for title, line in lines.items() if title.startswith(f"| [official SDK for {of}"))
        for of in ("Python", "TypeScript")
    )
    assert "| mcp 2.3.0 |" in python and "| not run |" in script
    for name in re.findall(r"`(bench/peers/[^`]+)`", the_page(NOTE)):
        assert Path(name).exists()


def test_rows_measured_alike_are_explained_once() -> None:
    page = the_page({"key": "rare-sdk", "rounds": [2.0]}, {"key": "natural-sdk", "rounds": [1.0]})
    assert f"\n- `rare-sdk`, `natural-sdk`: {goals.goal('rare-sdk').how}\n" in page
    assert page.count(goals.goal("rare-sdk").how) == 1


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert markdown(("a",), [("x|y",)]).splitlines()[-1] == "| x\\|y |"


def test_what_a_run_found_is_kept_whole() -> None:
    lines = [Finding("rare-p95", (0.1, 0.2)), Note("a", "b")]
    kept = report.results(QUICK, [Measured("search", list(lines))], 0.1, 90.0)
    assert kept["plan"] == "quick" and kept["machine"] and kept["versions"]["Rung"]
    assert [report.line_of(line) for line in kept["places"][0][1]] == lines


def test_groups_that_are_measured_again_replace_those_of_the_saved_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*groups: tuple[str, str]) -> dict[str, Any]:
        measured = [Measured(name, [Note("measured", text)]) for name, text in groups]
        return report.results(QUICK, measured, 0.0, 60.0)

    monkeypatch.setattr(stores, "HOME", tmp_path)
    assert report.replaced(run(("search", "alone"))) is None
    saved = run(("papers", "first"), ("search", "first"))
    (tmp_path / "quick.json").write_bytes(orjson.dumps(saved))
    found = report.replaced(run(("million", "second"), ("search", "second")))
    assert found is not None
    texts = {name: lines[0]["measured"] for name, lines in found["places"]}
    assert list(texts.items()) == [("search", "second"), ("million", "second"), ("papers", "first")]
    assert "with newer code: million, search." in report.read(found, None)
