"""`rung source` and `rung sync`: after each round, the store has what the source has."""

import json
import re
import stat
import sys
from collections.abc import Iterator
from csv import DictReader
from itertools import count
from pathlib import Path
from random import Random

import pytest

from service.cli.sources import WAITING
from service.place import file_of
from tests.helpers.asset_server import asset_server
from tests.helpers.shell import Shell
from tests.helpers.synced import Synced

MAIL = "From: ada@example.com\nMessage-ID: <{0}@x>\nSubject: {1}\n\nThe elm is in bloom.\n"


@pytest.fixture
def synced(tmp_path: Path) -> Synced:
    (tmp_path / "docs").mkdir()
    return Synced.make(tmp_path)


def table(path: Path, ids: range, title: str = "Row") -> None:
    rows = "".join(f"{number},{title} {number}\n" for number in ids)
    path.write_text(f"id,title\n{rows}", encoding="utf-8")


def fill(synced: Synced, count: int = 30, *words: str) -> None:
    """A folder with a table and a mail, brought by a first round."""
    table(synced.folder / "docs/rows.csv", range(count))
    (synced.folder / "docs/a.eml").write_text(MAIL.format("1", "Elm"), encoding="utf-8")
    synced.ok("source", "add", "files", str(synced.folder / "docs"), "--kind", "folder", *words)
    assert f"files: {count + 1} new." in synced.ok("sync").stderr


def test_a_folder_is_followed_through_changes_moves_and_deletions(synced: Synced) -> None:
    fill(synced)
    docs = synced.folder / "docs"
    table(docs / "rows.csv", range(5, 31))
    (docs / "b.eml").write_text(MAIL.format("2", "Oak"), encoding="utf-8")
    assert "files: 2 new, 5 deleted." in synced.ok("sync").stderr
    (docs / "b.eml").unlink()
    (docs / "inner").mkdir()
    (docs / "a.eml").rename(docs / "inner/a.eml")
    (docs / "rows.csv").rename(docs / "table.csv")
    synced.ok("sync", "files", "--accept-deletions")
    records = synced.records("files")
    assert sorted(map(int, records["table"])) == list(range(5, 31)) and not records.get("rows")
    assert {key: data["folder"] for key, data in records["messages"].items()} == {"1@x": "inner"}


def test_a_renamed_file_is_imported_under_its_new_name(synced: Synced) -> None:
    fill(synced)
    note = synced.folder / "docs/draft.md"
    note.write_text("The elm is in bloom.\n", encoding="utf-8")
    synced.ok("sync")
    note.rename(note.with_name("final.md"))
    assert "files: 1 new, 1 deleted." in synced.ok("sync").stderr
    stored = [
        row.get("title") for rows in synced.records("files").values() for row in rows.values()
    ]
    assert "final" in stored and "draft" not in stored


def test_a_record_stays_while_another_file_has_it(synced: Synced) -> None:
    fill(synced)
    docs = synced.folder / "docs"
    (docs / "copy.eml").write_bytes((docs / "a.eml").read_bytes())
    synced.ok("sync")
    (docs / "a.eml").unlink()
    synced.ok("sync")
    assert list(synced.records("files")["messages"]) == ["1@x"]
    (docs / "copy.eml").unlink()
    synced.ok("sync")
    assert "messages" not in synced.records("files")


def test_equal_ids_in_files_of_a_series_stay_apart_in_later_rounds(synced: Synced) -> None:
    docs = synced.folder / "docs"
    table(docs / "rows-2026-01.csv", range(3), "January")
    synced.ok("source", "add", "files", str(docs), "--kind", "folder")
    synced.ok("sync")
    table(docs / "rows-2026-02.csv", range(3), "February")
    synced.ok("sync")
    (stream,) = synced.records("files").values()
    titles = sorted(data["title"] for data in stream.values())
    assert titles == [f"{month} {n}" for month in ("February", "January") for n in range(3)]


def test_a_round_with_nothing_new_changes_no_byte_of_the_store(synced: Synced) -> None:
    fill(synced)
    before = (synced.folder / "rung.db").read_bytes()
    assert "files: nothing new." in synced.ok("sync").stderr
    assert (synced.folder / "rung.db").read_bytes() == before
    assert not (synced.folder / "rung.db-wal").exists()


def test_an_earlier_import_is_recognized(synced: Synced) -> None:
    docs = synced.folder / "docs"
    table(docs / "rows.csv", range(30))
    synced.ok("import", str(docs), "--connection", "files")
    synced.ok("source", "add", "files", str(docs), "--kind", "folder")
    assert "files: nothing new." in synced.ok("sync").stderr
    table(docs / "rows.csv", range(29))
    assert "files: 1 deleted." in synced.ok("sync").stderr


