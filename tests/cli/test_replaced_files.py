"""A database file that replaces another one: it alone is read then, wherever a kill comes."""

import hashlib
import io
import json
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from service import fetching
from service.demo.papers import write
from tests.helpers import worlds
from tests.helpers.asset_server import asset_server
from tests.helpers.places import faults
from tests.helpers.server import ROOT
from tests.helpers.shell import Shell
from tests.helpers.snapshots import place, retitled
from tests.helpers.stdio import environment
from tests.helpers.two_owners import letters
from tests.helpers.worlds import House

#: Writes to a database as if killed: its log has the rows, and the file has not.
WRITE = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA wal_autocheckpoint = 0")
for statement in sys.argv[2:]:
    db.execute(statement)
    db.commit()
os._exit(0)
"""
FOREIGN = (
    "CREATE TABLE filler (text)",
    "INSERT INTO filler SELECT hex(randomblob(2000)) FROM record CROSS JOIN record",
    "UPDATE record SET record_key = 'foreign ' || record_key",
)
#: Forks a process for each line of the modules below that a command passes, kills it there, and
#: prints the state of a file as a reader finds it; the last process is not killed.
KILLS = """
import hashlib, json, os, shutil, signal, sqlite3, sys
from contextlib import closing
from itertools import count
from pathlib import Path
from service import fetching
from service.__main__ import rung
from service.demo.papers import write
FILES = ("database_files.py", "durable.py")
folder, target, words = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
kept = folder.with_name("kept")

def act():
    if words[0] == "fetch":
        fetching.fetch(fetching.STORE, words[1], words[2], folder)
    elif words[0] == "demo":
        write(folder)
    else:
        rung(words, standalone_mode=False)

