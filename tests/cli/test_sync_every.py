"""`rung sync --every`: rounds at an interval and after changes, which report only what is new."""

import signal
import time
from pathlib import Path

from service.access.entries import Entries
from service.records import freshness
from service.records.sidecar import open_sidecar
from tests.helpers.synced import Synced
from tests.helpers.waiting import WAIT_SECONDS


def filled(folder: Path, *words: str) -> Synced:
    """A folder with two tables, brought by a first round."""
    synced = Synced.make(folder)
    docs = folder / "docs"
    docs.mkdir()
    table(docs / "rows.csv", range(3))
    table(docs / "more.csv", range(3))
    synced.ok("source", "add", "files", str(docs), "--kind", "folder", *words)
    assert "files: 6 new." in synced.ok("sync").stderr
    return synced


def table(path: Path, ids: range) -> None:
    rows = "".join(f"{number},{path.stem} {number}\n" for number in ids)
    path.write_text(f"id,title\n{rows}", encoding="utf-8")


def test_sync_goes_on_and_notices_changes(tmp_path: Path) -> None:
    """What did not change is not reported: the first line is about the first change."""
    synced = filled(tmp_path)
    docs = synced.folder / "docs"
    table(docs / "rows.csv", range(4))
    process = synced.start("sync", "--every")
    assert process.stderr is not None
    try:
        assert process.stderr.readline() == b"files: 1 new.\n"
        table(docs / "rows.csv", range(5))
        assert process.stderr.readline() == b"files: 1 new.\n"
        (docs / "rows.csv").unlink()
        assert process.stderr.readline() == b"files: 5 deleted.\n"
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0 and rest == b""


def tried_at(synced: Synced) -> int:
    """The time of the last round of the folder."""
    return freshness.all_sources(Entries(open_sidecar(synced.store)))["files"].tried_at


def test_rounds_at_an_interval_report_a_failure_once_and_its_end(tmp_path: Path) -> None:
    synced = filled(tmp_path, "--every", "1s")
    docs = synced.folder / "docs"
    docs.rename(synced.folder / "elsewhere")
    process = synced.start("sync", "--every")
    assert process.stderr is not None
    try:
        assert b"is not a readable folder" in process.stderr.readline()
        first = tried_at(synced)
        while tried_at(synced) == first:
            time.sleep(0.2)
        (synced.folder / "elsewhere").rename(docs)
        assert process.stderr.readline() == b"files: nothing new.\n"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_SECONDS)


def test_a_source_that_is_paused_meanwhile_waits_until_it_is_resumed(tmp_path: Path) -> None:
    synced = filled(tmp_path, "--every", "1s")
    process = synced.start("sync", "--every")
    assert process.stderr is not None
    try:
        synced.ok("source", "pause", "files")
        assert b"files: paused. Resume it with" in process.stderr.readline()
        table(synced.folder / "docs/rows.csv", range(4))
        synced.ok("source", "resume", "files")
        assert process.stderr.readline() == b"files: 1 new.\n"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_SECONDS)
