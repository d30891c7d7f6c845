"""What a benchmark works out: classes of queries, percentiles, slopes, verdicts, the page."""

import re
from collections import Counter
from pathlib import Path

import pytest

from bench import figures, goals, queries, reasons, report, soak
from bench.findings import Finding, Measured, Note
from bench.load import read_wrk
from bench.plan import FULL, QUICK


def counted() -> Counter[str]:
    """Words by how many of 100,000 records hold them, some of them in no class."""
    found = Counter({f"rare{n}": 12 for n in range(70)})
    found |= Counter({f"medium{n}": 500 for n in range(90)})
    found |= Counter({f"often{n}": 4_000 for n in range(130)})
    found |= Counter({f"common{n}": 12_000 for n in range(50)})
    return (
        found | Counter({f"nowhere{n}": 60 for n in range(200)}) | Counter({"everywhere": 90_000})
    )


def kinds(words: tuple[str, ...]) -> set[str]:
    return {word.rstrip("0123456789") for word in words}


def test_queries_are_chosen_by_how_many_records_hold_their_words() -> None:
    found = queries.choose(counted(), 100_000)
    assert found == queries.choose(counted(), 100_000)
    assert kinds(found.rare) == {"rare"} and kinds(found.medium) == {"medium"}
    assert kinds(found.common) == {"common"}
    assert all(kinds(tuple(pair.split())) == {"often"} for pair in found.two)
    assert all(len(set(pair.split())) == 2 for pair in found.two)
    assert len(found.mix) == 60 + 80 + 60 and len(found.common) == 40


