import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence.errors import InvalidRequest, Unavailable
from evidence.fold import FOLD_VERSION, fold
from evidence.limits import CONTRACT
from service.upstreams.store import writer as writer_module
from service.upstreams.store.ddl import CONNECTION_BLOCK, NO_CURSOR, SEQ_BITS, STREAM_BLOCK
from service.upstreams.store.ingest import Counts, put
from service.upstreams.store.intake import Row
from service.upstreams.store.manifest import parse
from service.upstreams.store.streams import StreamHandle, connect, declare, open_stream
from service.upstreams.store.writer import Writer, open_writer

NOTES: dict[str, Any] = {
    "name": "notes",
    "primary_key": ["id"],
    "cursor_field": "at",
    "schema": {
        "properties": {
            "id": {"type": "string"},
            "title": {"type": "string"},
            "text": {"type": "string"},
            "size": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "tree": {"type": "object"},
            "file": {"type": "object"},
        }
    },
    "query": {
        "exact_filters": ["id", "title"],
        "range_filters": {"size": ["gte"], "at": ["gte"]},
        "search": {"lexical_fields": ["title", "text"]},
    },
}
LONG = "lantern " * 10_000
LIMIT = CONTRACT.inline_bytes


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with open_writer(tmp_path / "folder" / "rung.db") as opened:
        declare(opened, "c", parse({"streams": [NOTES]}))
        yield opened


@pytest.fixture
def notes(writer: Writer) -> StreamHandle:
    return open_stream(writer, "c", "notes")


def check(writer: Writer) -> None:
    """Both indexes agree with what they index, and nothing points nowhere."""
    writer.db.execute("INSERT INTO fts(fts, rank) VALUES('integrity-check', 1)")
    writer.db.execute("INSERT INTO fts_chunk(fts_chunk, rank) VALUES('integrity-check', 1)")
    assert writer.db.execute("PRAGMA foreign_key_check").fetchall() == []


def changes(writer: Writer) -> list[tuple[str, Any]]:
    rows = writer.db.execute(
        "SELECT record_key, fields FROM change JOIN record USING (seq) ORDER BY version"
    )
    return [(key, fields and json.loads(fields)) for key, fields in rows]


def matches(writer: Writer, words: str) -> int:
    found = writer.db.execute("SELECT count(*) FROM fts WHERE fts MATCH ?", (fold(words),))
    return int(found.fetchone()[0])


def tally(counts: Counts) -> tuple[int, int, int, int]:
    return counts.new, counts.changed, counts.unchanged, counts.deleted


def one(writer: Writer, sql: str) -> Any:
    return writer.db.execute(sql).fetchone()


def test_putting_the_same_rows_again_changes_nothing(writer: Writer, notes: StreamHandle) -> None:
    rows = [Row({"id": f"n{n}", "title": f"Note {n}", "text": LONG}) for n in range(3)]
    assert tally(put(writer, notes, rows)) == (3, 0, 0, 0)
    before = list(writer.db.iterdump())
    assert tally(put(writer, notes, rows)) == (0, 0, 3, 0)
    assert list(writer.db.iterdump()) == before


