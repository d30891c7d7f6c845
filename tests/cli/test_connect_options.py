"""`rung connect`: where tokens go and are shown, which file and address are meant."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from service.__main__ import rung
from service.clients.table import CLIENTS, client_of
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

BY_REFERENCE = [name for name in USED if name != "claude"]


@pytest.fixture
def client_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClientHome:
    return ClientHome.at(tmp_path, monkeypatch)


@pytest.mark.parametrize("client", USED)
def test_a_dry_run_shows_the_server_and_no_token(client: str, client_home: ClientHome) -> None:
    client_home.place(client, (DATA / USED[client]).read_bytes())
    before = contents(client_home.home)
    shown = client_home.write(client, "--dry-run", "--inline-token", "--token", TOKEN)
    assert shown.exit_code == 0 and TOKEN not in shown.output
    assert f"{URL}/mcp" in shown.stdout and str(client_home.file(client)) in shown.stdout
    assert contents(client_home.home) == before
    assert client_home.write(client, "--inline-token", "--token", TOKEN).exit_code == 0
    written = contents(client_home.home)
    removed = client_home.run("--client", client, "--remove", "--dry-run")
    assert "Remove the server rung." in removed.stdout and TOKEN not in removed.output
    assert contents(client_home.home) == written


def test_what_a_dry_run_shows_can_be_pasted(client_home: ClientHome) -> None:
    shown = client_home.write("vscode", "--dry-run").stdout
    client_home.place("vscode", shown.partition("\n")[2].encode())
    assert "is up to date" in client_home.write("vscode").stdout


@pytest.mark.parametrize("client", BY_REFERENCE)
def test_a_token_stays_out_of_the_file_where_the_client_can_find_it(
    client: str, client_home: ClientHome
) -> None:
    result = client_home.write(client, RUNG_TOKEN=TOKEN)
    text = client_home.file(client).read_text()
    assert TOKEN not in text and TOKEN not in result.output
    assert "RUNG_TOKEN" in text or "${input:rung-token}" in text
    assert client_home.write(client).exit_code == 0  # nor need it be known here


@pytest.mark.parametrize("client", USED)
def test_a_file_with_the_token_is_for_its_owner_only(client: str, client_home: ClientHome) -> None:
    path = client_home.place(client, (DATA / USED[client]).read_bytes())
    path.chmod(0o644)
    client_home.write(client, "--inline-token", RUNG_TOKEN=TOKEN)
    assert TOKEN in path.read_text() and mode(path) == 0o600
    assert [mode(backup) for backup in backups(path)] == [0o644]


def test_a_file_without_the_token_keeps_its_mode(client_home: ClientHome) -> None:
    path = client_home.place("cursor", b"{}")
    path.chmod(0o640)
    client_home.write("cursor")
    assert mode(path) == 0o640


def test_a_client_that_keeps_the_token_in_its_file_needs_one(client_home: ClientHome) -> None:
    result = client_home.write("claude")
    assert result.exit_code == 2 and "--token-file" in result.output
    assert contents(client_home.home) == {}


def test_papers_and_open_services_get_no_header(client_home: ClientHome) -> None:
    for arguments in ((f"{URL}/mcp/papers",), (URL, "--no-token")):
        client_home.run(*arguments, "--client", "cursor", "--no-check", "--force", RUNG_TOKEN=TOKEN)
        assert list(entry("cursor", client_home.file("cursor"))) == ["url"]


def test_another_file_can_be_named(client_home: ClientHome) -> None:
    path = client_home.project / "elsewhere" / "mcp.json"
    assert client_home.write("cursor", "--config", str(path)).exit_code == 0
    assert entry("cursor", path) and contents(client_home.home) == {}


def test_clients_keep_their_files_where_their_variables_say(client_home: ClientHome) -> None:
    for client, variable, file in (
        ("codex", "CODEX_HOME", "config.toml"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
    ):
        folder = client_home.project / client
        client_home.write(client, **{variable: str(folder)})
        assert entry(client, folder / file)


def test_addresses_are_taken_as_people_copy_them(client_home: ClientHome) -> None:
    spelled = {
        "https://rung.example.com/": "https://rung.example.com/mcp",
        "https://rung.example.com/mcp/": "https://rung.example.com/mcp",
        "https://example.com/rung": "https://example.com/rung/mcp",
        "https://rung.example.com/v1": "https://rung.example.com/mcp",
        "https://rung.example.com/papers/v1": "https://rung.example.com/mcp/papers",
        "rung.example.com": "https://rung.example.com/mcp",
        "localhost:8000": "http://localhost:8000/mcp",
    }
    for url, expected in spelled.items():
        client_home.run(url, "--client", "cursor", "--no-check", "--force")
        assert entry("cursor", client_home.file("cursor"))["url"] == expected
    for url in ("ftp://a", "https://me:secret@a", "https://a?b=c", "http://", "https://a b"):
        assert client_home.run(url, "--client", "cursor", "--no-check").exit_code != 0


@pytest.mark.parametrize("client", [one.name for one in CLIENTS if one.config is None])
def test_a_client_without_a_file_is_told_what_to_paste(
    client: str, client_home: ClientHome
) -> None:
    result = client_home.run(f"{URL}/mcp/papers", "--client", client, "--token", TOKEN)
    assert result.exit_code == 0 and TOKEN not in result.output
    assert client_of(client).note in result.stdout
    assert client_home.run(URL, "--client", client, "--remove").exit_code == 2


def test_a_token_is_printed_when_it_is_asked_for(client_home: ClientHome) -> None:
    for arguments in ((), ("--client", "goose"), ("--client", "curl")):
        assert TOKEN not in client_home.run(URL, *arguments, "--token", TOKEN).output
        assert TOKEN in client_home.run(URL, *arguments, "--token", TOKEN, "--inline-token").output


def test_an_owners_credential_is_refused(client_home: ClientHome) -> None:
    result = client_home.write("cursor", PDPP_OWNER_TOKEN="x")
    assert result.exit_code != 0 and "PDPP_OWNER_TOKEN" in result.stderr
    assert contents(client_home.home) == {}


def test_nothing_is_written_for_an_address_that_does_not_answer(client_home: ClientHome) -> None:
    result = client_home.run("http://127.0.0.1:9", "--client", "cursor", RUNG_TOKEN=TOKEN)
    assert result.exit_code == 1 and contents(client_home.home) == {}
    assert "--no-check" in result.stderr
    assert "rung doctor http://127.0.0.1:9/mcp" in result.stderr


def test_without_a_home_folder_a_file_is_to_be_named(
    client_home: ClientHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as in a container, for a user it has not
    monkeypatch.delenv("HOME")
    kept = {"HOME": None, "RUNG_CONFIG": None, "XDG_CONFIG_HOME": str(client_home.home)}
    written = ["connect", URL, "--no-check", "--client", "cursor"]
    refused = CliRunner().invoke(rung, written, env=kept)
    assert refused.exit_code == 1 and "name the file with --config" in refused.stderr
    file = client_home.project / "mcp.json"
    assert CliRunner().invoke(rung, [*written, "--config", str(file)], env=kept).exit_code == 0
    assert entry("cursor", file) is not None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--no-token", "--token", TOKEN), "only one of --token"),
        (("--token-file", "x", "--token", TOKEN), "only one of --token"),
        (("--store", "x.db"), "require --stdio"),
        (("--papers", "x.db"), "require --stdio"),
        (("--name", "a b"), "letters, digits"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    words: tuple[str, ...], told: str, client_home: ClientHome
) -> None:
    refused = client_home.write("cursor", *words)
    assert refused.exit_code == 2 and told in refused.stderr and TOKEN not in refused.output
    assert not client_home.file("cursor").exists()