def test_bounds_of_queries_follow_the_corpus_but_rare_words_stay_rare() -> None:
    tenth = Counter({w: n // 10 if n > 12 else n for w, n in counted().items()})
    found = queries.choose(tenth, 10_000)
    assert kinds(found.medium) == {"medium"} and kinds(found.common) == {"common"}
    assert "rare" in kinds(found.rare)
    with pytest.raises(ValueError):
        queries.choose(Counter({"alone": 500}), 100_000)


def test_any_part_of_the_mix_is_a_mix() -> None:
    mix = queries.Queries(("r",) * 60, ("m",) * 80, ("t",) * 60, ()).mix
    for start in range(0, 200, 20):
        assert Counter(mix[start : start + 20]) == {"r": 6, "m": 8, "t": 6}


def test_percentiles_are_values_that_occurred() -> None:
    assert figures.percentiles([3.0, 1.0, 2.0]) == (2.0, 3.0, 3.0)
    assert figures.percentiles([float(n) for n in range(100)]) == (50.0, 95.0, 99.0)
    assert figures.percentiles([7.0]) == (7.0, 7.0, 7.0)


def test_ratios_are_those_of_each_round() -> None:
    assert figures.ratios([2.0, 9.0, 3.0], [4.0, 3.0, 3.0]) == (0.5, 3.0, 1.0)
    with pytest.raises(ValueError):
        figures.ratios([1.0], [1.0, 2.0])


def test_overlap_counts_what_stands_in_both_lists_whatever_its_place() -> None:
    assert figures.overlap(["a", "b", "c"], ["c", "a", "d"]) == pytest.approx(2 / 3)
    assert figures.overlap(["a"], ["b", "a"]) == 1.0
    assert figures.overlap([], []) == 1.0
    assert figures.overlap([], ["a"]) == 0.0


def test_what_ties_with_the_last_may_stand_for_it_and_for_nothing_more() -> None:
    assert figures.overlap(["a", "e"], ["a", "b"], ties={"b", "e"}) == 1.0
    assert figures.overlap(["x", "e"], ["a", "b"], ties={"b", "e"}) == 0.5
    assert figures.overlap(["e", "f"], ["a", "b"], ties={"b", "e"}) == 0.5


def test_a_slope_is_that_of_the_line_and_leaps_do_not_move_it() -> None:
    line = [(float(x), 3.0 * x + 1) for x in range(20)]
    assert figures.slope(line) == pytest.approx(3.0)
    assert figures.slope([*line, (20.0, 9_000.0)]) == pytest.approx(3.0, rel=0.01)
    assert figures.slope([(x, 5.0) for x, _ in line]) == 0.0
    with pytest.raises(ValueError):
        figures.slope([(1.0, 2.0), (1.0, 3.0)])


def test_thinned_points_are_spread_over_all_of_them() -> None:
    points = [(float(x), 0.0) for x in range(1_000)]
    thin = figures.thinned(points, 300)
    assert len(thin) <= 300 and thin[0] == points[0] and thin[-1][0] > 990
    assert figures.thinned(points[:5], 300) == points[:5]


def test_a_soak_is_flat_where_only_its_beginning_grows() -> None:
    warming = [(float(s), min(s, 600) / 10) for s in range(0, 3_600, 10)]
    assert soak.growth(warming, allowed=0.5).flat
    leaking = [(float(s), 50 + s / 600) for s in range(0, 3_600, 10)]
    found = soak.growth(leaking, allowed=1.0, share=0.02)
    assert not found.flat and found.hourly == pytest.approx(6.0)
    assert found.total == pytest.approx(6.0 * 0.75, rel=0.02)
    shrinking = [(x, -y) for x, y in leaking]
    assert soak.growth(shrinking, allowed=0.5).flat


def test_half_of_a_soak_is_searches_and_all_kinds_are_in_it() -> None:
    assert soak.SEARCHES * 2 == len(soak.KINDS)
    assert {"fetch", "schema", "aggregate", "read_record_field", "rest_record"} < set(soak.KINDS)


def test_a_goal_is_judged_by_what_was_measured_not_by_what_is_printed() -> None:
    assert goals.goal("limit").bound == "least" and goals.goal("start").bound == "most"
    assert Finding("limit", (0.8999,)).verdict == "missed"
    assert Finding("limit", (0.9,)).verdict == "held"
    assert Finding("start", (1.0,)).verdict == "held"
    assert Finding("start", (1.0001,)).verdict == "missed"


def test_a_figure_is_the_median_of_its_rounds_and_the_spread_is_all_of_them() -> None:
    found = Finding("start", (0.2, 9.0, 0.4))
    assert (found.figure, found.spread, found.verdict) == (0.4, (0.2, 9.0), "held")


def test_every_row_has_a_name_of_its_own_and_a_module_that_measures_it() -> None:
    keys = [goal.key for goal in goals.GOALS]
    assert len(set(keys)) == len(keys)
    assert set(reasons.MISSED) <= set(keys)
    for place in goals.places():
        module = __import__(f"bench.rows.{place}", fromlist=["measure"])
        said = Path(str(module.__file__)).read_text(encoding="utf-8")
        assert callable(module.measure)
        named = {goal.key for goal in goals.GOALS if goal.place == place}
        missing = {key for key in named if f'"{re.sub("[0-9]+$", "", key)}' not in said}
        assert not missing, f"bench/rows/{place}.py does not measure {missing}"


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


def test_the_page_tells_rows_goals_spread_verdicts_and_what_was_not_measured() -> None:
    found = {
        "plan": "quick",
        "sizes": {"small": 1, "middle": 2, "large": 3},
        "when": "2026-01-01",
        "machine": "a machine",
        "load_before": 3.0,
        "versions": {"Rung": "1"},
        "places": [["search", [{"key": "p99", "rounds": [0.1, 0.15, 0.4]}, NOTE]]],
    }
    page = report.page(found, {"lines": [("RssAnon", "50 MB", "held")]})
    assert "| … its p99, of fastmcp's | ≤ 0.2 × | 0.15 × | 0.10 - 0.40 | held |" in page
    assert (
        "1 of 1 held" in page
        and "not measured" in page
        and "A quick run" in page
        and "not calm" in page
    )
    assert "| 8 clients | 5 ms |" in page and "| RssAnon | 50 MB | held |" in page
    assert len(report.unmeasured([Finding("p99", (1.0,))])) == len(goals.GOALS) - 1


NOTE = {"what": "8 clients", "measured": "5 ms"}


def test_what_a_run_found_is_kept_whole() -> None:
    lines = [Finding("p99", (0.1, 0.2)), Note("a", "b")]
    kept = report.results(QUICK, [Measured("search", list(lines))], 0.1)
    assert kept["plan"] == "quick" and kept["machine"] and kept["versions"]["Rung"]
    assert [report.line_of(line) for line in kept["places"][0][1]] == lines
