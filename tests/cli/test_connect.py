"""`rung connect --client`: a file is written as its owner would, and given back as it was."""

import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from service.clients.table import client_of
from service.clients.editing import lookup
from tests.helpers.client_home import (
    DATA,
    TOKEN,
    URL,
    USED,
    ClientHome,
    backups,
    contents,
    entry,
    mode,
)

JSON_CLIENTS = [name for name in USED if name != "codex"]

#: The same file on other systems, and after other editors.
VARIANTS: dict[str, Callable[[bytes], bytes]] = {
    "as-it-is": lambda content: content,
    "crlf": lambda content: content.replace(b"\n", b"\r\n"),
    "no-last-newline": lambda content: content.rstrip(b"\n"),
}
MARK = b"\xef\xbb\xbf"


@pytest.fixture
def client_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClientHome:
    return ClientHome.at(tmp_path, monkeypatch)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("client", USED)
def test_a_used_file_keeps_every_line_and_gets_its_bytes_back(
    client: str, variant: str, client_home: ClientHome
) -> None:
    before = VARIANTS[variant]((DATA / USED[client]).read_bytes())
    path = client_home.place(client, before)
    result = client_home.write(client, "--token", TOKEN)
    assert result.exit_code == 0, result.output
    after = path.read_bytes()
    assert entry(client, path) is not None
    lines = iter(after.splitlines())
    for line in before.splitlines():  # in their order; the one before the new entry gets a comma
        assert any(each.replace(b",", b"") == line.replace(b",", b"") for each in lines), line
    assert (b"\r\n" in after) == (b"\r\n" in before)
    assert after.count(b"\n") - after.count(b"\r\n") in (0, after.count(b"\n"))
    assert client_home.run("--client", client, "--remove").exit_code == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_a_byte_order_mark_stays(client: str, client_home: ClientHome) -> None:
    before = MARK + (DATA / USED[client]).read_bytes()
    path = client_home.place(client, before)
    assert client_home.write(client, "--token", TOKEN).exit_code == 0
    assert path.read_bytes().startswith(MARK + b"{") and entry(client, path)
    client_home.run("--client", client, "--remove")
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", ["claude", "claude-code", "cursor", "vscode"])
def test_without_its_backup_the_server_goes_and_nothing_else(
    client: str, client_home: ClientHome
) -> None:
    before = (DATA / USED[client]).read_bytes()
    path = client_home.place(client, before)
    client_home.write(client, "--token", TOKEN)
    for backup in backups(path):
        backup.unlink()
    client_home.run("--client", client, "--remove")
    assert path.read_bytes() == before


def test_what_was_changed_since_stays_when_the_server_goes(client_home: ClientHome) -> None:
    path = client_home.place("cursor", (DATA / "cursor.json").read_bytes())
    client_home.write("cursor")
    path.write_bytes(path.read_bytes().replace(b"read only", b"read and write"))
    client_home.run("--client", "cursor", "--remove")
    expected = (DATA / "cursor.json").read_bytes().replace(b"read only", b"read and write")
    assert path.read_bytes() == expected


@pytest.mark.parametrize(
    "before", [b"", b"\n", b"{}", b"{}\n", b'{"mcpServers": {}}', b"{\r\n}\r\n"]
)
def test_a_file_with_nothing_in_it_is_filled_and_emptied_again(
    before: bytes, client_home: ClientHome
) -> None:
    path = client_home.place("cursor", before)
    assert client_home.write("cursor").exit_code == 0
    assert entry("cursor", path)["url"] == f"{URL}/mcp"
    assert orjson.loads(path.read_bytes())
    client_home.run("--client", "cursor", "--remove")
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", USED)
def test_a_missing_file_is_made_and_goes_again(client: str, client_home: ClientHome) -> None:
    path = client_home.file(client)
    assert client_home.write(client, "--token", TOKEN).exit_code == 0
    assert entry(client, path) is not None and mode(path) == 0o600
    assert client_home.run("--client", client, "--remove").exit_code == 0
    assert not path.exists()


@pytest.mark.parametrize("client", [name for name in USED if name != "claude-code"])
def test_what_is_written_is_what_there_is_to_paste(client: str, client_home: ClientHome) -> None:
    client_home.write(client, "--token", TOKEN)
    pasted = client_of(client).snippets(f"{URL}/mcp", TOKEN)[-1]
    path = client_home.project / "pasted"
    path.write_text(pasted.text)
    assert entry(client, path) == entry(client, client_home.file(client))


@pytest.mark.parametrize("client", USED)
def test_a_second_run_changes_nothing_and_says_so(client: str, client_home: ClientHome) -> None:
    client_home.place(client, (DATA / USED[client]).read_bytes())
    client_home.write(client, "--token", TOKEN)
    before = contents(client_home.home)
    again = client_home.write(client, "--token", TOKEN)
    assert again.exit_code == 0 and "nothing changed" in again.stdout
    assert contents(client_home.home) == before
    client_home.run("--client", client, "--remove")
    assert "nothing changed" in client_home.run("--client", client, "--remove").stdout


