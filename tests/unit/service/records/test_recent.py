"""The window of the newest records: what it holds, when it is whole, and who may rely on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.access import grants
from service.records import Store
from service.records.sqlite import recent_index
from service.records.sqlite.checkup import examine
from service.records.sqlite.ddl import SEQ_MASK
from service.records.ingest import put
from service.records.intake import Row
from service.records.manifest import parse
from service.records.sqlite.streams import StreamHandle, declare, open_stream
from service.records.sqlite.writer import Writer, open_writer
from service.ports import SearchQuery
from evidence.work import Deadline
from tests.helpers.layouts import take_back
from tests.helpers.notes import LONG, NOTES, check, one

WINDOW, WINDOWS = 4, 2
TEXTS = st.sampled_from(["owl", "Eule und Owl", "東京の空", "", LONG, LONG + "end"])
#: (key, fields, None for a deletion; whether the import ends with this row)
STEPS = st.lists(
    st.tuples(
        st.sampled_from("abcdefghijklmnopqrstuvwxyz"),
        st.none() | st.fixed_dictionaries({}, optional={"title": TEXTS, "text": TEXTS}),
        st.booleans(),
    ),
    min_size=8,
    max_size=40,
)


@contextmanager
def small_window() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent_index, "WINDOW", WINDOW)
        patch.setattr(recent_index, "WINDOWS", WINDOWS)
        yield


@pytest.fixture(autouse=True)
def _small_window() -> Iterator[None]:
    with small_window():
        yield


def bring(writer: Writer, notes: StreamHandle, *keys: str, **data: Any) -> None:
    put(writer, notes, [Row({"id": key, "text": f"owl {key}", **data}, key) for key in keys])


def rows(writer: Writer, floor: int = 0) -> list[int]:
    """The rows of the whole index that belong to records from `floor` on."""
    found = writer.db.execute("SELECT id FROM value").fetchall()
    return sorted(row for (row,) in found if row & SEQ_MASK >= floor)


def window(writer: Writer) -> list[int]:
    found = writer.db.execute("SELECT rowid FROM fts_recent_docsize").fetchall()
    return sorted(recent_index.row_of(row) for (row,) in found)


def words(writer: Writer) -> set[str]:
    """Every word the window knows."""
    writer.db.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, fts_recent, row)")
    found = {term for (term,) in writer.db.execute("SELECT term FROM temp.words")}
    writer.db.execute("DROP TABLE temp.words")
    return found


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_after_any_history_the_window_holds_the_rows_of_the_newest_records(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any, bool]]
) -> None:
    with small_window(), open_writer(tmp_path_factory.mktemp("recent") / "rung.db") as writer:
        declare(writer, "c", parse({"streams": [NOTES]}))
        notes = open_stream(writer, "c", "notes")
        for key, data, end in steps:
            row = Row({} if data is None else {"id": key} | data, key, deleted=data is None)
            changed = put(writer, notes, [row])
            if changed.new or changed.changed or changed.deleted:
                assert not recent_index.whole(writer.db)
            check(writer)
            if end:
                writer.finish()
        writer.finish()
        check(writer)
        newest = one(writer, "SELECT coalesce(max(seq), 0) FROM record")[0]
        assert recent_index.whole(writer.db) == (newest > WINDOW * WINDOWS)
        if recent_index.whole(writer.db):
            floor = writer.meta("recent_floor")
            assert WINDOW <= newest - floor + 1 <= 2 * WINDOW
            assert window(writer) == rows(writer, floor)
        else:
            assert window(writer) == []


def test_a_row_has_one_place_in_each_index() -> None:
    for row in (0, 1, SEQ_MASK, (1 << 62) + 5, (5 << 32) | 7):
        assert recent_index.row_of(recent_index.recent_id(row)) == row


def test_a_small_store_keeps_no_window(writer: Writer, notes: StreamHandle) -> None:
    bring(writer, notes, *"abcdefgh")
    writer.finish()
    assert not recent_index.whole(writer.db) and window(writer) == []


def test_the_window_moves_on_with_the_store(writer: Writer, notes: StreamHandle) -> None:
    bring(writer, notes, *"abcdefghij")
    writer.finish()
    assert writer.meta("recent_floor") == 10 - WINDOW + 1
    bring(writer, notes, *"klmn")
    writer.finish()
    assert writer.meta("recent_floor") == 10 - WINDOW + 1
    bring(writer, notes, "o", "p")
    writer.finish()
    assert writer.meta("recent_floor") == 16 - WINDOW + 1
    assert window(writer) == rows(writer, 16 - WINDOW + 1)


def test_an_import_that_was_killed_leaves_a_window_nobody_looks_into(
    writer: Writer, notes: StreamHandle
) -> None:
    bring(writer, notes, *"abcdefghij")
    writer.finish()
    bring(writer, notes, "k")
    writer.close()
    with open_writer(writer.path) as again:
        assert not recent_index.whole(again.db)
        bring(again, open_stream(again, "c", "notes"), "l")
        again.finish()
        assert recent_index.whole(again.db)
        assert window(again) == rows(again, again.meta("recent_floor"))


def test_words_of_a_deleted_record_are_gone_from_the_window(
    writer: Writer, notes: StreamHandle
) -> None:
    bring(writer, notes, *"abcdefghij")
    put(writer, notes, [Row({"id": "secret", "text": "lanterns"}, "secret")])
    writer.finish()
    assert "lanterns" in words(writer)
    put(writer, notes, [Row({}, "secret", deleted=True)])
    assert "lanterns" not in words(writer)
    writer.finish()
    check(writer)
    blocks = writer.db.execute("SELECT block FROM fts_recent_data").fetchall()
    assert not any(b"lantern" in block for (block,) in blocks)


def test_a_changed_manifest_moves_the_rows_of_the_window(
    writer: Writer, notes: StreamHandle
) -> None:
    bring(writer, notes, *"abcdefghij", title="lantern")
    writer.finish()
    fewer = NOTES | {"query": NOTES["query"] | {"search": {"lexical_fields": ["text"]}}}
    declare(writer, "c", parse({"streams": [fewer]}))
    writer.finish()
    check(writer)
    assert recent_index.whole(writer.db) and "lantern" not in words(writer)


def test_a_store_of_the_second_layout_is_served_as_it_is_and_gets_its_window(
    writer: Writer, notes: StreamHandle, tmp_path: Path
) -> None:
    bring(writer, notes, *"abcdefghij")
    writer.finish()
    _, token = grants.create(writer.db, {"streams": [{"connection_id": "c"}]})
    take_back(writer, 2)
    writer.close()
    assert examine(writer.path, Deadline.after(10)).damage is None
    before = Store(writer.path).open(token).search(SearchQuery("owl", limit=20)).body
    with open_writer(writer.path) as again:
        assert recent_index.whole(again.db)
        assert window(again) == rows(again, 10 - WINDOW + 1)
        check(again)
    assert Store(writer.path).open(token).search(SearchQuery("owl", limit=20)).body == before
    assert len(before["data"]) == 10
