"""Which rows are ranked: all of few matches, the newest of many, the same wherever they are."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import query as queries
from evidence.limits import BUDGETS
from service.access import grants
from service.records.sqlite.snapshot import SqliteSnapshot
from service.records import ranking
from service.records.sqlite import recent_index, terms
from service.records.sqlite.ddl import SEQ_BITS, SEQ_MASK
from service.records.ingest import put
from service.records.intake import Row
from service.records.manifest import parse
from service.records.ranking import Ranked
from service.records.sqlite.streams import declare, open_stream
from service.records.view import View, open_view
from service.records.sqlite.writer import Writer, open_writer
from tests.helpers.notes import NOTES

EVERYTHING = 1_000
CONNECTIONS = ("a", "b", "c")
WORDS = ("owl", "hare", "fox", "東京")
TEXT = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
RECORDS = st.lists(
    st.tuples(st.sampled_from(CONNECTIONS), TEXT, TEXT, st.integers(1, 28)), min_size=1, max_size=40
)
QUERY = st.sampled_from(["owl", "owl hare", '"owl hare"', "owl -fox", "ha*", "東京 owl -hare"])
LIMITED = {"time_constraint": {"since": "2026-01-10T00:00:00Z"}}
ENTRIES = st.lists(
    st.sampled_from(CONNECTIONS).flatmap(
        lambda name: st.sampled_from(
            [
                {"connection_id": name},
                {"connection_id": name, "stream": "notes", "fields": ["id", "at", "text"]},
                {"connection_id": name, "stream": "notes", **LIMITED},
            ]
        )
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda entry: str(entry["connection_id"]),
)


@pytest.fixture(autouse=True)
def _small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(BUDGETS, rank_cap=4, rank_cap_narrow=6, rank_newest=3, wide_scopes=4)
    monkeypatch.setattr(ranking, "BUDGETS", few)
    monkeypatch.setattr(recent_index, "WINDOW", 10)
    monkeypatch.setattr(recent_index, "WINDOWS", 1)


def fill(folder: Path, records: list[tuple[str, str, str, int]]) -> Writer:
    """A store of connections with notes, whose records come in this order."""
    writer = open_writer(folder / "rung.db")
    for name in CONNECTIONS:
        declare(writer, name, parse({"streams": [NOTES]}))
    for number, (name, title, text, day) in enumerate(records):
        at = f"2026-01-{day:02}T00:00:00Z"
        data = {"id": f"{number}", "title": title, "text": text, "at": at}
        put(writer, open_stream(writer, name, "notes"), [Row(data, f"{number}")])
    writer.finish()
    return writer


def view_of(writer: Writer, *entries: dict[str, Any]) -> View:
    _, token = grants.create(writer.db, {"streams": list(entries)})
    return open_view(SqliteSnapshot(writer.db, (0, 0)), grants.find(writer.db, token))


def ranked(writer: Writer, view: View, text: str, limit: int = EVERYTHING) -> Ranked:
    terms.prepare(writer.db)
    scope = ranking.scope_of(SqliteSnapshot(writer.db, (0, 0)), view, view.streams, {})
    return ranking.rank(SqliteSnapshot(writer.db, (0, 0)), scope, queries.parse(text), limit)


def matching_rows(view: View, records: list[tuple[str, str, str, int]], text: str) -> list[int]:
    """The rows that match inside the grant, newest record first, told without the index."""
    found = []
    asked = queries.parse(text)
    for seq, (name, title, body, day) in reversed([*enumerate(records, start=1)]):
        (stream,) = [s for s in view.streams if s.connection_id == name] or [None]
        if stream is None or (stream.limit.since is not None and day < 10):
            continue
        values = {"title": title, "text": body}
        seen = {o: values[field] for o, field in stream.searchable.items() if values[field]}
        if any(holds(value, term) for value in seen.values() for term in asked.excluded):
            continue
        found += [
            ordinal << SEQ_BITS | seq
            for ordinal, value in seen.items()
            if all(holds(value, term) for term in asked.wanted)
        ]
    return found


def holds(text: str, term: queries.Term) -> bool:
    words = " ".join(text.replace("東京", "東 京").split())
    wanted = " ".join(term.words)
    return f" {wanted}" in f" {words}" if term.prefix else f" {wanted} " in f" {words} "


def of_newest(rows: list[int], count: int) -> set[int]:
    """The newest `count` rows, and those of the same record as the last of them."""
    last = rows[count - 1] & SEQ_MASK
    return {row for row in rows if row & SEQ_MASK >= last}


@settings(max_examples=80, deadline=None)
@given(records=RECORDS, text=QUERY, entries=ENTRIES)
def test_all_of_few_matches_are_ranked_and_the_newest_of_many(
    records: list[tuple[str, str, str, int]], text: str, entries: list[dict[str, Any]]
) -> None:
    with TemporaryDirectory() as folder, fill(Path(folder), records) as writer:
        view = view_of(writer, *entries)
        expected = matching_rows(view, records, text)
        ordinals = sum(len(stream.searchable) for stream in view.streams)
        most = 4 if ordinals >= 4 else 6 if len(view.connection_ids) == 1 else EVERYTHING
        if recent_index.whole(writer.db):
            with_window = ranked(writer, view, text)
            recent_index.leave(writer.db, [])
            without = ranked(writer, view, text)
            assert {row for row, _ in with_window.rows} == {row for row, _ in without.rows}
            assert with_window.bounded == without.bounded
        found = ranked(writer, view, text)
    assert found.bounded == (len(expected) > most)
    rows = {row for row, _ in found.rows}
    assert rows == (of_newest(expected, 3) if found.bounded else set(expected))
    assert [score for _, score in found.rows] == sorted(score for _, score in found.rows)


def test_a_common_word_is_ranked_in_the_window_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [("a", "", "owl " * (1 + number % 3), 1) for number in range(12)]
    with fill(tmp_path, records) as writer:
        view = view_of(writer, {"connection_id": "a"})
        asked: list[str] = []
        writer.db.set_trace_callback(asked.append)
        found = ranked(writer, view, "owl")
        writer.db.set_trace_callback(None)
    assert found.bounded
    assert [row & SEQ_MASK for row, _ in found.rows] == [12, 11, 10]
    scored = [statement for statement in asked if "bm25" in statement]
    assert len(scored) == 1 and "bm25(fts_recent)" in scored[0]


def test_equal_scores_come_newest_first_in_either_index(tmp_path: Path) -> None:
    records = [("a", "", "owl", 1) for _ in range(12)]
    with fill(tmp_path, records) as writer:
        view = view_of(writer, {"connection_id": "a"})
        in_window = ranked(writer, view, "owl").rows
        recent_index.leave(writer.db, [])
        in_whole = ranked(writer, view, "owl").rows
    assert [row & SEQ_MASK for row, _ in in_window] == [12, 11, 10]
    assert [row for row, _ in in_window] == [row for row, _ in in_whole]


def test_scopes_are_remembered_with_their_view_and_never_mixed_up(tmp_path: Path) -> None:
    with fill(tmp_path, [("a", "", "owl", 1), ("b", "", "owl", 1)]) as writer:
        view = view_of(writer, *({"connection_id": name} for name in CONNECTIONS))
        first, second = (
            ranking.scope_of(SqliteSnapshot(writer.db, (0, 0)), view, view.within(name), {})
            for name in ("a", "b")
        )
        assert not first.ordinals & second.ordinals
        asked: list[str] = []
        writer.db.set_trace_callback(asked.append)
        assert (
            ranking.scope_of(SqliteSnapshot(writer.db, (0, 0)), view, view.within("a"), {}) is first
        )
        writer.db.set_trace_callback(None)
        assert asked == []
        for number in range(ranking.SCOPES_REMEMBERED + 1):
            view.remembered[(-number,)] = first
        ranking.scope_of(SqliteSnapshot(writer.db, (0, 0)), view, view.within("c"), {})
        assert len(view.remembered) <= ranking.SCOPES_REMEMBERED