def test_the_order_of_keys_is_no_change(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": "a", "tree": {"x": 1, "y": 2}, "size": 1})])
    counts = put(writer, notes, [Row({"size": 1, "tree": {"y": 2, "x": 1}, "id": "a"})])
    assert tally(counts) == (0, 0, 1, 0)


def test_one_true_and_one_point_zero_are_different_values(
    writer: Writer, notes: StreamHandle
) -> None:
    for value in (1, True, 1.0):
        put(writer, notes, [Row({"id": "a", "size": value})])
    assert changes(writer) == [("a", None), ("a", ["size"]), ("a", ["size"])]


def test_the_change_log_names_the_fields_that_changed(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": "a", "title": "One", "size": 1})])
    put(writer, notes, [Row({"id": "a", "title": "Two", "text": "new", "size": 1})])
    put(writer, notes, [Row({}, key="a", deleted=True)])
    put(writer, notes, [Row({"id": "a", "title": "Two"})])
    assert changes(writer) == [("a", None), ("a", ["text", "title"]), ("a", None), ("a", None)]


def test_a_deleted_record_leaves_a_tombstone_and_no_words(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": "a", "title": "zanzibar", "text": LONG})])
    counts = put(writer, notes, [Row({}, "a", "2026-01-01T00:00:00Z", deleted=True)])
    writer.finish()
    assert tally(counts) == (0, 0, 0, 1)
    assert matches(writer, "zanzibar") == 0
    assert one(writer, "SELECT deleted FROM record") == (1,)
    assert one(writer, "SELECT deleted_at FROM tombstone") == ("2026-01-01T00:00:00Z",)
    for table in ("document", "value", "chunk", "cell"):
        assert one(writer, f"SELECT count(*) FROM {table}") == (0,)
    assert b"zanzibar" not in writer.path.read_bytes()
    check(writer)


def test_a_resurrected_record_keeps_its_number(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": "a"}), Row({"id": "b"})])
    put(writer, notes, [Row({}, key="a", deleted=True)])
    assert tally(put(writer, notes, [Row({"id": "a", "title": "back"})])) == (1, 0, 0, 0)
    assert one(writer, "SELECT seq, deleted FROM record WHERE record_key = 'a'") == (1, 0)
    assert one(writer, "SELECT count(*) FROM tombstone") == (0,)


def test_deleting_what_is_not_there_changes_nothing(writer: Writer, notes: StreamHandle) -> None:
    assert tally(put(writer, notes, [Row({}, key="a", deleted=True)])) == (0, 0, 1, 0)
    assert changes(writer) == []


def test_the_last_of_repeated_rows_wins(writer: Writer, notes: StreamHandle) -> None:
    counts = put(writer, notes, [Row({"id": "a", "size": n}) for n in range(4)])
    assert (counts.new, counts.repeated, counts.rows) == (1, 3, 4)
    assert one(writer, "SELECT data FROM document") == ('{"id":"a","size":3}',)


def test_a_large_string_lies_in_chunks_and_a_small_one_does_not(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": "a", "text": "é" * (LIMIT // 2 + 1), "title": "x" * LIMIT})])
    data, big = one(writer, "SELECT data, big FROM document")
    assert json.loads(data) == {"id": "a", "title": "x" * LIMIT}
    assert json.loads(big) == {"text": [1, 3, LIMIT // 2 + 1, LIMIT + 2, "string"]}
    assert one(writer, "SELECT length(text) FROM chunk WHERE id = 2") == (CONTRACT.chunk_chars,)
    check(writer)


def test_a_large_nested_value_is_kept_as_canonical_json(
    writer: Writer, notes: StreamHandle
) -> None:
    tree = {"b": "x" * LIMIT, "a": 1}
    put(writer, notes, [Row({"id": "a", "tree": tree})])
    (big,) = one(writer, "SELECT big FROM document")
    text = one(writer, "SELECT group_concat(text, '') FROM (SELECT text FROM chunk ORDER BY id)")[0]
    assert text == json.dumps(tree, sort_keys=True, separators=(",", ":"))
    assert json.loads(big)["tree"][2:] == [len(text), len(text), "object"]
    check(writer)


def test_chunks_of_different_values_never_touch(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": name, "text": LONG}) for name in "ab"])
    ids = [row[0] for row in writer.db.execute("SELECT id FROM chunk ORDER BY id")]
    size = -(-len(LONG) // CONTRACT.chunk_chars)
    assert ids == [*range(1, size + 1), *range(size + 2, 2 * size + 2)]


def test_an_unchanged_large_value_stays_where_it_is(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": "a", "text": LONG, "size": 1})])
    (before,) = one(writer, "SELECT big FROM document")
    put(writer, notes, [Row({"id": "a", "text": LONG, "size": 2})])
    assert one(writer, "SELECT big FROM document") == (before,)
    put(writer, notes, [Row({"id": "a", "text": LONG[::-1], "size": 2})])
    assert one(writer, "SELECT big FROM document") != (before,)
    assert changes(writer)[1:] == [("a", ["size"]), ("a", ["text"])]
    check(writer)


def test_numbers_of_chunks_and_records_are_never_used_again(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": "a", "text": LONG})])
    put(writer, notes, [Row({}, key="a", deleted=True)])
    with open_writer(writer.path) as again:
        put(again, open_stream(again, "c", "notes"), [Row({"id": "b", "text": LONG})])
    assert one(writer, "SELECT min(id) FROM chunk")[0] > LONG.count(" ") * 8 // 16_384
    assert one(writer, "SELECT seq FROM record WHERE record_key = 'b'") == (2,)


def test_times_and_cursors_are_stored_as_microseconds(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": "a", "at": "1970-01-01T00:00:01Z"}), Row({"id": "b"})])
    rows = writer.db.execute("SELECT at, cursor FROM record ORDER BY seq").fetchall()
    assert rows == [(1_000_000, 1_000_000), (None, NO_CURSOR)]


@pytest.mark.parametrize(
    ("row", "advice"),
    [
        (Row({"title": "x"}), "primary key field 'id' is missing"),
        (Row({"id": None}), "missing or null"),
        (Row({"id": ""}), "cannot identify"),
        (Row({"id": "."}), "cannot identify"),
        (Row({"id": ".."}), "cannot identify"),
        (Row({"id": "a\0b"}), "cannot identify"),
        (Row({"id": "é" * 257}), "512 bytes"),
        (Row({"id": True}), "string or a number"),
        (Row({"id": "a", "": 1}), "rename"),
        (Row({"id": "a", "x" * 65: 1}), "64 bytes"),
        (Row({"id": "a"}, emitted_at="yesterday"), "ISO 8601"),
        (Row({"id": "a", "tree": {"blob_id": "b", "data_base64": "%"}}), "not base64"),
        (Row({"id": "a", "tree": {"blob_id": 5}}), "must be strings"),
        (Row({"id": "a", "tree": {"size_bytes": 2, "data_base64": "eA=="}}), "does not match"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_line(
    writer: Writer, notes: StreamHandle, row: Row, advice: str
) -> None:
    counts = put(writer, notes, [Row({"id": "ok"}), row])
    assert (counts.new, counts.refused) == (1, 1)
    ((line, message),) = counts.refusals
    assert line == 2
    assert advice in message


def test_a_value_nested_too_deep_is_refused(writer: Writer, notes: StreamHandle) -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    assert put(writer, notes, [Row({"id": "a", "tree": deep})]).refused == 1


def test_an_id_of_512_bytes_and_a_field_of_64_are_taken(
    writer: Writer, notes: StreamHandle
) -> None:
    assert put(writer, notes, [Row({"id": "é" * 256, "f" * 64: 1})]).new == 1


def test_keys_may_be_numbers_or_lists(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": 7}), Row({"id": "x"}, key=["a", 1])])
    keys = writer.db.execute("SELECT record_key FROM record ORDER BY seq").fetchall()
    assert keys == [("7",), ('["a","1"]',)]


def test_blobs_are_kept_in_parts_and_their_bytes_leave_the_record(
    writer: Writer, notes: StreamHandle
) -> None:
    content = bytes(range(256)) * 2_000
    file = {"mime_type": "image/png", "data_base64": base64.b64encode(content).decode()}
    put(writer, notes, [Row({"id": name, "file": dict(file)}) for name in "ab"])
    parts = writer.db.execute("SELECT data FROM blob_part ORDER BY no").fetchall()
    assert b"".join(row[0] for row in parts) == content and len(parts) == 2
    kept = json.loads(one(writer, "SELECT data FROM document")[0])["file"]
    digest = hashlib.sha256(content).hexdigest()
    assert kept == {
        "mime_type": "image/png",
        "size_bytes": len(content),
        "sha256": digest,
        "blob_id": f"blob_{digest}",
    }
    assert one(writer, "SELECT count(*), min(field) FROM blob_use") == (2, "file")
    put(writer, notes, [Row({}, key="a", deleted=True)])
    assert one(writer, "SELECT count(*) FROM blob") == (1,)
    put(writer, notes, [Row({"id": "b"})])
    assert one(writer, "SELECT count(*) FROM blob") == (0,)
    assert one(writer, "SELECT count(*) FROM blob_part") == (0,)


def test_ordinals_of_a_stream_stand_side_by_side_and_streams_in_blocks(writer: Writer) -> None:
    more = NOTES | {"name": "more"}
    declare(writer, "c", parse({"streams": [more]}))
    declare(writer, "d", parse({"streams": [NOTES]}))
    first = open_stream(writer, "c", "notes").scopes
    second = open_stream(writer, "c", "more").scopes
    third = open_stream(writer, "d", "notes").scopes
    assert first.searchable == {"title": 0, "text": 1}
    assert set(second.searchable.values()) == {STREAM_BLOCK, STREAM_BLOCK + 1}
    assert set(third.searchable.values()) == {CONNECTION_BLOCK, CONNECTION_BLOCK + 1}
    assert first.cells == {"id": 2, "title": 0, "size": 3, "at": 4}


def test_a_stream_that_outgrows_its_block_gets_another_one(writer: Writer) -> None:
    wide = {f"f{n}": {"type": "string"} for n in range(70)}
    document = {"name": "wide", "schema": {"properties": wide}}
    declare(writer, "c", parse({"streams": [document]}))
    declare(writer, "c", parse({"streams": [NOTES | {"name": "after"}]}))
    ordinals = sorted(open_stream(writer, "c", "wide").scopes.cells.values())
    assert ordinals == list(range(STREAM_BLOCK, STREAM_BLOCK + 70))
    assert min(open_stream(writer, "c", "after").scopes.cells.values()) == 3 * STREAM_BLOCK


def test_a_changed_manifest_indexes_what_is_already_there(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": "a", "title": "owl", "text": LONG, "at": "1970-01-01"})])
    changed = json.loads(json.dumps(NOTES))
    changed["query"] = {"exact_filters": ["size"], "search": {"lexical_fields": ["text"]}}
    changed["cursor_field"] = "size"
    changed["schema"]["properties"]["added"] = {"type": "string"}
    declare(writer, "c", parse({"streams": [changed]}))
    assert (matches(writer, "owl"), matches(writer, "lantern")) == (0, 1)
    assert one(writer, "SELECT count(*) FROM cell") == (0,)
    assert one(writer, "SELECT at, cursor FROM record") == (None, NO_CURSOR)
    check(writer)
    declare(writer, "c", parse({"streams": [NOTES]}))
    assert (matches(writer, "owl"), matches(writer, "lantern")) == (1, 1)
    assert one(writer, "SELECT count(*) FROM cell") == (3,)
    assert changes(writer) == [("a", None)]
    check(writer)


def test_a_foreign_key_declared_by_another_stream_gets_cells(writer: Writer) -> None:
    child = {"name": "lines", "schema": {"properties": {"of": {"type": "string"}}}}
    child["query"] = {"exact_filters": []}
    declare(writer, "c", parse({"streams": [child]}))
    assert open_stream(writer, "c", "lines").scopes.cells == {}
    relation = {"name": "lines", "stream": "lines", "foreign_key": "of"}
    declare(writer, "c", parse({"streams": [NOTES | {"relationships": [relation]}]}))
    assert list(open_stream(writer, "c", "lines").scopes.cells) == ["of"]


def test_a_new_fold_rebuilds_the_indexes(
    writer: Writer, notes: StreamHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(writer, notes, [Row({"id": "a", "title": "owl", "text": LONG})])
    monkeypatch.setattr(writer_module, "FOLD_VERSION", FOLD_VERSION + 1)
    monkeypatch.setattr(writer_module, "fold", lambda text: fold(text).replace("owl", "eule"))
    with open_writer(writer.path) as again:
        assert (matches(again, "owl"), matches(again, "eule")) == (0, 1)
        assert again.meta("fold_version") == FOLD_VERSION + 1


def test_the_secret_is_made_once(writer: Writer) -> None:
    secret = writer.meta("secret")
    assert len(bytes.fromhex(secret)) == 32
    with open_writer(writer.path) as again:
        assert again.meta("secret") == secret


def test_a_failed_batch_leaves_no_trace(writer: Writer, notes: StreamHandle) -> None:
    with pytest.raises(RuntimeError):
        with writer.transaction():
            put(writer, notes, [Row({"id": "a", "text": LONG})])
            raise RuntimeError("stop")
    assert one(writer, "SELECT count(*) FROM record") == (0,)
    put(writer, notes, [Row({"id": "b", "text": LONG})])
    assert one(writer, "SELECT seq FROM record") == (1,)
    check(writer)


def test_a_store_that_stays_locked_says_what_to_do(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "LOCK_SECONDS", 0)
    with open_writer(writer.path) as second:
        writer.db.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="Another process"):
            connect(second, "d")
        writer.db.execute("ROLLBACK")


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("hello " * 1_000, encoding="utf-8")
    with pytest.raises(InvalidRequest, match="not a Rung store"):
        open_writer(tmp_path / "x.db")


def test_a_store_of_a_newer_rung_is_left_alone(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InvalidRequest, match="newer Rung"):
        open_writer(tmp_path / "x.db")


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
                    "size": st.one_of(st.integers(0, 3), st.text(max_size=2)),
                    "at": st.sampled_from(["1970-01-01", "1970-01-02T00:00:00Z", "never"]),
                    "tree": st.sampled_from([{"a": LONG}, {"a": LONG + "b"}, {}, "flat"]),
                },
            ),
        ),
        st.booleans(),
    ),
    max_size=12,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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
            found.add((key, "title", record["title"][:256]))
        if isinstance(record.get("size"), int):
            found.add((key, "size", record["size"]))
        if record.get("at") in times:
            found.add((key, "at", times[record["at"]]))
    return found


def test_row_ids_carry_ordinal_and_record(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": "a", "title": "owl", "text": "owl"}), Row({"id": "b"})])
    rows = writer.db.execute("SELECT rowid FROM fts WHERE fts MATCH 'owl' ORDER BY 1").fetchall()
    assert rows == [(1,), (1 << SEQ_BITS | 1,)]
