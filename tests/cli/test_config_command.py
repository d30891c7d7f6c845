"""`rung config`: what is in force and why, what is wrong, and an example that is the defaults."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service import settings
from service.__main__ import rung
from service.extras import install_command
from service.settings import SETTINGS, load
from service.settings.explanation import BESIDE
from tests.helpers import worlds
from tests.helpers.archive import Archive

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "rung.env.example"
LINE = re.compile(r"^#([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)
SECRET = "a-very-secret-word"
#: Stands in the configuration of a client, where another program reads it.
NOT_OURS = {"RUNG_AUTHORIZATION"}
CLEAN: dict[str, str | None] = {
    **{setting.variable: None for setting in SETTINGS},
    **{each.name: None for each in BESIDE if each.name != "TMPDIR"},
}


def run(*words: str, **environ: str) -> Result:
    return CliRunner().invoke(rung, ["config", *words], env={**CLEAN, **environ})


def test_the_example_file_uncommented_is_the_defaults() -> None:
    found = dict(LINE.findall(EXAMPLE.read_text(encoding="utf-8")))
    assert list(found) == [setting.variable for setting in SETTINGS]
    assert load(found) == load({})


def test_a_shell_reads_the_example_file_as_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "rung.env"
    file.write_text(LINE.sub(r"\1=\2", EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")
    shell = subprocess.run(
        ["sh", "-c", f"set -a; . {file}; env"], capture_output=True, text=True, check=True, env={}
    )
    pairs = dict(line.split("=", 1) for line in shell.stdout.splitlines())
    assert {setting.variable for setting in SETTINGS} <= pairs.keys()
    assert load(pairs) == load({})


def test_the_example_file_is_what_the_command_prints() -> None:
    assert run("--example").output == EXAMPLE.read_text(encoding="utf-8")


def test_what_is_printed_is_in_force_and_can_be_read_again() -> None:
    environ = {"RUNG_STORE": "/data/rung.db", "RUNG_ALLOWED_HOSTS": "a.example b.example"}
    found = run(**environ)
    assert found.exit_code == 0
    set_again = dict(line.split("=", 1) for line in found.stdout.splitlines() if line[0] != "#")
    assert load(set_again) == load(environ)


def test_each_value_is_explained_with_where_it_comes_from() -> None:
    found = run("--explain", RUNG_STORE="/data/rung.db", DYNO="web.1")
    assert "RUNG_STORE = /data/rung.db   (environment)" in found.output
    assert "RUNG_TRUSTED_PROXY_HOPS = 1   (DYNO is set)" in found.output
    assert "PORT = 8000   (default)" in found.output
    for setting in SETTINGS:
        assert f"{setting.variable} = " in found.output
        assert setting.help.split(".")[0].split(",")[0][:40] in " ".join(found.output.split())
        assert setting.example in found.output


@pytest.mark.parametrize("words", [(), ("--explain",), ("--check",)])
def test_no_secret_is_printed(words: tuple[str, ...]) -> None:
    secrets = {setting.variable: SECRET for setting in SETTINGS if setting.secret}
    addresses = {
        "RUNG_STORE_URL": f"https://me:{SECRET}@files.example.com/rung.db?key={SECRET}",
        "RUNG_PAPERS_URL": f"https://files.example.com/papers.db?key={SECRET}",
        "RUNG_UPSTREAM_URL": f"ftp://me:{SECRET}@a",
        "RUNG_TOKEN": SECRET,
    }
    found = run(*words, **secrets, **addresses)
    assert SECRET not in found.output + found.stderr
    if words != ("--check",):
        assert "files.example.com" in found.output


def test_all_faults_and_likely_typing_errors_are_told_at_once() -> None:
    environ = {"RUNG_THREADS": "many", "PORT": "70000", "RUNG_PUBLICURL": "https://a"}
    found = run("--check", **environ)
    assert found.exit_code == 2 and found.stdout == ""
    assert "RUNG_THREADS is 'many'" in found.stderr and "PORT is '70000'" in found.stderr
    assert "Did you mean RUNG_PUBLIC_URL?" in found.stderr


def test_a_good_configuration_is_checked_without_a_word(archive: Archive) -> None:
    found = run("--check", RUNG_STORE=str(archive.house.path))
    assert (found.exit_code, found.output) == (0, "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"notes", "not a database"), ("newer", "schema version")],
)
def test_a_store_that_cannot_be_served_is_an_error(
    tmp_path: Path, content: bytes | str, reason: str
) -> None:
    path = tmp_path / "rung.db"
    if content == "newer":
        worlds.build(worlds.two_mailboxes(), tmp_path)
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA user_version = 999")
    elif isinstance(content, bytes):
        path.write_bytes(content)
    checked = run("--check", RUNG_STORE=str(path))
    assert checked.exit_code == 2 and checked.stdout == ""
    assert str(path) in checked.stderr and reason in checked.stderr
    assert run(RUNG_STORE=str(path)).exit_code == 0, "without --check nothing is opened"


def test_a_store_that_does_not_exist_yet_is_a_warning(tmp_path: Path) -> None:
    checked = run("--check", RUNG_STORE=str(tmp_path / "rung.db"))
    assert (checked.exit_code, checked.stdout) == (0, "")
    assert "There is no store yet" in checked.stderr


def test_a_store_that_is_fetched_or_not_needed_is_not_opened(tmp_path: Path) -> None:
    fetched = {"RUNG_STORE_URL": "https://files.example.com/rung.db", "RUNG_STORE_SHA256": "0" * 64}
    for more in (fetched, {"RUNG_UPSTREAM_URL": "https://pdpp.example.com"}):
        checked = run("--check", RUNG_STORE=str(tmp_path / "rung.db"), **more)
        assert (checked.exit_code, checked.stderr) == (0, "")


def test_a_database_that_does_not_answer_is_an_error() -> None:
    url = f"postgresql://rung:{SECRET}@127.0.0.1:9/rung"
    checked = run("--check", DATABASE_URL=url)
    assert checked.exit_code == 2 and "The database is not responding" in checked.stderr
    assert "127.0.0.1:9/rung" in checked.stderr and SECRET not in checked.stderr


def test_a_database_without_its_driver_is_an_error() -> None:
    program = "import sys; sys.modules['psycopg'] = None\nfrom service.__main__ import main; main()"
    environ = {**os.environ, "DATABASE_URL": "postgresql://127.0.0.1:9/rung"}
    checked = subprocess.run(
        [sys.executable, "-c", program, "config", "--check"],
        capture_output=True,
        check=False,
        env=environ,
        cwd=ROOT,
        text=True,
    )
    assert checked.returncode == 2 and install_command("postgres") in checked.stderr


def test_a_number_says_from_where_to_where_it_goes() -> None:
    environ = {"RUNG_TRUSTED_PROXY_HOPS": "-1", "RUNG_THREADS": "0", "PORT": "70000"}
    said = run("--check", **environ).stderr
    for bounds in (
        "number of at least 0, for",
        "number of at least 1, for",
        "number from 0 to 65535, for",
    ):
        assert f"must be a whole {bounds}" in said


def test_every_variable_that_is_read_has_its_row() -> None:
    rows = {setting.variable for setting in SETTINGS} | {each.name for each in BESIDE}
    read: set[str] = set()
    for path in (ROOT / "service").rglob("*.py"):
        found = re.findall(r"\"((?:RUNG|PDPP)_[A-Z0-9_]+)\"", path.read_text("utf-8"))
        read.update(found)
    assert read - rows - set(settings.OWNER_VARIABLES) - NOT_OURS == set()


def test_of_several_addresses_none_shows_its_user() -> None:
    addresses = f"https://me:{SECRET}@a.example,https://me:{SECRET}@b.example"
    found = run(RUNG_AUTHORIZATION_SERVERS=addresses)
    assert SECRET not in found.output
    assert "=https://(hidden)@a.example https://(hidden)@b.example\n" in found.output


def test_a_home_folder_nobody_has_is_a_fault_like_others() -> None:
    found = run("--check", RUNG_STORE="~nobody-of-that-name/rung.db")
    assert found.exit_code == 2 and "RUNG_STORE is '~nobody" in found.stderr