def test_many_missing_records_need_consent(synced: Synced) -> None:
    fill(synced, 100)
    table(synced.folder / "docs/rows.csv", range(70))
    result = synced.run("sync")
    assert result.exit_code == WAITING
    assert "30 records are missing" in result.stderr
    assert len(synced.records("files")["rows"]) == 100
    assert "paused" in synced.ok("source", "list").stdout
    assert synced.run("sync").exit_code == WAITING
    assert "30 deleted" in synced.ok("sync", "files", "--accept-deletions").stderr
    assert len(synced.records("files")["rows"]) == 70
    assert "ok" in synced.ok("source", "list").stdout


def test_a_source_that_lists_nothing_is_paused_and_one_that_is_gone_fails(synced: Synced) -> None:
    fill(synced, 3)
    docs = synced.folder / "docs"
    docs.rename(synced.folder / "elsewhere")
    assert synced.run("sync").exit_code == 1
    assert "failed" in synced.ok("source", "list").stdout
    docs.mkdir()
    result = synced.run("sync")
    assert result.exit_code == WAITING and "lists no records" in result.stderr
    docs.rmdir()
    (synced.folder / "elsewhere").rename(docs)
    synced.ok("source", "resume", "files")
    assert "nothing new" in synced.ok("sync").stderr
    assert len(synced.records("files")["rows"]) == 3


def test_deleted_records_can_be_kept_with_the_time(synced: Synced) -> None:
    fill(synced, 30, "--deletions", "keep")
    table(synced.folder / "docs/rows.csv", range(29))
    assert "1 marked as deleted" in synced.ok("sync").stderr
    rows = synced.records("files")["rows"]
    assert [key for key, data in rows.items() if "deleted_at_source" in data] == ["29"]
    token = synced.ok("grant", "create", "--label", "all").stdout.strip()
    reader = Shell({**synced.environ, "RUNG_TOKEN": token}, synced.folder)
    shown = reader.ok("search", "Row 29").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("1 files/rows:29 ")]
    deleted = rows["29"]["deleted_at_source"]
    assert f" deleted_at_source={deleted}" in line
    assert shown.count("deleted_at_source=") == 1
    first, *others = json.loads(reader.ok("search", "Row 29", "--json").stdout)["data"]
    assert first["deleted_at_source"] == deleted
    assert not any("deleted_at_source" in hit for hit in others)
    table(synced.folder / "docs/rows.csv", range(30))
    synced.ok("sync")
    rows = synced.records("files")["rows"]
    assert not any("deleted_at_source" in data for data in rows.values())


def test_a_grant_without_the_field_of_deletions_is_named(synced: Synced) -> None:
    docs = synced.folder / "docs"
    table(docs / "rows.csv", range(3))
    synced.ok("import", str(docs), "--connection", "files")
    synced.ok("grant", "create", "--connection", "files", "--label", "old")
    synced.ok("source", "add", "files", str(docs), "--kind", "folder", "--deletions", "keep")
    shown = synced.ok("sync").stderr
    assert "Grant 'old'" in shown and "deleted_at_source of files/rows" in shown


def test_grants_that_do_not_cover_a_new_source_are_named_in_one_line(synced: Synced) -> None:
    docs = synced.folder / "docs"
    table(docs / "rows.csv", range(3))
    synced.ok("import", str(docs), "--connection", "other")
    for label in ("laptop", "phone", "desk"):
        synced.ok("grant", "create", "--label", label)
    synced.ok("source", "add", "files", str(docs), "--kind", "folder")
    first, line = synced.ok("sync").stderr.splitlines()
    assert first == "files: 3 new."
    assert line.startswith("3 active grants do not cover all of files: 'laptop' (grt_")
    assert line.endswith(" To create a grant that does: rung grant create --connection files")


def test_a_file_that_is_half_written_loses_nothing(synced: Synced) -> None:
    docs = synced.folder / "docs"
    rows = [json.dumps({"id": f"r{n}", "title": f"Row {n}"}) for n in range(4)]
    path = docs / "rows.ndjson"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    synced.ok("source", "add", "files", str(docs), "--kind", "folder")
    synced.ok("sync")
    path.write_text("\n".join(rows)[:-5], encoding="utf-8")
    assert "1 refused" in synced.ok("sync").stderr
    assert len(synced.records("files")["rows"]) == 4
    path.write_text("\n".join(rows[1:]) + "\n", encoding="utf-8")
    synced.ok("sync")
    assert sorted(synced.records("files")["rows"]) == ["r1", "r2", "r3"]


