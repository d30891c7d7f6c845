"""What the search quality page stands on: right figures, steady questions, real answers."""

import math
from collections import Counter
from pathlib import Path

import orjson
import pytest

from quality import collections, measures, metrics, needles, page, runs, service, typos
from quality.collections import Collection, Query
from quality.measures import BM25S, EACH, FTS5, RUNG, TYPED, TYPOS, Measure
from tests.demo_life.rows import FOLDER as DEMO_RECORDS

#: Questions that share no whole word with the records that answer them.
DEMO_QUESTIONS = Path(page.__file__).parent / "demo" / "questions.ndjson"


def test_a_ranking_is_scored_by_hits_ranks_and_grades() -> None:
    figures = metrics.score(["x", "a", "y", "b"], {"a": 1, "b": 3, "c": 1})
    assert figures["any"] == 1
    assert (figures["R@1"], figures["R@3"]) == (0, pytest.approx(1 / 3))
    assert figures["R@5"] == figures["R@10"] == pytest.approx(2 / 3)
    assert figures["MRR"] == 1 / 2
    gain = 1 / math.log2(3) + 3 / math.log2(5)
    assert figures["nDCG@10"] == pytest.approx(gain / (3 + 1 / math.log2(3) + 1 / 2))


def test_hits_after_the_tenth_do_not_count() -> None:
    ranked = [*"abcdefghij", "right"]
    assert metrics.score(ranked, {"right": 1}) == metrics.score(list("abcdefghij"), {"right": 1})


def test_means_are_by_category_and_leave_out_adversarial_questions() -> None:
    queries = [
        Query("1", "g", "?", "1 multi-hop", {"a": 1}),
        Query("2", "g", "?", "2 temporal", {"a": 1}),
        Query("3", "g", "?", metrics.LEFT_OUT, {"a": 1}),
    ]
    figures = metrics.by_category(queries, {"1": ["a"], "3": ["a"]})
    assert figures[metrics.ALL]["n"] == 2 and figures[metrics.ALL]["R@10"] == 1 / 2
    assert figures[metrics.LEFT_OUT]["R@10"] == 1 and figures["2 temporal"]["any"] == 0


def test_a_typo_is_one_edit_in_the_rarest_long_word_and_keeps_the_first_letter() -> None:
    counts = {"where": 9, "lighthouse": 1, "keeper": 3}
    queries = [Query(f"{n}", "g", "where is the lighthouse keeper", "c", {}) for n in range(40)]
    collection = Collection("c", "", [], queries)

    def mistyped() -> list[str]:
        found = typos.with_typos(collection, lambda group, word: counts.get(word, 0))
        return [query.text for query in found]

    for text in mistyped():
        before, wrong, after = text.partition("the ")[0], text.split()[3], text.split()[4]
        assert (before, after) == ("where is ", "keeper")
        assert wrong[0] == "l" and _edits(wrong, "lighthouse") == 1, wrong
    assert mistyped() == mistyped()


