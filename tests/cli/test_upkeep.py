"""`rung remove`, `replace`, `backup`, `restore` and `check`, as an owner uses them."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from evidence.errors import Unavailable
from service.access import packages
from service.access.registry import Registry
from service.keys import of_tokens
from service.records.sqlite import backup
from service.records.sqlite.staging import staging
from service.records.sqlite.writer import open_writer
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.places import faults
from tests.helpers.server import ROOT, serving
from tests.helpers.shell import Shell
from tests.helpers.two_owners import local_member
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import SECRET, House, row


@pytest.fixture
def house(tmp_path: Path) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path)


@pytest.fixture
def shell(house: House) -> Shell:
    return Shell({"RUNG_STORE": str(house.path)})


def keys(api: Api, stream: str = "messages") -> list[str]:
    body = api.rest(f"/v1/streams/{stream}/records", connection_id="mail-home", limit=100).body
    return sorted(one["id"] for one in body["data"])


def threads(folder: Path, *rows: object) -> str:
    """A file with rows of the stream of threads."""
    path = folder / "new.ndjson"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return str(path)


def test_remove_takes_a_stream_and_what_is_not_granted_is_gone(house: House, shell: Shell) -> None:
    asked = shell.run("remove", "mail-home/threads")
    assert asked.exit_code == 1 and "--yes" in asked.stderr
    assert "mail-home/threads: 2 records" in asked.stderr
    shell.ok("remove", "mail-home/threads", "--yes")
    assert "mail-home/threads" not in shell.ok("stats").stdout
    api = house.api({"connection_id": "mail-home"})
    assert keys(api)[0] == "long"

    said = shell.ok("remove", "mail-home", "--yes").stderr
    assert "messages: 7 records (the empty stream is kept for its grants)" in said
    assert keys(api) == []
    assert "sound" in shell.ok("check").stderr


@pytest.mark.parametrize("name", ("mail-hom", "mail-home/thread", "threads"))
def test_a_name_that_is_nearly_right_is_not_removed_but_named(shell: Shell, name: str) -> None:
    failed = shell.run("remove", name, "--yes")
    assert failed.exit_code == 1
    assert f"Did you mean 'mail-home{'/threads' if 'thread' in name else ''}'?" in failed.stderr


def test_replace_keeps_the_manifest_and_says_what_changed(house: House, shell: Shell) -> None:
    api = house.api({"connection_id": "mail-home"})
    file = threads(house.path.parent, {"id": "t1", "topic": "Thread 1 at home"}, {"id": "t5"})
    said = shell.ok("replace", "mail-home/threads", file, "--yes").stderr
    assert "replaced: 1 new, 0 changed, 1 unchanged, 1 removed." in said
    assert "mail-home: 2 new" not in said
    assert "Inferred" not in said and keys(api, "threads") == ["t1", "t5"]
    expand = {"expand": "messages", "connection_id": "mail-home"}
    assert api.rest("/v1/streams/threads/records/t1", **expand).status == 200

    failed = shell.run("replace", "mail-home/threads", file, "--key", "id", "--yes").stderr
    assert "relations of 'messages'" in failed
    said = shell.ok("replace", "mail-home/attachments", file, "--key", "id", "--yes").stderr
    assert "New stream 'attachments'" in said and "2 new, 0 changed, 0 unchanged, 2 removed" in said
    assert "sound" in shell.ok("check").stderr


@pytest.mark.parametrize(
    "rows, reason",
    [
        ([{"id": "t1"}, {"topic": "no id"}], "Rows were refused, so nothing was replaced"),
        ([], "There are no rows"),
        ([{"stream": "messages", "key": "m1", "data": {"id": "m1"}}], "rows of 'messages'"),
    ],
)
def test_replace_changes_nothing_if_the_rows_are_not_good(
    house: House, shell: Shell, rows: list[object], reason: str
) -> None:
    api = house.api({"connection_id": "mail-home"})
    before = keys(api, "threads"), keys(api)
    file = threads(house.path.parent, *rows)
    failed = shell.run("replace", "mail-home/threads", file, "--yes")
    assert failed.exit_code == 1 and reason in failed.stderr, failed.stderr
    assert (keys(api, "threads"), keys(api)) == before
    assert "sound" in shell.ok("check").stderr
    assert "one stream" in shell.run("replace", "bank", file, "--yes").stderr


def test_a_backup_is_restored_while_the_store_is_served(house: House, shell: Shell) -> None:
    kept, token = house.grant(label="kept")
    ended, _ = house.grant(label="ended")
    copy = house.path.parent / "copies.db"
    shell.ok("backup", str(copy))
    assert copy.stat().st_mode & 0o077 == 0 and not copy.with_name("copies.db-wal").exists()
    with serving("wsgi:app", house.environment, workers=2) as url:
        api = Api(url, token)
        before = keys(api)
        feed = api.rest(
            "/v1/streams/messages/records", connection_id="bank", changes_since="beginning"
        ).body["next_changes_since"]
        house.revoke(ended)
        shell.ok("remove", "mail-home", "--yes")
        house.add("bank", row("messages", "m2", subject="New"))
        assert keys(api) == []
        assert "--yes" in shell.run("restore", str(copy)).stderr
        shell.ok("restore", str(copy), "--yes")
        assert all(keys(api) == before for _ in range(8))
        house.add("bank", row("messages", "m3", subject="Later"))
        stale = api.rest("/v1/streams/messages/records", connection_id="bank", changes_since=feed)
        assert worlds.keys_of(stale.body["data"]) == ["m3"], "the backup has the change"
    with open_writer(house.path) as writer:
        states = {one.grant_id: one.state(None) for one in Registry(writer).grants()}
    assert states == {kept: "active", ended: "revoked"}
    assert "sound" in shell.ok("check").stderr
    assert "--yes" in shell.run("backup", str(copy)).stderr
    shell.ok("backup", str(copy), "--yes")


def test_a_writer_of_the_old_store_does_not_write_into_the_new_one(
    house: House, shell: Shell
) -> None:
    copy = house.path.parent / "copy.db"
    shell.ok("backup", str(copy))
    with open_writer(house.path) as writer:
        shell.ok("restore", str(copy), "--yes")
        with pytest.raises(Exception, match="was replaced"), writer.transaction():
            writer.set_meta("secret", "x")
    assert "sound" in shell.ok("check").stderr


def test_a_writer_of_the_old_store_does_not_empty_the_log_of_the_new_one(house: House) -> None:
    old = open_writer(house.path)
    backup.repair(house.path)
    with open_writer(house.path) as new:
        with new.transaction():
            new.set_meta("note", "kept")
        old.close()
    with open_writer(house.path) as new:
        assert new.meta("note") == "kept"
    assert faults(house.path) == []


#: In another process: within one, SQLite drops the index of the log of a file that is gone.
RESTORE = """
import sys
from pathlib import Path
from service.records.sqlite import backup
from tests.helpers.places import faults
backup.restore(*map(Path, sys.argv[1:]))
assert faults(Path(sys.argv[2])) == []
"""


def test_a_store_is_checked_at_its_own_size_though_its_log_knew_another(
    house: House, shell: Shell
) -> None:
    small, large = (str(house.path.with_name(name)) for name in ("small.db", "large.db"))
    shell.ok("backup", small)
    house.add("bank", *(row("messages", f"x{n}", subject="elm " * 400) for n in range(200)))
    shell.ok("backup", large)
    shell.ok("restore", small, "--yes")
    with closing(sqlite3.connect(house.path)) as reader:
        assert reader.execute("SELECT count(*) FROM record").fetchone()[0] < 200
        house.grant(label="written to its log")
        command = [sys.executable, "-c", RESTORE, large, str(house.path)]
        subprocess.run(command, cwd=ROOT, check=True)


def test_grants_and_packages_made_while_a_copy_is_changed_are_in_it(house: House) -> None:
    revoked_id, revoked = house.grant(label="old")
    with backup.replacement(house.path, house.path):
        grant_id, made = house.grant(label="new")
        house.revoke(revoked_id)
        with open_writer(house.path) as writer:
            members = [local_member(writer, writer.path, grant_id)]
            sealer = of_tokens(SECRET.encode())
            _, package = packages.create(Registry(writer), members, sealer)
    for token in (made, package):
        assert Api(house.app, token).rest("/v1/streams").status == 200
    assert Api(house.app, revoked).rest("/v1/streams").error["code"] == "grant_revoked"


def test_a_copy_does_not_take_the_place_of_a_store_that_was_written_to(house: House) -> None:
    with pytest.raises(Unavailable, match="nothing was changed"):
        with backup.replacement(house.path, house.path):
            house.add("mail-home", row("threads", "t9", topic="Beech"))
    assert "t9" in keys(house.api({"connection_id": "mail-home"}), "threads")


#: Holds SQLite's lock of checkpoints, until others were kept from their turn to write many times.
CHECKPOINT = """
import fcntl, os, sys
index, folder = os.open(sys.argv[1] + "-shm", os.O_RDWR), os.open(sys.argv[2], os.O_RDONLY)
fcntl.lockf(index, fcntl.LOCK_EX, 1, 121)
print("holds", flush=True)
kept = 0
while kept < 5_000:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(folder, fcntl.LOCK_UN)
    except BlockingIOError:
        kept += 1
