"""`rung login` gets tokens through the consent page; other commands read and refresh them."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
import requests
from click.testing import Result

from service.records.sidecar import open_sidecar
from service.cli import tokens
from service.credentials import cache_file
from tests.helpers.server import serving
from tests.helpers.shell import Shell
from tests.helpers.signin import MAIL, Browser, call, later, onward, run_command
from tests.helpers.worlds import House

SEARCH = ("search", "lantern", "--json", "--url")
#: Of an earlier time, in a credential file.
PAST = "2020-01-01T00:00:00+00:00"


def started(root: Path, *words: str) -> Popen[str]:
    left_out = ("RUNG_TOKEN", "RUNG_URL")
    environ = {name: text for name, text in os.environ.items() if name not in left_out}
    environ["PDPP_CACHE_ROOT"] = str(root)
    command = [sys.executable, "-m", "service", *words]
    return Popen(command, env=environ, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)


def ran(root: Path, *words: str) -> Result:
    return Shell({"PDPP_CACHE_ROOT": str(root)}).run(*words)


def log_in(
    root: Path, base: str, browser: Browser, change: Callable[[str], str] = str
) -> tuple[int, str]:
    """(exit code, stderr) of a login; `change` alters the address that the browser returns to."""
    process = started(root, "login", base)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    address = next(line for line in lines if line.startswith(base)).strip()
    back = onward(browser.allow(address.removeprefix(base), MAIL))
    wrong = requests.get(back.replace("state=", "state=x"))
    assert wrong.status_code == 400 and "code" not in wrong.text
    assert requests.get(change(back)).status_code == 200
    _, err = process.communicate()
    return process.returncode, err


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def file(root: Path, base: str, browser: Browser) -> Path:
    """The credential file of a login."""
    code, err = log_in(root, base, browser)
    assert code == 0, err
    (found,) = root.glob("clients/*.json")
    return found


def expire(house: House, file: Path) -> None:
    """Ends the access token, at the server and in the file."""
    later(house, 3_601)
    document = json.loads(file.read_bytes())
    document["credential"]["expires_at"] = PAST
    file.write_text(json.dumps(document))


def credential(file: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(file.read_bytes())["credential"]
    return found


def test_after_a_login_commands_read_what_was_ticked(root: Path, file: Path, base: str) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = ran(root, *SEARCH, base)
    assert found.exit_code == 0, found.stderr
    assert "Lantern" in found.stdout
    assert ran(root, "query", "threads", "--url", base).exit_code in (4, 5)


def test_after_a_login_stdio_serves_the_records(root: Path, file: Path, base: str) -> None:
    params = {"name": "search", "arguments": {"query": "lantern"}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "test", "version": "1"}
    messages = (
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
    )
    given = "".join(json.dumps(message) + "\n" for message in messages)
    process = started(root, "stdio", "--provider-url", base)
    out, err = process.communicate(given)
    assert process.returncode == 0, err
    assert "Lantern" in out


def test_processes_that_find_an_expired_token_refresh_it_once(
    root: Path, file: Path, base: str, house: House
) -> None:
    before = credential(file)
    expire(house, file)
    processes = [started(root, *SEARCH, base) for _ in range(3)]
    outputs = [process.communicate()[0] for process in processes]
    assert all("Lantern" in output for output in outputs)
    assert credential(file)["refresh_token"] != before["refresh_token"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with open_sidecar(house.path).transaction() as rows:
        kept = rows(
            "SELECT count(*) FROM access_entry WHERE kind = 'refresh' AND owner ="
            " (SELECT owner FROM access_entry WHERE kind = 'refresh'"
            " ORDER BY expires_at DESC LIMIT 1)"
        )
    assert [tuple(row) for row in kept] == [(2,)]


def test_a_login_that_was_revoked_asks_for_another_one(
    root: Path, file: Path, base: str, house: House
) -> None:
    token = credential(file)["access_token"]
    with open_sidecar(house.path).transaction() as rows:
        ((grant,),) = rows(
            "SELECT owner FROM access_entry WHERE kind = 'refresh' ORDER BY expires_at DESC LIMIT 1"
        )
    run_command(house, "grant", "revoke", grant)
    assert ran(root, *SEARCH, base).exit_code == 3
    expire(house, file)
    found = ran(root, *SEARCH, base)
    assert found.exit_code == 3
    assert f"rung login {base}" in found.stderr and token not in found.stderr


def test_a_logout_revokes_the_tokens_and_deletes_them(root: Path, file: Path, base: str) -> None:
    kept = json.loads(file.read_bytes())
    found = ran(root, "logout", base)
    assert found.exit_code == 0, found.stderr
    assert not file.exists()
    form = {"grant_type": "refresh_token", "client_id": kept["client_id"]}
    form["refresh_token"] = kept["credential"]["refresh_token"]
    assert requests.post(kept["token_endpoint"], form).status_code == 400
    assert call(base, kept["credential"]["access_token"], "/v1/streams").status_code == 401
    found = ran(root, "logout", base)
    assert found.exit_code == 1 and f"rung login {base}" in found.stderr


def test_a_logout_from_a_server_that_is_gone_deletes_the_tokens(
    root: Path, file: Path, base: str, house: House
) -> None:
    with serving("wsgi:app", house.environment) as other:
        there = root / "clients" / f"127.0.0.1_{other.rpartition(':')[2]}.json"
        there.write_text(file.read_text().replace(base, other))
    found = ran(root, "logout", other)
    assert found.exit_code == 1 and "were not revoked" in found.stderr
    assert not there.exists() and file.exists()
    assert credential(file)["refresh_token"] not in found.stderr


def test_a_logout_keeps_the_credential_of_another_program(
    root: Path, file: Path, base: str
) -> None:
    document = json.loads(file.read_bytes())
    del document["client_id"]
    file.write_text(json.dumps(document))
    assert ran(root, "logout", base).exit_code == 1
    assert file.exists()


def test_an_answer_of_another_issuer_saves_nothing(root: Path, base: str, browser: Browser) -> None:
    code, err = log_in(root, base, browser, lambda back: back.replace("iss=", "iss=x"))
    assert code == 1 and "another server" in err
    assert not list(root.glob("clients/*.json"))


def test_a_command_without_a_token_names_the_login_of_that_server(
    root: Path, base: str, house: House
) -> None:
    found = ran(root, *SEARCH, base)
    assert found.exit_code == 3 and f"`rung login {base}`" in found.stderr
    with serving("wsgi:app", house.environment) as other:
        found = ran(root, *SEARCH, other)
    assert found.exit_code == 3 and "rung login" not in found.stderr


def test_a_login_needs_sign_in_at_that_address(root: Path, base: str, house: House) -> None:
    found = ran(root, "login", base.replace("127.0.0.1", "localhost"))
    assert found.exit_code == 1 and f"own URL: {base}" in found.stderr
    for elsewhere in ("http://rung.example.com", "http://127.example.com"):
        found = ran(root, "login", elsewhere)
        assert found.exit_code == 1 and "requires https" in found.stderr
    with serving("wsgi:app", house.environment) as other:
        found = ran(root, "login", other)
    assert found.exit_code == 1 and "RUNG_SIGN_IN=on" in found.stderr
    found = ran(root, "login", other)
    assert found.exit_code == 1 and f"{other} does not answer" in found.stderr


def test_a_login_writes_nothing_into_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home, provider = tmp_path / "data" / "rung", "https://rung.example.com"
    monkeypatch.delenv("PDPP_CACHE_ROOT", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    older = cache_file(Path(".pdpp"), provider)
    older.parent.mkdir(parents=True)
    older.write_text("{}")
    assert tokens.root() == home, "for new credentials"
    assert tokens.root(provider) == Path(".pdpp"), "an older one is still read"
    newer = cache_file(home, provider)
    newer.parent.mkdir(parents=True)
    newer.write_text("{}")
    assert tokens.root(provider) == home
    monkeypatch.setenv("PDPP_CACHE_ROOT", "elsewhere")
    assert tokens.root() == tokens.root(provider) == Path("elsewhere")
