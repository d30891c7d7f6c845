"""What a benchmark stands on: the same corpus every time, and figures that are worked out right."""

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from bench import corpus, goals, papers, snapshots
from bench.calls import get
from bench.load import HOST, ask, drive, percentiles, post
from bench.servers import Server
from bench.sources import answering, insisting
from bench.stages import Stages


def test_the_corpus_is_the_same_for_its_seed_and_another_for_another() -> None:
    assert list(corpus.records(40)) == list(corpus.records(40))
    assert list(corpus.records(40))[:10] == list(corpus.records(10))
    assert list(corpus.records(5)) != list(corpus.records(5, seed=1))


def test_records_keep_to_their_bounds_and_hold_their_words() -> None:
    found = list(corpus.records(300))
    assert all(len(record.title) <= corpus.TITLE_CHARS for record in found)
    assert any(not record.body.isascii() for record in found)
    assert {record.connection for record in found} == set(range(corpus.CONNECTIONS))
    for record in found:
        if record.body.isascii():
            shown = record.body.lower().translate(str.maketrans(".?:", "   ")).split()
            assert set(shown) == record.words


def test_queries_are_chosen_by_how_many_records_hold_their_words() -> None:
    counted = Counter({f"rare{n}": 20 for n in range(70)})
    counted |= Counter({f"medium{n}": 500 for n in range(90)})
    counted |= Counter({f"often{n}": 5_000 for n in range(130)})
    found = corpus.queries(counted)
    assert found == corpus.queries(counted)
    assert {word.rstrip("0123456789") for word in found.rare} == {"rare"}
    assert {word.rstrip("0123456789") for word in found.medium} == {"medium"}
    assert all(len(set(pair.split())) == 2 for pair in found.two)
    assert len(found.mix) == 60 + 80 + 60


def test_any_part_of_the_mix_is_a_mix() -> None:
    mix = corpus.Queries(("r",) * 60, ("m",) * 80, ("t",) * 60).mix
    for start in range(0, 200, 20):
        assert Counter(mix[start : start + 20]) == {"r": 6, "m": 8, "t": 6}


def test_a_ratio_is_the_median_of_the_ratios_of_rounds() -> None:
    assert goals.ratio([2.0, 9.0, 3.0], [4.0, 3.0, 3.0]) == 1.0
    with pytest.raises(ValueError):
        goals.ratio([1.0], [1.0, 2.0])


def test_overlap_counts_what_stands_in_both_lists_whatever_its_place() -> None:
    assert goals.overlap(["a", "b", "c"], ["c", "a", "d"]) == pytest.approx(2 / 3)
    assert goals.overlap(["a"], ["b", "a"]) == 1.0
    assert goals.overlap([], []) == 1.0
    assert goals.overlap([], ["a"]) == 0.0


def test_a_goal_is_judged_by_what_was_measured_not_by_what_is_printed() -> None:
    assert goals.at_least("ratio", 0.6999, 0.7).verdict == "MISSED"
    assert goals.at_most("size", 10, 10).verdict == "ok"
    assert goals.note("only told", "5").verdict == ""
    assert goals.table([goals.at_least("a", 1, 0.7)]).splitlines()[1].split() == [
        *("a", "1.00", ">=", "0.7", "ok"),
    ]


def test_percentiles_are_values_that_occurred() -> None:
    assert percentiles([3.0, 1.0, 2.0]) == (2.0, 3.0, 3.0)
    assert percentiles([float(n) for n in range(100)]) == (50.0, 95.0, 99.0)


def test_a_request_says_how_long_its_body_is() -> None:
    assert post("/mcp", b"{}", {"A": "b"}).endswith(b"\r\nA: b\r\nContent-Length: 2\r\n\r\n{}")


def test_a_stage_leaves_out_the_stages_inside_it() -> None:
    stages = Stages()
    inner = stages.measured("inner", sum)
    outer = stages.measured("outer", lambda: inner(range(200_000)))
    assert outer() == sum(range(200_000))
    assert stages.seconds["outer"] < stages.seconds["inner"]
    assert stages.share("inner", "outer", "never ran") == pytest.approx(1.0)


def test_a_grown_snapshot_has_twins_that_are_papers_of_their_own(tmp_path: Path) -> None:
    target = tmp_path / "snapshot.db"
    chars = snapshots.grow(snapshots.SOURCE, target, 70, huge_bytes=1_000_000)
    with closing(sqlite3.connect(target)) as db:

        def one(query: str) -> object:
            return db.execute(query).fetchone()[0]

        for table in ("paper", "paper_fts"):
            assert one(f"SELECT count(DISTINCT paper_id) FROM {table}") == 70
        assert one("SELECT count(DISTINCT title) FROM paper") == 70
        assert one("PRAGMA journal_mode") == "delete"
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert one("SELECT sum(paper_count) FROM year_count") == 70
        name = one(f"SELECT source_md_content_hash FROM paper WHERE paper_id='{snapshots.HUGE_ID}'")
    huge = (tmp_path / f"static/md/{name}.md").read_text("utf-8")
    assert len(huge) == chars and len(huge.encode()) >= 1_000_000


def test_a_varied_text_keeps_sentences_and_gets_a_word_of_its_own() -> None:
    text = "One is here. Two is there. " * 20
    varied = snapshots.vary(Random(1), text, "study7")
    assert varied.endswith(" study7") and varied != snapshots.vary(Random(2), text, "study7")
    assert set(varied.split()) <= {*text.split(), "study7"}
    assert snapshots.vary(Random(1), "", "study7") == ""


def test_a_query_is_written_as_upstream_writes_it() -> None:
    assert papers.expression("Deep pre-training") == '"deep" "pre-training"'
    assert papers.expression("深度 学习") == '"深 度" "学 习"'


def test_a_get_carries_a_token_where_there_is_one() -> None:
    assert get("/a") == b"GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert b"\r\nAuthorization: Bearer secret\r\n\r\n" in get("/a", "secret")


def test_each_source_gives_its_body_no_sooner_than_told() -> None:
    with answering([b"{}", b"[1]"], 0.02) as sources:
        ports = [int(url.removeprefix(f"http://{HOST}:")) for url in sources.urls]
        assert [ask(port, get("/any", "secret")) for port in ports] == [b"{}", b"[1]"]
        load = drive(ports[0], [get("/any")], total=8, connections=4)
        assert load.p50 >= 0.02
        _until(lambda: sources.waiting == 0)


def test_callers_wait_for_a_silent_source_and_for_nobody_longer_than_they_must() -> None:
    with answering([b"{}"], 60) as silent, answering([b"{}"], 0) as ready:
        silent_port, ready_port = (
            int(found.urls[0].rpartition(":")[2]) for found in (silent, ready)
        )
        with insisting(silent_port, [get("/any")] * 3) as waiting:
            _until(lambda: silent.waiting == 3)
            with insisting(ready_port, [get("/any")] * 2) as served:
                _until(lambda: served.answered == 2)
            assert waiting.answered == 0
        _until(lambda: silent.waiting == 0)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, "it never came to that"


def test_the_cpu_seconds_of_a_worker_are_those_of_its_process() -> None:
    here = Server(0, os.getpid(), 0.0)
    before, counted = here.cpu_seconds(), time.process_time()
    while time.process_time() < counted + 0.1:
        pass
    assert here.cpu_seconds() - before == pytest.approx(0.1, abs=0.05)