"""


def test_a_copy_waits_for_a_checkpoint_of_another_process(house: House) -> None:
    words = (sys.executable, "-c", CHECKPOINT, house.path, house.path.parent)
    with ExitStack() as stack, closing(sqlite3.connect(house.path)) as reader:
        reader.execute("SELECT * FROM meta").fetchone()  # whoever checkpoints has opened the log
        with backup.replacement(house.path, house.path):
            other = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE))
            stack.callback(other.kill)
            assert other.stdout is not None and other.stdout.readline() == b"holds\n"
            _, token = house.grant(label="new")
        assert other.wait(WAIT_SECONDS) == 0
    assert Api(house.app, token).rest("/v1/streams").status == 200


def test_restore_and_backup_refuse_what_is_no_store(house: House, shell: Shell) -> None:
    other = house.path.parent / "letter.txt"
    other.write_text("Dear Ada, " * 999)
    before = house.path.read_bytes()
    for words in (("restore", other), ("backup", other), ("restore", house.path)):
        failed = shell.run(words[0], str(words[1]), "--yes")
        assert failed.exit_code == 1 and "Error: " in failed.stderr
    assert other.read_text().startswith("Dear Ada") and house.path.read_bytes() == before
    copy = house.path.parent / "copy.db"
    shell.ok("backup", str(copy))
    with open(copy, "r+b") as file:
        file.seek(8 * 4096)
        file.write(bytes(40 * 4096))
    assert shell.run("restore", str(copy), "--yes").exit_code == 1
    assert house.path.read_bytes() == before
    assert not list(house.path.parent.glob(".*"))

    new = house.path.parent / "new" / "rung.db"
    shell.ok("backup", str(copy), "--yes")
    shell.ok("restore", str(copy), "--store", str(new))
    assert "sound" in shell.ok("check", "--store", str(new)).stderr


def test_a_damaged_store_is_replaced_by_a_backup(house: House, shell: Shell) -> None:
    copy = house.path.parent / "copy.db"
    shell.ok("backup", str(copy))
    with open(house.path, "r+b") as file:
        file.seek(4 * 4096)
        file.write(b"\xff" * 4096 * 40)
    assert shell.run("check").exit_code == 1
    shell.ok("restore", str(copy), "--yes")
    assert "sound" in shell.ok("check").stderr


DAMAGE = {
    "texts that search does not find": "DELETE FROM fts_content WHERE id IN"
    " (SELECT id FROM fts_content LIMIT 1)",
    "fields with wrong word counts": "UPDATE word_count SET n = n + 1",
    "fields with a wrong length": "UPDATE scope SET words = words + 1",
    "indexed texts that no record contains": "INSERT INTO value (id, words) SELECT"
    " (ordinal << 32) + (SELECT seq FROM record WHERE record_key = 't0' LIMIT 1), 1 FROM scope"
    " WHERE searchable AND field = 'body'",
    "streams with a wrong record count": "UPDATE stream SET records = records + 1",
    "records with wrong values for filters": "DELETE FROM cell WHERE value = 100",
    "the file or an index": "DELETE FROM fts_data WHERE id > 100",
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_check_finds_what_is_damaged_and_repairs_it(house: House, shell: Shell, fault: str) -> None:
    api = house.api({"connection_id": "mail-home"})
    before = api.mcp("search", query="lantern home")["structuredContent"]["results"]
    house.change(DAMAGE[fault])
    found = shell.run("check")
    assert found.exit_code == 1 and fault in found.stderr, found.stderr
    assert "--repair" in found.stderr
    assert "is sound" in shell.ok("check", "--repair", "--yes").stderr
    assert api.mcp("search", query="lantern home")["structuredContent"]["results"] == before


#: `rung replace`, killed before it publishes what it has staged.
KILLED_REPLACE = """
import os, signal
from service.__main__ import rung
from service.records.sqlite.staging import Stage
Stage.publish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
rung()
"""


def test_check_calls_a_store_sound_during_and_after_a_killed_replace(
    house: House, shell: Shell
) -> None:
    with open_writer(house.path) as writer:
        with staging(writer, [("mail-home", "threads")]) as stage:
            stage.keep_manifests()
            said = shell.ok("check").stderr
            assert "is sound" in said and "Hidden streams: 1" in said
    assert "Hidden" not in shell.ok("check").stderr
    file = threads(house.path.parent, {"id": "t5"})
    words = ("replace", "mail-home/threads", file, "--yes", "--store", str(house.path))
    done = subprocess.run([sys.executable, "-c", KILLED_REPLACE, *words], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert "Hidden streams: 1" in shell.ok("check").stderr
    assert "Hidden" not in shell.ok("check", "--repair", "--yes").stderr.split("repaired copy")[1]
    assert "t5" not in keys(house.api({"connection_id": "mail-home"}), "threads")


def test_check_finds_bytes_of_blobs_that_changed(house: House, shell: Shell) -> None:
    house.change("UPDATE blob_part SET data = x'00' WHERE blob = 1")
    said = shell.run("check").stderr
    assert "the bytes of blob " in said and "differ from the imported bytes" in said
    assert "rung restore" in shell.run("check", "--repair", "--yes").stderr


def test_a_backup_is_one_moment_of_a_store_that_is_written_to(house: House, shell: Shell) -> None:
    copy = house.path.parent / "copy.db"
    with open_writer(house.path) as writer, writer.transaction():
        writer.set_meta("half", "done")
        shell.ok("backup", str(copy))
    with sqlite3.connect(copy) as db:
        assert db.execute("SELECT * FROM meta WHERE key = 'half'").fetchall() == []
