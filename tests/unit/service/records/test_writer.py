import json
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event, Thread

import pytest

from evidence.errors import InvalidRequest, Unavailable
from evidence.fold import FOLD_VERSION, fold
from service.records.sqlite import indexing, transactions, writer as writer_module
from service.records.sqlite.ddl import CONNECTION_BLOCK, NO_CURSOR, SEQ_BITS, STREAM_BLOCK
from tests.helpers.filling import put
from service.records.intake import Row
from evidence.manifest import parse
from service.records.sqlite.reader import Reader
from service.records.engine.scopes import StreamHandle
from service.records.writing.streams import connect, declare, open_stream
from service.records.sqlite.transactions import UNMERGED
from service.records.sqlite.writer import Writer, open_writer
from tests.helpers.notes import LONG, NOTES, changes, check, matches, one, segments


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
    monkeypatch.setattr(writer_module, "FOLD_VERSION", FOLD_VERSION + "+")
    monkeypatch.setattr(indexing, "fold", lambda text: fold(text).replace("owl", "eule"))
    with open_writer(writer.path) as again:
        assert (matches(again, "owl"), matches(again, "eule")) == (0, 1)
        assert again.meta("fold_version") == FOLD_VERSION + "+"


def test_a_layout_that_no_release_wrote_is_refused(writer: Writer) -> None:
    writer.db.execute("PRAGMA user_version = 4")
    with pytest.raises(InvalidRequest, match="before the first release. Import"):
        open_writer(writer.path)


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


def test_a_few_new_records_wait_for_more_before_the_index_is_merged(
    writer: Writer, notes: StreamHandle
) -> None:
    def bring(first: int, last: int) -> tuple[object, int]:
        put(writer, notes, [Row({"id": f"n{n}", "text": "owl"}) for n in range(first, last)])
        writer.finish()
        check(writer)
        return writer.meta(UNMERGED), segments(writer)

    assert bring(0, 100) == (None, 1)
    assert bring(100, 105) == (5, 2)
    assert bring(105, 111) == (11, 3)
    assert bring(111, 112) == (None, 1)
    assert matches(writer, "owl") == 112


def test_words_that_are_gone_are_merged_away_however_few_they_are(
    writer: Writer, notes: StreamHandle
) -> None:
    put(writer, notes, [Row({"id": f"n{n}", "text": f"owl {n}"}) for n in range(100)])
    writer.finish()
    put(writer, notes, [Row({"id": "a", "title": "zanzibar", "text": "lantern"})])
    writer.finish()
    assert segments(writer) == 2
    put(writer, notes, [Row({"id": "a", "title": "other", "text": "lantern"})])
    writer.finish()
    assert (segments(writer), writer.meta(UNMERGED)) == (1, None)
    assert b"zanzibar" not in writer.path.read_bytes()
    assert (matches(writer, "zanzibar"), matches(writer, "lantern")) == (0, 1)
    check(writer)


def test_a_merge_in_small_steps_leaves_one_piece_that_finds_everything(
    writer: Writer, notes: StreamHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MERGE_PAGES", 1)
    for batch in range(3):
        texts = [" ".join(f"word{n * batch % 977}x{m}" for m in range(40)) for n in range(400)]
        put(writer, notes, [Row({"id": f"{batch}/{n}", "text": t}) for n, t in enumerate(texts)])
    before = [matches(writer, f"word{n}x7") for n in range(0, 977, 50)]
    assert segments(writer) >= 3
    writer.finish()
    assert segments(writer) == 1
    assert [matches(writer, f"word{n}x7") for n in range(0, 977, 50)] == before
    check(writer)


def test_what_another_process_wrote_during_a_merge_is_not_taken_for_merged(
    writer: Writer, notes: StreamHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(writer, notes, [Row({"id": f"n{n}", "text": "owl"}) for n in range(10)])
    merge = Writer._merge
    with open_writer(writer.path) as second:

        def meanwhile(self: Writer, index: str) -> None:
            if index == "fts_passage":
                put(second, open_stream(second, "c", "notes"), [Row({"id": "late"})])
            merge(self, index)

        monkeypatch.setattr(Writer, "_merge", meanwhile)
        writer.finish()
        monkeypatch.undo()
        assert second.meta(UNMERGED) == 11
        second.finish()
        assert (second.meta(UNMERGED), segments(second)) == (None, 1)
        check(second)


def test_the_log_begins_anew_though_somebody_always_reads(
    writer: Writer, notes: StreamHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "LOG_BYTES", 600_000)
    log, sizes, done = writer.path.with_name(f"{writer.path.name}-wal"), list[int](), Event()

    def read() -> None:
        """Each snapshot begins before the last one has ended."""
        first, second = (Reader(writer.path) for _ in range(2))
        with ExitStack() as stack:
            stack.enter_context(first.connection()).execute(
                "SELECT count(*) FROM record"
            ).fetchone()
            while not done.is_set():
                first, second = second, first
                kept = stack.pop_all()
                db = stack.enter_context(first.connection())
                db.execute("SELECT count(*) FROM record").fetchone()
                kept.close()
        first.close(), second.close()

    reader = Thread(target=read)
    reader.start()
    for number in range(40):
        put(writer, notes, [Row({"id": f"n{number}", "title": "owl", "text": f"{LONG} {number}"})])
        sizes.append(log.stat().st_size)
    done.set()
    reader.join()
    assert sum(after < before for before, after in zip(sizes, sizes[1:])) >= 3
    assert max(sizes) < 2_400_000
    check(writer)


def test_a_store_that_stays_locked_says_what_to_do(writer: Writer) -> None:
    with open_writer(writer.path, lock_seconds=0) as second:
        writer.db.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="Another process"):
            connect(second, "d")
        writer.db.execute("ROLLBACK")


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("hello " * 1_000, encoding="utf-8")
    with pytest.raises(InvalidRequest, match="not a Rung store"):
        open_writer(tmp_path / "x.db")


def test_a_database_of_others_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (id)")
    before = path.read_bytes()
    with pytest.raises(InvalidRequest, match="not a Rung store"):
        open_writer(path)
    assert path.read_bytes() == before


def test_a_store_of_a_newer_rung_is_left_alone(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InvalidRequest, match="newer version of Rung"):
        open_writer(tmp_path / "x.db")


def test_row_ids_carry_ordinal_and_record(writer: Writer, notes: StreamHandle) -> None:
    put(writer, notes, [Row({"id": "a", "title": "owl", "text": "owl"}), Row({"id": "b"})])
    rows = writer.db.execute("SELECT rowid FROM fts WHERE fts MATCH 'owl' ORDER BY 1").fetchall()
    assert rows == [(1,), (1 << SEQ_BITS | 1,)]


def test_a_new_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It holds records, and the key of cursors and of the tokens of package members."""
    with open_writer(tmp_path / "deep" / "rung.db") as writer:
        assert writer.meta("secret")
        found = {path.name: path.stat().st_mode & 0o077 for path in writer.path.parent.iterdir()}
    assert found and not any(found.values())


READS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT 1 FROM meta").fetchone()
db.close()
"""


def test_opening_a_store_to_write_leaves_the_locks_of_readers_in_this_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rung.db"
    open_writer(path).close()
    reader = Reader(path)
    with reader.connection() as db:
        db.execute("SELECT 1 FROM meta").fetchone()
    open_writer(path).close()
    # Who ends last removes the log, and must not take itself for that one.
    subprocess.run([sys.executable, "-c", READS, str(path)], check=True)
    assert path.with_name("rung.db-wal").exists()
    reader.close()