def _edits(one: str, other: str) -> int:
    """Optimal string alignment: insertions, deletions, substitutions and transpositions."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def test_a_needle_is_in_one_sentence_of_one_record_only() -> None:
    made = needles.make()
    assert made == needles.make()
    asked = {word for query in made.queries for word in query.text.split()}
    held: dict[str, set[tuple[str, int]]] = {word: set() for word in asked}
    for document in made.documents:
        for number, sentence in enumerate(document["text"].lower().split(".")):
            for word in asked.intersection(sentence.split()):
                held[word].add((document["id"], number))
    sizes = {document["id"]: len(document["text"]) for document in made.documents}
    for query in made.queries:
        one, other = query.text.split()
        ((right, _),) = held[one] & held[other]
        assert query.relevant == {right: 1} and sizes[right] >= needles.LONG_CHARS
        decoys = {name for name, _ in held[one]} & {name for name, _ in held[other]}
        assert len(decoys) > needles.SHORT_DECOYS + needles.LONG_DECOYS


def test_a_gate_bounds_a_value_or_a_ratio_and_counts_the_baseline_of_the_same_run() -> None:
    def figures(value: float) -> dict[str, dict[str, float]]:
        return {metrics.ALL: {"R@10": value, "nDCG@10": value, "bytes": 400}}

    results = {
        (TYPED, RUNG): figures(0.6),
        (TYPED, FTS5): figures(0.5),
        (TYPED, BM25S): figures(0.75),
        (TYPOS, RUNG): figures(0.57),
        (TYPOS, FTS5): figures(0.4),
    }
    cases = (
        (Measure("c", "", "R@10", 1.16, FTS5), "held", 1.2, 0.5),
        (Measure("c", "", "R@10", 1.21, FTS5), "missed", 1.2, 0.5),
        (Measure("c", "", "nDCG@10", 1.0, BM25S), "missed", 0.8, 0.75),
        (Measure("c", "", "R@10", 0.96, TYPED, TYPOS), "missed", 0.95, 0.8),
        (Measure("c", "", "R@10", 0.6), "held", 1.2, 0.5),
        (Measure("c", "", "bytes", 300, most=True), "missed", 1.0, 400),
        (Measure("c", "", "R@10", None), "information", 1.2, 0.5),
    )
    for measure, verdict, ratio, baseline in cases:
        row = measures.row(measure, results)
        assert row.verdict == verdict, measure
        assert (row.ratio, row.baseline) == (pytest.approx(ratio), pytest.approx(baseline))


def test_our_collection_is_whole() -> None:
    own = collections.read(collections.OWN)
    ids = [each["id"] for each in own.documents]
    assert len(set(ids)) == len(ids)
    assert len({query.id for query in own.queries}) == len(own.queries)
    for query in own.queries:
        assert {name for name in query.relevant} <= {each["id"] for each in own.groups[query.group]}
    assert set(own.languages) == set(own.groups)


def test_a_manifest_declares_thread_and_position_where_there_are_sessions() -> None:
    def roles(**fields: object) -> dict[str, str]:
        document = {"id": "1", "group": "g", "text": "t", "order": 1, **fields}
        (stream,) = service.manifest([document])["streams"]
        properties = stream["schema"]["properties"]
        return {name: it["x_pdpp_role"] for name, it in properties.items() if "x_pdpp_role" in it}

    assert roles() == {"text": "primary-text"}
    assert roles(session=2) == {"text": "primary-text", "session": "thread", "order": "position"}


def test_a_folder_is_measured_with_the_real_search_and_a_page_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "about.json").write_bytes(orjson.dumps({"kind": "two groups"}))
    rows = [
        {"id": "1", "group": "a", "text": "an elm", "at": "2026-01-01T00:00:00Z"},
        {"id": "2", "group": "a", "text": "an ash", "at": "2026-01-02T00:00:00Z"},
        {"id": "3", "group": "b", "text": "an elm", "at": "2026-01-01T00:00:00Z"},
    ]
    asked = [
        {"id": "q1", "group": "a", "text": "elm", "category": "x", "relevant": {"1": 1}},
        {"id": "q2", "group": "b", "text": "ash", "category": "y", "relevant": {"3": 1}},
    ]
    for name, lines in (("documents", rows), ("queries", asked)):
        (folder / f"{name}.ndjson").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert collections.find(tmp_path) == [folder]
    run = runs.run(collections.read(folder), baselines=False)
    assert run.answers["q1"].ids == ["1"] and run.answers["q1"].size > 0
    assert run.answers["q2"].ids == [], "the other group is outside the grant"
    figures = run.results[TYPED, RUNG]
    assert (figures["x"]["R@10"], figures["y"]["R@10"], figures["all"]["R@10"]) == (1, 0, 0.5)
    text = page.render([run], "Measured today.")
    assert "\nMeasured today.\n" in text
    assert "| mini, recall | R@10 | – | 0.500 | – | – | information |" in text


def test_every_measure_has_a_collection_that_is_known_and_a_note() -> None:
    known = {measure.collection for measure in measures.MEASURES}
    plain = {name.removesuffix(measures.MEANING) for name in known}
    assert plain == {name.removesuffix(measures.MEANING) for name in page.NOTES}
    assert any(measure.category == EACH for measure in measures.MEASURES)


def test_the_questions_over_the_demo_have_answers_in_the_demo() -> None:
    """Ten of each kind, written by somebody who saw the records alone. Never edit them."""
    questions = [orjson.loads(line) for line in DEMO_QUESTIONS.read_bytes().splitlines()]
    ids = {
        f"{path.stem}/{row['stream']}:{row['data']['id']}"
        for path in DEMO_RECORDS.glob("*.ndjson")
        for row in map(orjson.loads, path.read_bytes().splitlines())
    }
    assert Counter(question["kind"] for question in questions) == dict.fromkeys(
        ("languages", "synonyms", "paraphrases", "compounds"), 10
    )
    assert {id for question in questions for id in question["ids"]} <= ids