def test_every_write_has_a_backup_of_its_own(client_home: ClientHome) -> None:
    before = (DATA / "claude.json").read_bytes()
    path = client_home.place("claude-code", before)
    held = [before]
    for arguments in ((), ("--remove",), ("--name", "second"), ("--inline-token",)):
        client_home.write("claude-code", *arguments, RUNG_TOKEN=TOKEN)
        held.append(path.read_bytes())
    assert [backup.read_bytes() for backup in backups(path)] == held[:-1]


@pytest.mark.parametrize(
    ("client", "broken", "where"),
    [
        ("cursor", b'{\n  "mcpServers": {\n    "a": }\n}', "line 3, column 10"),
        ("vscode", b'{"servers": {}} x', "line 1, column 17"),
        ("gemini", b'{"a": 1 "b": 2}', "line 1, column 9"),
        ("claude-code", b'{"a": 1', "line 1, column 8"),
        ("codex", b"[mcp_servers\n", "line 1, column 13"),
        ("cursor", b'{"mcpServers": []}', "mcpServers is not an object"),
        ("cursor", b'{"mcpServers": {}, "mcpServers": {}}', "mcpServers occurs twice"),
        ("codex", b"mcp_servers = { a = { url = 'x' } }\n", "mcp_servers"),
        ("cursor", b"\xff\xfe{\x00}\x00", "UTF-8"),
        ("cursor", b'{"a": ' + b"1" * 5_000 + b"}", "5000 digits"),
        ("codex", b"a = " + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_alone(
    client: str, broken: bytes, where: str, client_home: ClientHome
) -> None:
    path = client_home.place(client, broken)
    for arguments in ((), ("--dry-run",)):
        result = client_home.write(client, *arguments)
        assert result.exit_code == 1 and where in result.stderr and str(path) in result.stderr
        assert contents(client_home.home) == {str(path): broken}


@pytest.mark.parametrize("client", USED)
def test_another_server_of_that_name_is_replaced_only_by_force(
    client: str, client_home: ClientHome
) -> None:
    path = client_home.place(client, (DATA / USED[client]).read_bytes())
    client_home.run("https://first.example.com", "--client", client, "--no-check", "--token", TOKEN)
    before = contents(client_home.home)
    refused = client_home.write(client, "--token", TOKEN)
    assert refused.exit_code == 1 and "--force" in refused.stderr
    assert contents(client_home.home) == before
    assert client_home.write(client, "--token", TOKEN, "--force").exit_code == 0
    assert f"{URL}/mcp" in str(entry(client, path))
    assert b"first.example.com" not in path.read_bytes()


def test_servers_of_several_names_stand_side_by_side(client_home: ClientHome) -> None:
    for client in ("vscode", "codex"):
        path = client_home.place(client, (DATA / USED[client]).read_bytes())
        before = path.read_bytes()
        client_home.write(client, "--name", "mine")
        client_home.write(client, "--name", "yours")
        assert entry(client, path, "mine") and entry(client, path, "yours")
        client_home.write(client, "--name", "mine", "--remove")
        assert entry(client, path, "mine") is None and entry(client, path, "yours")
        client_home.write(client, "--name", "yours", "--remove")
        assert entry(client, path, "yours") is None
        assert b"".join(path.read_bytes().split()) == b"".join(before.split())
    assert client_home.write("codex", "--name", "a b").exit_code == 2


def test_a_prompt_that_another_server_uses_stays(client_home: ClientHome) -> None:
    path = client_home.place("vscode", b"{}")
    client_home.write("vscode")
    text = path.read_text().replace(
        '"rung": {', '"kept": {"url": "${input:rung-token}"}, "rung": {'
    )
    path.write_text(text)
    client_home.write("vscode", "--remove")
    assert list(lookup(path.read_text(), ("servers",))) == ["kept"]
    assert [one["id"] for one in lookup(path.read_text(), ("inputs",))] == ["rung-token"]


def test_a_link_is_followed_and_stays_one(client_home: ClientHome) -> None:
    kept = client_home.project / "dotfiles.json"
    kept.write_bytes(b"{}")
    path = client_home.file("cursor")
    path.parent.mkdir()
    path.symlink_to(kept)
    client_home.write("cursor")
    assert path.is_symlink() and b"mcpServers" in kept.read_bytes()
    assert len(backups(kept)) == 1 and not backups(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_a_file_stays(client_home: ClientHome) -> None:
    path = client_home.place("cursor", b"{}")
    os.chown(path, 12345, 54321)
    client_home.write("cursor")
    kept = [(one.stat().st_uid, one.stat().st_gid) for one in (path, *backups(path))]
    assert kept == [(12345, 54321)] * 2


@pytest.mark.parametrize("option", [(), ("--store", "postgresql://ada:hidden@db.example/rung")])
def test_no_file_gets_the_password_of_a_database(
    option: tuple[str, ...], client_home: ClientHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNG_STORE", "postgresql://ada:hidden@db.example/rung")
    path = client_home.place("cursor", b"{}")
    result = client_home.run("--client", "cursor", "--stdio", *option, "--token", TOKEN)
    assert result.exit_code == 1 and "password of a database" in result.output
    assert path.read_bytes() == b"{}"
