import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


from evidence.manifest.values import comparable
from tests.helpers.filling import put
from service.records.intake import Row
from evidence.manifest import parse
from service.records.writing.streams import declare, open_stream
from service.records.sqlite.writer import Writer, open_writer
from tests.helpers.notes import LONG, NOTES, changes, check
from tests.helpers.scale import times

TEXTS = st.sampled_from(["", "owl", "Eule und Owl", "東京の空", LONG, LONG + "end", "é" * 40_000])
STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {},
                optional={
                    "title": st.one_of(TEXTS, st.none(), st.integers(0, 3)),
                    "text": TEXTS,
                    "size": st.one_of(st.integers(0, 3), st.text("xé", max_size=2)),
                    "at": st.sampled_from(["1970-01-01", "1970-01-02T00:00:00Z", "never"]),
                    "tree": st.sampled_from([{"a": LONG}, {"a": LONG + "b"}, {}, "flat"]),
                },
            ),
        ),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=times(40, 20), deadline=None)
@given(steps=STEPS)
def test_any_history_leaves_indexes_cells_and_log_in_step(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any, bool]]
) -> None:
    expected: dict[str, dict[str, Any]] = {}
    log: list[tuple[str, Any]] = []
    with open_writer(tmp_path_factory.mktemp("history") / "rung.db") as writer:
        declare(writer, "c", parse({"streams": [NOTES]}))
        notes = open_stream(writer, "c", "notes")
        for key, data, merge in steps:
            old, new = expected.get(key), None if data is None else {"id": key} | data
            put(writer, notes, [Row(new or {}, key, deleted=new is None)])
            if old != new:
                both = old is not None and new is not None
                log.append((key, _difference(old, new) if both else None))
            if new is None:
                expected.pop(key, None)
            else:
                expected[key] = new
            if merge:
                writer.finish()
        check(writer)
        assert changes(writer) == log
        assert _stored(writer) == expected
        assert _cells(writer) == _expected_cells(expected)


@settings(max_examples=times(40, 20), deadline=None)
@given(batches=st.lists(STEPS, min_size=1, max_size=3))
def test_rows_in_one_batch_leave_what_the_last_of_each_would(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, Any, bool]]]
) -> None:
    expected: dict[str, dict[str, Any]] = {}
    log: list[tuple[str, Any]] = []
    with (
        pytest.MonkeyPatch.context() as patch,
        open_writer(tmp_path_factory.mktemp("history") / "rung.db") as writer,
    ):
        patch.setattr("service.records.writing.arrivals.PIECE_RECORDS", 2)
        declare(writer, "c", parse({"streams": [NOTES]}))
        notes = open_stream(writer, "c", "notes")
        for steps in batches:
            rows = [(key, None if data is None else {"id": key} | data) for key, data, _ in steps]
            put(writer, notes, [Row(new or {}, key, deleted=new is None) for key, new in rows])
            last: dict[str, Any] = {}
            for key, new in rows:
                last.pop(key, None)
                last[key] = new
            for key, new in last.items():
                old = expected.pop(key, None)
                if old != new:
                    both = old is not None and new is not None
                    log.append((key, _difference(old, new) if both else None))
                if new is not None:
                    expected[key] = new
        writer.finish()
        check(writer)
        assert changes(writer) == log
        assert _stored(writer) == expected
        assert _cells(writer) == _expected_cells(expected)


def _difference(old: Any, new: Any) -> list[str]:
    gone = object()
    return sorted(n for n in {*old, *new} if old.get(n, gone) != new.get(n, gone))


def _stored(writer: Writer) -> dict[str, dict[str, Any]]:
    found = {}
    for key, data, big in writer.db.execute(
        "SELECT record_key, data, big FROM document JOIN record USING (seq)"
    ).fetchall():
        record = json.loads(data)
        for name, (first, chunks, chars, size, kind) in json.loads(big or "{}").items():
            rows = writer.db.execute(
                "SELECT text FROM chunk WHERE id BETWEEN ? AND ? ORDER BY id",
                (first, first + chunks - 1),
            ).fetchall()
            text = "".join(row[0] for row in rows)
            assert (len(rows), len(text), len(text.encode())) == (chunks, chars, size)
            record[name] = text if kind == "string" else json.loads(text)
        found[key] = record
    return found


def _cells(writer: Writer) -> set[tuple[str, str, Any]]:
    return set(
        writer.db.execute(
            "SELECT record_key, field, value FROM cell JOIN record USING (seq)"
            " JOIN scope USING (ordinal)"
        )
    )


def _expected_cells(records: dict[str, dict[str, Any]]) -> set[tuple[str, str, Any]]:
    times = {"1970-01-01": 0, "1970-01-02T00:00:00Z": 86_400_000_000}
    found: set[tuple[str, str, Any]] = set()
    for key, record in records.items():
        found.add((key, "id", key))
        if isinstance(record.get("title"), str):
            found.add((key, "title", comparable(record["title"])))
        if isinstance(record.get("size"), int):
            found.add((key, "size", record["size"]))
        if record.get("at") in times:
            found.add((key, "at", times[record["at"]]))
    return found