def test_a_command_is_a_source(synced: Synced) -> None:
    script = synced.folder / "rows.py"
    script.write_text('print(\'{"id": "a", "title": "One"}\')', encoding="utf-8")
    line = f"{sys.executable} {script}"
    synced.ok("source", "add", "tasks", line, "--kind", "command")
    assert "tasks: 1 new." in synced.ok("sync").stderr
    assert "tasks: nothing new." in synced.ok("sync").stderr
    script.write_text("import sys; print('{}'); sys.exit(2)", encoding="utf-8")
    result = synced.run("sync")
    assert result.exit_code == 1 and "exit code 2" in result.stderr
    assert list(synced.records("tasks")["tasks"]) == ["a"]


def test_a_document_at_an_address_is_a_source(synced: Synced) -> None:
    rows = b'{"id": "a", "title": "One"}\n{"id": "b", "title": "Two"}\n'
    with asset_server({"/rows.ndjson": rows}) as server:
        synced.ok("source", "add", "rows", f"{server.url}/rows.ndjson", "--kind", "url")
        assert "rows: 2 new." in synced.ok("sync").stderr
        assert "rows: nothing new." in synced.ok("sync").stderr
        server.files = {"/rows.ndjson": rows[28:]}
        assert "rows: 1 deleted." in synced.ok("sync").stderr
        for mode in ("500", "reset", "redirect_other"):
            server.mode = mode  # type: ignore[assignment]
            assert synced.run("sync").exit_code == 1
    assert list(synced.records("rows")["rows"]) == ["b"]


def test_an_address_without_tls_or_with_a_password_is_refused(synced: Synced) -> None:
    for address in ("http://example.com/a.ics", "https://ada:secret@example.com/a.ics"):
        result = synced.run("source", "add", "x", address, "--kind", "url")
        assert result.exit_code == 1 and "secret" not in result.output
    assert not (synced.folder / "sources.toml").exists()


def test_only_the_owner_can_read_the_file_of_sources(synced: Synced) -> None:
    fill(synced)
    path = synced.folder / "sources.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    result = synced.run("sync")
    assert result.exit_code == 1 and f"chmod 600 {path}" in result.stderr


