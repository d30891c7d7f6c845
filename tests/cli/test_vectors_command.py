"""`rung vectors build`, and the builder that a server of a file starts and ends."""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from evidence.manifest import parse
from service.records.intake import Row
from service.records.opening import open_writer
from service.records.writing.streams import declare, open_stream
from tests.helpers import trigrams
from tests.helpers.filling import put
from tests.helpers.notes import NOTES
from tests.helpers.server import serving
from tests.helpers.shell import Shell
from tests.helpers.waiting import WAIT_SECONDS

SEARCH = {"lexical_fields": ["title", "text"], "semantic_fields": ["title", "text"]}
COUNT = "SELECT count(*) FROM vector"


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The variables of a model, and of a store with three notes."""
    pytest.importorskip("numpy")
    with trigrams.serving() as endpoint:
        yield {
            **endpoint,
            "RUNG_STORE": str(filled(tmp_path / "rung.db")),
            "RUNG_CONFIG": "/dev/null",
        }


def filled(path: Path) -> Path:
    manifest = {**NOTES, "query": {**NOTES["query"], "search": SEARCH}}
    with open_writer(path) as writer:
        declare(writer, "c", parse({"streams": [manifest]}))
    add(path, "a", "b", "c")
    return path


def add(path: Path, *keys: str) -> None:
    with open_writer(path) as writer:
        rows = [
            Row({"id": key, "title": f"About {key}", "text": f"Text of {key}"}, key) for key in keys
        ]
        put(writer, open_stream(writer, "c", "notes"), rows)


def vectors(environ: Mapping[str, str]) -> int:
    db = sqlite3.connect(environ["RUNG_STORE"])
    try:
        return int(db.execute(COUNT).fetchone()[0])
    finally:
        db.close()


def wait_for(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)


def builders(environ: Mapping[str, str]) -> list[int]:
    """The processes that build vectors in this store."""
    words = f"vectors build --watch --store {environ['RUNG_STORE']}"
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True, check=True
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if line.endswith(words)]


def test_the_command_builds_what_is_missing_and_stats_counts_it(
    environ: Mapping[str, str],
) -> None:
    shell = Shell(environ)
    assert "vectors of" not in shell.ok("stats").stdout
    made = shell.bash("rung vectors build")
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    assert vectors(environ) == 6
    counted = shell.ok("stats").stdout.splitlines()[-1]
    assert counted.startswith("vectors of trigrams:") and counted.endswith("3 of 3 records")
    assert shell.ok("check").exit_code == 0


def test_a_terminal_shows_how_the_text_of_a_related_record_begins(
    environ: Mapping[str, str],
) -> None:
    shell = Shell(environ)
    shell.ok("vectors", "build")
    token = shell.ok("grant", "create", "--connection", "c", "--label", "terminal").stdout.strip()
    said = Shell({**environ, "RUNG_TOKEN": token}).terminal("search", "Textuality")
    assert 'begins "Text of a" rung read c/notes:a text' in " ".join(said.split()), said


def test_without_a_model_the_command_says_what_to_do(environ: Mapping[str, str]) -> None:
    off = Shell({**environ, "RUNG_SEMANTIC": "off"}).run("vectors", "build")
    assert off.exit_code == 1 and "rung model install" in off.stderr


def test_a_server_builds_in_the_background_as_long_as_it_runs(environ: Mapping[str, str]) -> None:
    store = Path(environ["RUNG_STORE"])
    with serving("service.app:create_app()", environ, config="python:service.serving"):
        wait_for(lambda: vectors(environ) == 6)
        add(store, "d")
        wait_for(lambda: vectors(environ) == 8)
        assert len(builders(environ)) == 1
    wait_for(lambda: not builders(environ))


def test_the_builder_ends_with_a_server_that_is_killed(environ: Mapping[str, str]) -> None:
    started: list[int] = []
    serve = serving(
        *("service.app:create_app()", environ), config="python:service.serving", started=started
    )
    with serve:
        wait_for(lambda: vectors(environ) == 6)
        os.kill(started[0], signal.SIGKILL)
        wait_for(lambda: not builders(environ))


def test_a_read_only_store_has_no_builder(environ: Mapping[str, str], tmp_path: Path) -> None:
    os.chmod(environ["RUNG_STORE"], 0o400)
    if os.access(environ["RUNG_STORE"], os.W_OK):
        pytest.skip("root can write to everything")
    with (tmp_path / "log").open("w+b") as log:
        with serving("service.app:create_app()", environ, config="python:service.serving", log=log):
            assert builders(environ) == []
        log.seek(0)
        assert b"no vectors are built" in log.read()
