"""Imports that are killed, and imports that somebody reads beside."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from evidence.manifest import parse
from service.records.sqlite.reader import Reader
from service.records.writing.streams import declare
from service.records.sqlite.transactions import UNMERGED
from service.records.sqlite.writer import open_writer
from tests.helpers.notes import NOTES, check, segments
from tests.helpers.stdio import ROOT, environment
from tests.helpers.worlds import House

pytestmark = pytest.mark.slow

BATCH = 1_100
BATCHES = 4
EMITTED_AT = "2026-05-02T00:00:00Z"

#: `rung`, with batches so small that a few thousand rows are many of them, each one transaction.
RUNG = """
import sys
from service.__main__ import rung
from service.records.writing import ingest
ingest.BATCH_RECORDS, ingest.BATCH_BYTES = int(sys.argv[1]), 1 << 30
ingest.BATCH_SECONDS, ingest.LEAST_SHARE = 1 << 30, 1
rung(sys.argv[2:], prog_name="rung")
"""

TABLES = ("record", "document", "tombstone", "chunk", "value", "cell", "change")


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A store that knows the stream of the rows and holds none."""
    return made(tmp_path / "rung.db")


def made(path: Path) -> House:
    with open_writer(path) as writer:
        declare(writer, "c", parse({"streams": [NOTES]}))
    return House(path)


def rows(first: int, last: int) -> list[bytes]:
    """Rows of the import, one in a hundred with a text of many chunks."""
    return [
        json.dumps(
            {
                "key": f"n{number}",
                "data": {
                    "id": f"n{number}",
                    "title": f"Owl number {number}",
                    "text": f"feather {number} " * (9_000 if number % 100 == 0 else 2),
                    "size": number % 7,
                },
                "emitted_at": EMITTED_AT,
            }
        ).encode()
        + b"\n"
        for number in range(first, last)
    ]


ROWS = rows(0, BATCH * BATCHES)


@contextmanager
def importing(path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", IO[bytes]]]:
    """An import of what is written to the pipe; it cannot end before the pipe is closed."""
    words = ("import", "-", "--connection", "c", "--stream", "notes", "--store", str(path))
    command = [sys.executable, "-c", RUNG, str(BATCH), *words]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment(), **pipes) as process:
        try:
            assert process.stdin is not None
            yield process, process.stdin
        finally:
            process.kill()


def bring(path: Path, lines: Sequence[bytes]) -> str:
    """What an import that comes to its end says."""
    with importing(path) as (process, _):
        _, said = process.communicate(b"".join(lines))
        assert process.returncode == 0, said
    return said.decode()


def content(path: Path) -> dict[str, list[Any]]:
    with open_writer(path) as writer:
        check(writer)
        return {
            table: writer.db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in TABLES
        }


def look(db: sqlite3.Connection, sql: str) -> Any:
    return db.execute(sql).fetchone()[0]


def wait_for(path: Path, count: int, process: "subprocess.Popen[bytes]") -> None:
    """Returns when somebody who reads beside the import sees so many records."""
    kept = 0
    while kept < count:
        assert process.poll() is None
        with Reader(path).connection() as db:
            kept = look(db, "SELECT count(*) FROM record")


def test_an_import_that_was_killed_goes_on_where_it_was(house: House, tmp_path: Path) -> None:
    with importing(house.path) as (process, pipe):
        pipe.write(b"".join(ROWS[: 2 * BATCH + BATCH // 2]))
        pipe.flush()
        wait_for(house.path, 2 * BATCH, process)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    with open_writer(house.path) as writer:
        assert look(writer.db, "SELECT count(*) FROM document") == 2 * BATCH
        assert writer.meta(UNMERGED) == 2 * BATCH and segments(writer) > 1
        check(writer)

    rest = len(ROWS) - 2 * BATCH
    assert f"{rest} new, 0 changed, {2 * BATCH} unchanged" in bring(house.path, ROWS)
    whole = made(tmp_path / "whole.db")
    assert f"{len(ROWS)} new" in bring(whole.path, ROWS)
    assert content(house.path) == content(whole.path)


def test_an_import_that_is_stopped_by_its_owner_says_how_to_go_on(house: House) -> None:
    with importing(house.path) as (process, pipe):
        pipe.write(b"".join(ROWS[: BATCH + 10]))
        pipe.flush()
        wait_for(house.path, BATCH, process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 1
        assert process.stderr is not None
        assert "Run the same command to continue" in process.stderr.read().decode()
    assert f"10 new, 0 changed, {BATCH} unchanged" in bring(house.path, ROWS[: BATCH + 10])


def test_what_a_killed_import_left_unmerged_is_merged_by_one_that_brings_nothing_new(
    house: House,
) -> None:
    with importing(house.path) as (process, pipe):
        pipe.write(b"".join(ROWS[: 3 * BATCH]))
        pipe.flush()
        wait_for(house.path, 3 * BATCH, process)
    assert "0 new, 0 changed, 1 unchanged" in bring(house.path, ROWS[:1])
    with open_writer(house.path) as writer:
        assert writer.meta(UNMERGED) is None and segments(writer) == 1
        check(writer)


def test_who_reads_beside_an_import_sees_whole_batches_and_finds_what_is_in_them(
    house: House,
) -> None:
    api = house.api({"connection_id": "c"})
    seen = {0}
    with importing(house.path) as (process, pipe):
        for batch in range(BATCHES):
            pipe.write(b"".join(ROWS[batch * BATCH : (batch + 1) * BATCH]))
            pipe.flush()
            while max(seen) < (batch + 1) * BATCH:
                assert process.poll() is None
                with Reader(house.path).connection() as db:
                    counts = {
                        look(db, "SELECT count(*) FROM record"),
                        look(db, "SELECT count(*) FROM document"),
                        look(db, "SELECT count(*) FROM change"),
                        look(db, "SELECT count(*) FROM cell WHERE ordinal = 3"),
                        look(db, "SELECT count(*) FROM fts WHERE fts MATCH 'owl'"),
                    }
                assert len(counts) == 1, counts
                seen |= counts
                found = api.mcp("search", query="owl", limit=5)["structuredContent"]
                assert max(seen) == 0 or len(found["results"]) == 5, found
        pipe.close()
        assert process.wait() == 0
    assert seen == {batch * BATCH for batch in range(BATCHES + 1)}