def test_a_store_from_elsewhere_brings_nothing_to_run(synced: Synced, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    synced.ok("source", "add", "evil", f"touch {mark}", "--kind", "command")
    synced.run("sync")
    assert mark.exists()
    fill(synced)
    synced.ok("backup", str(tmp_path / "copy.db"))
    mark.unlink()
    (tmp_path / "sources.toml").unlink()
    synced.ok("restore", str(tmp_path / "copy.db"), "--yes")
    assert "There are no sources" in synced.run("sync").stderr
    assert synced.run("sync", "evil").exit_code == 1
    assert "files (folder) into files: from another machine" in synced.ok("source", "list").stdout
    assert not mark.exists()
    assert b"touch" not in (tmp_path / "rung.db").read_bytes()


def test_a_store_without_sources_names_the_stores_that_have_some(synced: Synced) -> None:
    synced.ok("source", "add", "files", str(synced.folder / "docs"), "--kind", "folder")
    other = synced.folder / "other.db"
    place = file_of(synced.store)  # the URL of a database may contain a password
    for words in (("sync",), ("source", "list")):
        lines = synced.run(*words, "--store", str(other)).stderr.splitlines()
        assert f"There are no sources for {other}." in lines[0]
        assert lines[1:] == ([f"Sources exist for --store {place}"] if place else [])


def test_a_wrong_setting_is_reported_before_the_first_round(synced: Synced) -> None:
    synced.ok("source", "add", "files", str(synced.folder / "docs"), "--kind", "folder")
    wrong = {**synced.environ, "RUNG_WEBHOOK_URL": "http://127.0.0.1:1/in"}
    for words in (("sync",), ("sync", "--every")):
        result = Shell(wrong, synced.folder).run(*words)
        assert isinstance(result.exception, SystemExit)
        assert "Error: RUNG_WEBHOOK_URL requires RUNG_WEBHOOK_SECRET_FILE" in result.stderr


def test_removing_a_source_keeps_its_records_unless_asked(synced: Synced) -> None:
    fill(synced, 3)
    synced.ok("source", "remove", "files")
    assert len(synced.records("files")["rows"]) == 3
    assert "has no source 'files' for this" in synced.run("source", "remove", "files").stderr
    synced.ok("source", "add", "files", str(synced.folder / "docs"), "--kind", "folder")
    synced.ok("sync")
    assert "4 records removed." in synced.ok("source", "remove", "files", "--with-records").stderr
    assert synced.records("files") == {}


def test_a_paused_source_is_left_out(synced: Synced) -> None:
    fill(synced, 3)
    synced.ok("source", "add", "more", "task export", "--kind", "command")
    path = synced.folder / "sources.toml"
    before = path.read_text(encoding="utf-8")
    synced.ok("source", "pause", "files")
    table(synced.folder / "docs/rows.csv", range(4))
    assert "paused" in synced.ok("sync", "files").stderr
    synced.ok("source", "resume", "files")
    assert path.read_text(encoding="utf-8") == before
    assert "1 new" in synced.ok("sync", "files").stderr


@pytest.mark.slow
def test_a_round_that_is_killed_at_any_transaction_is_completed_by_the_next(synced: Synced) -> None:
    """Each kill comes one commit later; in between, what was brought is gone at the source."""
    docs = synced.folder / "docs"
    synced.ok("source", "add", "files", str(docs), "--kind", "folder")
    for commits in range(1, 30):
        for path in docs.iterdir():
            path.unlink()
        for number in range(3):
            table(docs / f"rows{number}.csv", range(commits, commits + 5), f"{commits} {number}")
        killed = synced.killed(commits)
        synced.run("sync", "files", "--accept-deletions")
        titles = sorted(
            data["title"] for stream in synced.records("files").values() for data in stream.values()
        )
        assert titles == sorted(
            f"{commits} {n} {row}" for n in range(3) for row in range(commits, commits + 5)
        )
        if not killed:
            break
    assert commits > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_folder_is_followed_through_renames_deletions_and_partial_writes(
    synced: Synced, seed: int
) -> None:
    """Some changes between two rounds; after each round, the store has the rows of the files."""
    random, docs, ids = Random(seed), synced.folder / "docs", count()
    synced.ok("source", "add", "files", str(docs), "--kind", "folder")
    for _ in range(10):
        for _ in range(random.randint(1, 4)):
            change_folder(random, docs, ids)
        synced.run("sync", "files", "--accept-deletions")
        stored = [
            row["title"] for rows in synced.records("files").values() for row in rows.values()
        ]
        assert sorted(stored) == sorted(titles(docs))


def change_folder(random: Random, docs: Path, ids: Iterator[int]) -> None:
    """Writes, renames, moves, cuts or deletes a file, or renames a folder."""
    files = sorted(docs.rglob("*.csv"))
    folders = sorted(path for path in docs.iterdir() if path.is_dir())
    name, folder = f"{next(ids)}.csv", docs / random.choice(["a", "b", ""])
    folder.mkdir(exist_ok=True)
    change = random.choice(
        ["write", "write", "rewrite", "rename", "move", "cut", "delete", "folder"]
    )
    file = random.choice(files) if files else folder / name
    if change == "write" or not files:
        rows = "".join(f"x{next(ids)},Row {next(ids)}\n" for _ in range(5))
        (folder / name).write_text(f"id,title\n{rows}", encoding="utf-8")
    elif change == "rewrite":
        file.write_text(file.read_text("utf-8").replace("Row", "Line"), encoding="utf-8")
    elif change == "rename":
        file.rename(file.with_name(name))
    elif change == "move":
        file.rename(folder / name)
    elif change == "cut":  # inside a title: a row that cannot be read would remove nothing
        content = file.read_text("utf-8")
        ends = [match.end() for match in re.finditer(r",\w", content)]
        file.write_text(content[: random.choice(ends) + random.randint(0, 2)], "utf-8")
    elif change == "folder" and folders:
        random.choice(folders).rename(docs / f"c{next(ids)}")
    else:
        file.unlink()


def titles(docs: Path) -> Iterator[str]:
    """The titles in all files, as another program reads them."""
    for path in docs.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            yield from (row["title"] for row in DictReader(file))


def test_a_file_that_cannot_be_read_loses_nothing(synced: Synced) -> None:
    fill(synced)
    path = synced.folder / "docs/more.json"
    path.write_text('[{"id": "a", "title": "One"}]', encoding="utf-8")
    synced.ok("sync")
    path.write_text('[{"id": "a", "title": ', encoding="utf-8")
    synced.ok("sync")
    assert list(synced.records("files")["more"]) == ["a"]


def test_listing_the_sources_of_a_store_that_does_not_exist_creates_nothing(synced: Synced) -> None:
    assert "There are no sources" in synced.ok("source", "list").stderr
    synced.ok("source", "add", "files", str(synced.folder / "docs"), "--kind", "folder")
    assert synced.ok("source", "list").stdout == "files (folder) into files: new\n"
    names = {path.name for path in synced.folder.iterdir()}
    assert names == {"config.toml", "docs", "sources.toml"}
