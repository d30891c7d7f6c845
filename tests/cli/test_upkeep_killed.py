"""Commands that are killed in the middle leave the old state or the new one."""

import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from service.records.sqlite.writer import open_writer
from tests.helpers import worlds
from tests.helpers.places import faults
from tests.helpers.server import ROOT
from tests.helpers.stdio import environment
from tests.helpers.worlds import House

pytestmark = pytest.mark.slow

#: `rung`, killed at the nth step inside the modules that change stores; it says how many it made.
RUNG = """
import os, signal, sys
from service.__main__ import rung
from service.records.writing import ingest
ingest.BATCH_SECONDS = 1 << 30  # or the number of steps depends on how busy the machine is
FILES = ("staging.py", "erasing.py", "backup.py", "transactions.py", "ingest.py")
steps, last = 0, int(sys.argv[1])
def step(frame, event, _):
    global steps
    if frame.f_code.co_filename.endswith(FILES):
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(step)
try:
    rung(sys.argv[2:], prog_name="rung")
finally:
    sys.setprofile(None)
    print("steps", steps)
"""
KILLS = 14


def run(last: int, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", RUNG, str(last), *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
    )


def state(path: Path) -> Any:
    """What readers of the store are shown: records, hits, and how many grants there are."""
    house = House(path)
    with open_writer(path) as writer:
        counts = [
            writer.db.execute(f"SELECT count(*) FROM {table}").fetchone()
            for table in ('"grant"', "package")
        ]
        shown = writer.db.execute(
            "SELECT s.name, record_key, deleted, data FROM record r"
            " JOIN stream s ON s.id = r.stream LEFT JOIN document USING (seq)"
            " WHERE s.name >= char(1) ORDER BY 1, 2"
        ).fetchall()
    found = house.api().mcp("search", query="lantern", limit=50)["structuredContent"]["results"]
    house.change('DELETE FROM "grant" WHERE id = (SELECT max(id) FROM "grant")')
    return counts, shown, sorted(hit["id"] for hit in found)


def check_kills(
    folder: Path, words: tuple[str, ...], seen: Callable[[Path], Any], *, repeat: bool = True
) -> None:
    """Kills a command at many steps, each time over a copy of the store in `folder`/rung.db."""
    words = (*words, "--store", str(folder / "rung.db"))
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)
    old = seen(folder / "rung.db")
    done = run(0, *words)
    assert done.returncode == 0, done.stderr
    steps, new = int(done.stdout.split()[-1]), seen(folder / "rung.db")
    assert old != new
    places = {1, *(random.Random(1).randrange(1, steps) for _ in range(KILLS)), steps - 3}
    states = []
    for place in sorted(places):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        assert run(place, *words).returncode == -signal.SIGKILL
        states.append(seen(folder / "rung.db") == new)
        assert states[-1] or seen(folder / "rung.db") == old
        assert faults(folder / "rung.db") == [], place
        if repeat and not states[-1]:
            done = run(0, *words)
            assert done.returncode == 0, done.stderr
            assert seen(folder / "rung.db") == new and faults(folder / "rung.db") == []
    assert states == sorted(states), "the new state stays"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    house = worlds.build(worlds.two_mailboxes(), made)
    house.grant()
    (made / "new.ndjson").write_text(
        "".join(
            f'{{"id": "m{n}", "subject": "Lantern {n} anew", "body": "quince {n}"}}\n'
            for n in range(3, 1_200)
        )
    )
    return made


def test_a_replace_that_is_killed(folder: Path) -> None:
    check_kills(
        folder, ("replace", "mail-home/messages", str(folder / "new.ndjson"), "--yes"), state
    )


def test_a_remove_that_is_killed(folder: Path) -> None:
    check_kills(folder, ("remove", "mail-home", "--yes"), state, repeat=False)


def test_a_restore_that_is_killed(folder: Path) -> None:
    path = folder / "rung.db"
    done = run(0, "backup", str(folder / "backup.db"), "--store", str(path))
    assert done.returncode == 0, done.stderr
    run(0, "remove", "bank", "--yes", "--store", str(path))
    check_kills(folder, ("restore", str(folder / "backup.db"), "--yes"), state)


def test_a_backup_that_is_killed(folder: Path) -> None:
    path, copy = folder / "rung.db", folder / "backup.db"
    run(0, "backup", str(copy), "--store", str(path))
    run(0, "remove", "bank", "--yes", "--store", str(path))
    check_kills(folder, ("backup", str(copy), "--yes"), lambda _: state(copy))


def test_a_strict_import_that_is_killed(folder: Path) -> None:
    large = folder / "large.ndjson"
    rows = (
        {"id": f"m{n}", "subject": f"Lantern {n}", "body": "quince " * 99} for n in range(1_800)
    )
    large.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    into = ("--connection", "mail-home", "--stream", "messages", "--strict")
    check_kills(folder, ("import", str(large), *into), state)


def test_an_import_that_is_killed_while_it_indexes_a_stream_anew(folder: Path) -> None:
    with open_writer(folder / "rung.db") as writer:
        # Manifests are cached in this process, so their documents must not be changed.
        found = [deepcopy(one.document) for one in writer.manifests("mail-home")]
    (messages,) = (one for one in found if one["name"] == "messages")
    messages["query"]["search"]["lexical_fields"] = ["body"]
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"streams": found}))
    into = ("--connection", "mail-home", "--stream", "messages", "--manifest", str(manifest))
    check_kills(folder, ("import", str(folder / "new.ndjson"), *into), state)


def test_a_repair_that_is_killed(folder: Path) -> None:
    path = folder / "rung.db"
    House(path).change("UPDATE stream SET records = records + 1")
    words = ("check", "--repair", "--yes", "--store", str(path))
    shutil.copytree(folder, folder.with_name("kept"))
    done = run(0, *words)
    assert done.returncode == 0, done.stderr
    for place in range(1, int(done.stdout.split()[-1]), 4_001):
        shutil.rmtree(folder)
        shutil.copytree(folder.with_name("kept"), folder)
        assert run(place, *words).returncode == -signal.SIGKILL
        assert len(faults(path)) in (0, 1) and state(path)
