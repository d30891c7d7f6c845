"""Hundreds of files made to stop, swell or mislead an import, imported by the command.

A few of a kind lie in a folder with a harmless file. The import ends, in bounded time and memory,
without a traceback. What is refused is explained, and the harmless file is in the store.
"""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from evidence.limits import BUDGETS
from service.importing.process.sandbox import MEBIBYTE
from tests.formats.hostile import KINDS, Hostile
from tests.formats.owner import COUNTS
from tests.helpers.scale import FULL
from tests.helpers.stdio import environment

GOOD = '{"id": "beacon", "t": "beacon of the harbour"}\n'
#: Runs a command and prints its exit code, its CPU seconds, and the memory of its largest process.
MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""
#: Of each file, one record may take as long as it may, and the rest of the import as long.
CPU_SECONDS = 2 * BUDGETS.import_record_seconds
#: The number of hostile files in a folder.
TOGETHER = 5
#: One record that takes as much memory as it may, on top of what the idle process has mapped.
MEMORY = BUDGETS.import_record_bytes + 256 * MEBIBYTE
#: An import that takes this long does not end.
HANGS = 600
SOME_REFUSED = 3
NOTHING = re.compile(r"Left out: |has no rows")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an import ended."""

    code: int
    seconds: float
    memory: int
    report: str


def imported(home: Path, files: Sequence[Hostile]) -> Outcome:
    """Imports hostile files with a harmless one."""
    (folder := home / "export").mkdir(parents=True)
    for file in files:
        (place := folder / file.name).mkdir()
        file.make(place)
    (folder / "zz-good.ndjson").write_text(GOOD)
    command = ("-m", "service", "import", str(folder), "--connection", "c")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, sys.executable, *command],
        capture_output=True,
        env=environment(RUNG_STORE=str(home / "rung.db")),
        timeout=HANGS,
        check=True,
    )
    code, seconds, memory = json.loads(done.stdout)
    return Outcome(code, seconds, memory, done.stderr.decode())


def check(home: Path, outcome: Outcome) -> None:
    """What must hold for each import."""
    assert "Traceback" not in outcome.report and outcome.code in (0, SOME_REFUSED), outcome
    assert outcome.memory < MEMORY, outcome
    with closing(sqlite3.connect(home / "rung.db")) as db:
        assert db.execute("SELECT 1 FROM record WHERE record_key = 'beacon'").fetchone(), outcome
    counted = COUNTS.search(outcome.report)
    assert counted, outcome
    new, *_, refused = map(int, counted.groups())
    assert bool(refused) == (outcome.code == SOME_REFUSED), outcome
    assert new > 1 or refused or NOTHING.search(outcome.report), outcome


def test_there_are_two_hundred_files() -> None:
    names = [(kind, file.name) for kind, files in KINDS.items() for file in files()]
    assert len(names) >= 200 and len(set(names)) == len(names)


@pytest.mark.timeout(4 * HANGS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_file_costs_at_most_itself(
    tmp_path: Path, record_property: Callable[[str, object], None], kind: str
) -> None:
    files = list(KINDS[kind]())
    if not FULL:
        files = files[:: -(-len(files) // TOGETHER)]
    for start in range(0, len(files), TOGETHER):
        home, some = tmp_path / str(start), files[start : start + TOGETHER]
        outcome = imported(home, some)
        check(home, outcome)
        assert outcome.seconds < CPU_SECONDS * len(some), ([file.name for file in some], outcome)
    record_property("files", len(files))
