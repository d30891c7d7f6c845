import base64
import hashlib
import json
from itertools import pairwise
from typing import Any

import pytest

from evidence.limits import CONTRACT
from evidence.work import Deadline
from service.records.writing import ingest
from service.records.sqlite.ddl import NO_CURSOR
from tests.helpers.filling import put
from service.records.intake import Row
from service.records.engine.scopes import StreamHandle
from service.records.writing.streams import open_stream
from service.records.sqlite.writer import Writer, open_writer
from tests.helpers.notes import LONG, changes, check, contents, matches, one, tally

LIMIT = CONTRACT.inline_bytes


def test_putting_the_same_rows_again_changes_nothing(writer: Writer, notes: StreamHandle) -> None:
    rows = [Row({"id": f"n{n}", "title": f"Note {n}", "text": LONG}) for n in range(3)]
    assert tally(put(writer, notes, rows)) == (3, 0, 0, 0)
    before = contents(writer)
    assert tally(put(writer, notes, rows)) == (0, 0, 3, 0)
    assert contents(writer) == before


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


def test_the_change_log_names_the_fields_that_changed(writer: Writer, notes: StreamHandle) -> None:
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


def test_the_bytes_of_attachments_count_in_what_a_batch_holds(
    writer: Writer, notes: StreamHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_BYTES", 10_000)
    batch = ingest.Batch(writer)
    content = base64.b64encode(b"x" * 6_000).decode()
    for name, stored in (("a", 0), ("b", 2), ("c", 2)):
        batch.add(notes, Row({"id": name, "file": {"data_base64": content}}))
        assert one(writer, "SELECT count(*) FROM record") == (stored,)


class Clock:
    """Goes on by `cost` seconds with each change; notes how much the transactions took."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.cost, self.now, self.seen = writer, 0.0, 0.0, 0
        self.seconds = [0.0]

    def __call__(self) -> float:
        (count,) = one(self.writer, "SELECT count(*) FROM change")
        self.now += (count - self.seen) * self.cost
        self.seen = count
        if not self.writer.db.in_transaction:
            self.seconds.append(self.now)
        return self.now

    def took(self) -> list[float]:
        took = [after - before for before, after in pairwise(self.seconds)]
        self.seconds = self.seconds[-1:]
        return took


def test_a_transaction_changes_what_half_a_second_allows(
    writer: Writer, notes: StreamHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_RECORDS", 200)
    clock = Clock(writer)
    batch = ingest.Batch(writer, timer=lambda seconds: Deadline.after(seconds, clock))

    def put_all(title: str, cost: float) -> list[float]:
        clock.cost = cost
        for n in range(800):
            batch.add(notes, Row({"id": f"n{n}", "title": title}))
        return clock.took()

    most = ingest.BATCH_SECONDS + 0.02  # a row more
    new = put_all("One", 0.005)
    assert new[0] < new[1] < new[2] < max(new) <= most and max(new) > 0.9 * most
    first, *later = put_all("Two", 0.02)
    assert first > most >= max(later)
    assert not any(put_all("Two", 0.02))
    assert max(put_all("Three", 0.02)) <= most


def test_a_batch_of_rows_new_and_known_says_what_became_of_each(
    writer: Writer, notes: StreamHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.records.writing.arrivals.PIECE_RECORDS", 2)
    put(writer, notes, [Row({"id": name, "text": "owl"}) for name in "abcd"])
    rows = [
        Row({"id": "e", "text": "new"}),
        Row({"id": "d", "text": "owl"}),
        Row({}, key="c", deleted=True),
        Row({"id": "a", "text": "other"}),
        Row({}, key="x", deleted=True),
        Row({"id": "f", "text": "new"}),
        Row({"id": "e", "text": "newer"}),
    ]
    counts = put(writer, notes, rows)
    assert tally(counts) == (2, 1, 2, 1) and counts.repeated == 1
    assert changes(writer)[4:] == [("c", None), ("a", ["text"]), ("f", None), ("e", None)]
    found = writer.db.execute("SELECT seq, record_key FROM record ORDER BY seq").fetchall()
    assert found == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "f"), (6, "e")]
    assert (matches(writer, "new"), matches(writer, "newer")) == (1, 1)
    check(writer)


@pytest.mark.parametrize("key", ['a"b', "a\\b", "\u2028\u007f\t\n", "🦉", "1", "null", "é"])
def test_any_key_finds_its_record_again(writer: Writer, notes: StreamHandle, key: str) -> None:
    put(writer, notes, [Row({"id": key}), Row({"id": "other"})])
    assert tally(put(writer, notes, [Row({"id": key})])) == (0, 0, 1, 0)
    assert tally(put(writer, notes, [Row({}, key=key, deleted=True)])) == (0, 0, 0, 1)


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


def test_chunks_of_a_value_are_in_a_row(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": name, "text": LONG}) for name in "ab"])
    ids = [row[0] for row in writer.db.execute("SELECT id FROM chunk ORDER BY id")]
    size = -(-len(LONG) // CONTRACT.chunk_chars)
    assert ids == [*range(1, size + 1), *range(size + 1, 2 * size + 1)]


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


def test_times_and_cursors_are_stored_as_microseconds(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": "a", "at": "1970-01-01T00:00:01Z"}), Row({"id": "b"})])
    rows = writer.db.execute("SELECT at, cursor FROM record ORDER BY seq").fetchall()
    assert rows == [(1_000_000, 1_000_000), (None, NO_CURSOR)]


@pytest.mark.parametrize(
    ("row", "advice"),
    [
        (Row({"title": "x"}), "primary key field 'id' is missing"),
        (Row({"id": None}), "missing or null"),
        (Row({"id": ""}), "is not a valid"),
        (Row({"id": "."}), "is not a valid"),
        (Row({"id": ".."}), "is not a valid"),
        (Row({"id": "a\0b"}), "is not a valid"),
        (Row({"id": "é" * 257}), "512 bytes"),
        (Row({"id": True}), "a string, a number"),
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