def state():
    files = [path for path in folder.glob(target) if path.exists()]
    if not files:
        return "absent"
    with closing(sqlite3.connect(f"file:{files[0]}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        # The epoch of the last commit is random.
        lines = (line for line in db.iterdump() if "VALUES('epoch'," not in line)
        return hashlib.sha256("\\n".join(lines).encode()).hexdigest()

def forked(task):
    pid = os.fork()
    if not pid:
        task()
        sys.stdout.flush()
        os._exit(0)
    return os.waitpid(pid, 0)[1]

def killed(last):
    steps = 0
    def line(frame, event, _):
        nonlocal steps
        if event == "line":
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)
        return line
    sys.settrace(lambda frame, *_: line if frame.f_code.co_filename.endswith(FILES) else None)
    act()
    sys.settrace(None)

act()  # loads what a command imports
for last in count(1):
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    status = forked(lambda: killed(last))
    forked(lambda: print(json.dumps(["killed" if status else "done", state()])))
    if not status:
        break
    if last % 20 == 0:
        forked(act)
        forked(lambda: print(json.dumps(["repeated", state()])))
"""


def write_to_log(path: Path, *statements: str) -> None:
    """Leaves a log with rows beside a database."""
    subprocess.run([sys.executable, "-c", WRITE, str(path), *statements], check=True)
    assert path.with_name(f"{path.name}-wal").stat().st_size


def rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [key for (key,) in db.execute("SELECT record_key FROM record ORDER BY 1")]


@pytest.fixture
def house(tmp_path: Path) -> House:
    folder = tmp_path / "store"
    folder.mkdir()
    return worlds.build(letters("home", 3), folder)


def test_a_backup_over_one_with_a_log_is_the_store_and_nothing_else(
    house: House, tmp_path: Path
) -> None:
    shell = Shell({"RUNG_STORE": str(house.path)})
    copy = tmp_path / "copy.db"
    shell.ok("backup", str(copy))
    write_to_log(copy, *FOREIGN)
    shell.ok("backup", str(copy), "--yes")
    assert [path.name for path in tmp_path.glob("copy.db*")] == ["copy.db"]
    assert rows(copy) == rows(house.path) and faults(copy) == []


@pytest.mark.parametrize("words", [("restore",), ("store", "copy")])
def test_a_store_is_not_read_with_the_log_of_one_that_was_deleted(
    house: House, tmp_path: Path, words: tuple[str, ...]
) -> None:
    shell = Shell({"RUNG_STORE": str(house.path)})
    copy, new = tmp_path / "copy.db", tmp_path / "new.db"
    shell.ok("backup", str(copy))
    shutil.copyfile(copy, new)
    write_to_log(new, *FOREIGN)
    new.unlink()
    more = (str(new),) if words[0] == "store" else ("--yes", "--store", str(new))
    shell.ok(*words, str(copy), *more)
    assert rows(new) == rows(house.path) and faults(new) == []


def test_a_fetched_store_has_the_rows_of_the_log_beside_it(house: House, tmp_path: Path) -> None:
    packed = archive(house.path)
    with asset_server({"/store.tar": packed}) as server:
        sha256 = hashlib.sha256(packed).hexdigest()
        path = fetching.fetch(fetching.STORE, f"{server.url}/store.tar", sha256, tmp_path / "here")
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'late'").fetchone() == ("row",)


def archive(store: Path) -> bytes:
    """A tar archive of a store and of a log with a row."""
    write_to_log(store, "INSERT INTO meta VALUES ('late', 'row')")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in (store, store.with_name(f"{store.name}-wal")):
            tar.add(path, path.name)
    return packed.getvalue()


def check_kills(
    folder: Path, target: str, words: list[str], record: Callable[[str, object], None]
) -> None:
    """Kills a command at every line that replaces `target` in a folder, and where it does so."""
    shutil.copytree(folder, folder.with_name("kept"))
    command = [sys.executable, "-c", KILLS, str(folder), target, json.dumps(words)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    killed = [state for kind, state in lines if kind == "killed"]
    (new,) = (state for kind, state in lines if kind == "done")
    old = killed[0]
    assert len(killed) > 9 and old != new
    assert killed == [old] * killed.count(old) + [new] * killed.count(new)
    assert {state for kind, state in lines if kind == "repeated"} == {new}
    assert not [*folder.glob(".*.copy*"), *folder.glob(".*.new*")]
    record("kills", len(killed))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["backup", "restore", "restore anew", "repair"])
def test_a_store_is_the_old_or_the_new_one_wherever_it_is_killed(
    house: House, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    shell, folder = Shell({"RUNG_STORE": str(house.path)}), house.path.parent
    copy = folder / "copy.db"
    shell.ok("backup", str(copy))
    target, words = {
        "backup": (copy, ["backup", str(copy), "--yes"]),
        "restore": (house.path, ["restore", str(copy), "--yes"]),
        "restore anew": (folder / "new.db", ["restore", str(copy), "--yes"]),
        "repair": (house.path, ["check", "--repair", "--yes"]),
    }[name]
    if name == "restore anew":
        shutil.copyfile(copy, target)
    if name == "repair":
        write_to_log(target, "UPDATE stream SET records = records + 1")
    else:
        write_to_log(target, *FOREIGN)
    if name == "restore anew":
        target.unlink()
    store = house.path if name == "backup" else target
    check_kills(folder, target.name, [*words, "--store", str(store)], record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["swap", "demo", "fetch"])
def test_a_file_of_any_kind_is_the_old_or_the_new_one_wherever_it_is_killed(
    house: House, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    if name == "fetch":
        packed = archive(house.path)
        with asset_server({"/store.tar": packed}) as server:
            words = ["fetch", f"{server.url}/store.tar", hashlib.sha256(packed).hexdigest()]
            check_kills(folder, "*/rung.db", words, record_property)
        return
    if name == "swap":
        served = place(folder / "snapshot.db")
        new = retitled(place(tmp_path / "new.db"), "A newer title")
        words = ["papers", "swap", str(new), "--db", str(served)]
    else:
        served, words = write(folder), ["demo"]
    write_to_log(served, "UPDATE paper SET title = 'An older title'")
    check_kills(folder, served.name, words, record_property)
