"""`rung serve`: what it refuses before it listens, and what the service says when it starts."""

import os
import re
from pathlib import Path

import pytest

from tests.helpers.archive import Archive
from tests.helpers.operated import operated
from tests.helpers.loopback import free_port
from tests.helpers.shell import Shell

SHELL = Shell({"RUNG_CONFIG": "/dev/null"})


@pytest.mark.parametrize("content", ["no store", ""])
def test_a_file_that_is_no_store_is_not_served(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.db"
    path.write_text(content)
    result = SHELL.run("serve", "--store", str(path), "--port", "0")
    assert result.exit_code == 1
    assert f"{path} is not a Rung store" in result.stderr and "--store" in result.stderr


@pytest.mark.parametrize("command", ["serve", "demo"])
@pytest.mark.parametrize("port", ["abc", "-1", "65536"])
def test_a_port_that_is_none_is_refused(command: str, port: str) -> None:
    named = Shell({**SHELL.environ, "PORT": port}).run(command)
    typed = SHELL.run(command, "--port", port)
    for result in (named, typed):
        assert result.exit_code == 2 and "'--port' (env var: 'PORT')" in result.stderr
        assert port in result.stderr


def test_a_number_of_workers_that_is_none_is_refused() -> None:
    named = Shell({**SHELL.environ, "WEB_CONCURRENCY": "0"}).run("serve")
    assert named.exit_code == 2 and "WEB_CONCURRENCY" in named.stderr


def test_what_is_likely_a_mistake_is_logged_once_at_the_start(tmp_path: Path) -> None:
    missing = tmp_path / "rung.db"
    environ = {"RUNG_STORE": str(missing), "RUNG_STOER": "x", "RUNG_LOG_FORMAT": "json"}
    with operated(environ) as server:
        warnings = [line["event"] for line in server.lines() if line["level"] == "warning"]
    mistyped, store = warnings
    assert mistyped.startswith("RUNG_STOER is not a Rung setting") and "RUNG_STORE?" in mistyped
    assert str(missing) in store and "does not exist" in store


def test_a_file_that_is_no_store_is_logged_and_a_good_one_is_not(
    tmp_path: Path, archive: Archive
) -> None:
    strange = tmp_path / "x.db"
    strange.write_text("no store")
    for path, expected in ((strange, 1), (archive.house.path, 0)):
        with operated({"RUNG_STORE": str(path), "RUNG_LOG_FORMAT": "json"}) as server:
            said = [line["event"] for line in server.lines() if line["level"] == "warning"]
        assert len([line for line in said if str(path) in line]) == expected, said


def test_the_address_and_the_commands_that_give_access_are_printed(
    monkeypatch: pytest.MonkeyPatch, archive: Archive
) -> None:
    def replaced(*_: object) -> None:
        raise SystemExit(0)

    monkeypatch.setattr(os, "execve", replaced)
    store, port = str(archive.house.path), free_port()
    words = ("serve", "--store", store, "--port", str(port))
    printed = SHELL.ok(*words).stdout
    assert f"Open http://127.0.0.1:{port}\n" in printed and "owner" not in printed
    (create,) = re.findall("rung grant create .+", printed)
    assert store in create and "rung_" in SHELL.line(create).stdout
    printed = Shell({**SHELL.environ, "RUNG_SIGN_IN": "on"}).ok(*words).stdout
    (link,) = re.findall("rung owner link .+", printed)
    made = SHELL.line(link)
    assert f"http://127.0.0.1:{port}/owner/login?code=" in made.stdout
    assert f"a server of the store {store}" in made.stderr
