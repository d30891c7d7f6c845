import gzip
import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from service.__main__ import rung
from service.demo import debian
from service.demo.owner import LANDMARKS, ODD_IDS, build, pdf, png
from service.records.sqlite import checkup
from service.access.grants import find
from service.access.registry import Registry
from service.records.intake import Row
from service.records.manifest import parse
from service.records.sqlite.writer import open_writer

CHANGELOG = """\
hello (2:1.0-1~bpo12+1) unstable; urgency=Medium

  * Fix the greeting (Closes: #123, #45). closes: bug#7
  * Ünïcode.

 -- Ada Brandt <ada@example.org>  Thu, 01 Jan 2026 10:00:00 +0200

hello (0.9) unstable; urgency=low

  * First.

 -- Noor <noor@example.org>  someday
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "rung.db"
    assert "records" in demo(path)
    return path


def demo(store: Path) -> str:
    result = CliRunner().invoke(rung, ["demo", "--store", str(store)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_demo_is_the_same_every_time() -> None:
    assert list(build()) == list(build())


def test_the_demo_has_the_breadth_it_promises() -> None:
    connections = list(build())
    rows = [row for connection in connections for row in connection.rows]
    assert len(connections) == 6
    assert 2_800 <= len(rows) <= 3_600
    languages = {row.data.get("language") for row in rows}
    assert {"en", "de", "fr", "ja", "zh", "ar", "emoji"} <= languages
    assert sum(c.manifest["streams"][0]["name"] == "messages" for c in connections) == 3
    for connection in connections:
        assert all(stream.fields for stream in parse(connection.manifest))


def test_several_fields_are_large_and_one_is_over_a_megabyte() -> None:
    texts = [v for c in build() for r in c.rows for v in r.data.values() if isinstance(v, str)]
    sizes = [len(text.encode()) for text in texts]
    assert sum(size >= 200_000 for size in sizes) >= 5
    assert max(sizes) > 1_000_000


def test_every_landmark_stands_once_and_where_it_should() -> None:
    records = {(c.connection_id, r.stream, r.key): r.data for c in build() for r in c.rows}
    for mark in LANDMARKS:
        text = records[mark.connection_id, mark.stream, mark.record_id][mark.field]
        assert text.count(mark.sentence) == 1
        assert text.find(mark.sentence) / len(text) == pytest.approx(mark.share, abs=0.02)


def test_a_second_run_changes_nothing_and_gives_the_same_token(store: Path) -> None:
    with open_writer(store) as writer:
        before = list(writer.db.iterdump())
    first, second = demo(store), demo(store)
    assert first == second
    with open_writer(store) as writer:
        assert list(writer.db.iterdump()) == before


def test_the_token_reads_everything_and_is_kept_privately(store: Path) -> None:
    kept = store.parent / "demo-token"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    token = kept.read_text(encoding="utf-8").strip()
    assert f"token {token}\n" in demo(store)
    with open_writer(store) as writer:
        granted = find(Registry(writer), token)
        (streams,) = writer.db.execute("SELECT count(*) FROM stream").fetchone()
    assert granted.label == "demo"
    assert len(granted.streams) == streams == 11


def test_a_lost_or_revoked_token_is_replaced(store: Path) -> None:
    kept = store.parent / "demo-token"
    lost = kept.read_text(encoding="utf-8")
    kept.unlink()
    assert lost not in demo(store)
    CliRunner().invoke(rung, ["grant", "revoke", "demo", "--store", str(store)])
    shown = demo(store)
    assert kept.read_text(encoding="utf-8") in shown


def test_the_store_of_the_demo_is_sound(store: Path) -> None:
    with open_writer(store) as writer:
        for table in checkup.TABLES:
            writer.db.execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)")
        keys = {row[0] for row in writer.db.execute("SELECT record_key FROM record")}
        blobs = writer.db.execute("SELECT DISTINCT media_type FROM blob ORDER BY 1").fetchall()
        deleted = writer.db.execute("SELECT count(*) FROM tombstone").fetchone()
    assert set(ODD_IDS) <= keys
    assert [row[0] for row in blobs] == ["application/pdf", "image/png", "text/plain"]
    assert deleted == (2,)


def test_made_files_are_what_they_say() -> None:
    assert png(1, 2, 3).startswith(b"\x89PNG\r\n\x1a\n")
    assert pdf("Hi").startswith(b"%PDF-1.4") and pdf("Hi").endswith(b"%%EOF\n")


def test_a_debian_changelog_becomes_entries(tmp_path: Path) -> None:
    for name in range(debian.FEW_FILES):
        folder = tmp_path / f"package-{name}"
        folder.mkdir()
        (folder / debian.CHANGELOG).write_bytes(gzip.compress(CHANGELOG.encode()))
    connection = debian.build(salt="salt", docs=tmp_path)
    assert parse(connection.manifest)[0].roles["primary-title"] == "title"
    first, second = connection.rows
    assert isinstance(first, Row) and first.key == "hello/2:1.0-1~bpo12+1"
    assert first.data["date"] == "2026-01-01T08:00:00Z"
    assert first.data["bugs"] == [7, 45, 123]
    assert first.data["urgency"] == "medium"
    assert first.data["text"] == (
        "  * Fix the greeting (Closes: #123, #45). closes: bug#7\n  * Ünïcode."
    )
    assert second.data["date"] is None


def test_addresses_of_authors_are_hashed_with_the_salt(tmp_path: Path) -> None:
    for name in range(debian.FEW_FILES):
        (tmp_path / str(name)).mkdir()
        file = tmp_path / str(name) / debian.CHANGELOG
        file.write_bytes(gzip.compress(CHANGELOG.encode()))
    rows = [debian.build(salt=salt, docs=tmp_path).rows[0].data for salt in ("a", "b")]
    assert rows[0]["author_hash"] != rows[1]["author_hash"]
    assert "ada@example.org" not in json.dumps(rows)
