"""`rung connect`: where tokens go and are shown, which file and address are meant."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from service.__main__ import rung
from service.clients.table import CLIENTS, named
from tests.helpers.desk import DATA, TOKEN, URL, USED, Desk, backups, contents, entry, mode

OTHER_TOKEN = "another-issuer.of-tokens"
BY_REFERENCE = [name for name in USED if name != "claude"]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk.at(tmp_path, monkeypatch)


@pytest.mark.parametrize("client", USED)
def test_a_dry_run_shows_the_difference_and_no_token(client: str, desk: Desk) -> None:
    desk.place(client, (DATA / USED[client]).read_bytes())
    before = contents(desk.home)
    shown = desk.write(client, "--dry-run", "--inline-token", "--token", TOKEN)
    assert shown.exit_code == 0 and TOKEN not in shown.output
    assert "\n+" in shown.stdout and f"{URL}/mcp" in shown.stdout
    assert contents(desk.home) == before


@pytest.mark.parametrize("arguments", [("--inline-token",), ("--stdio", "--inline-token")])
@pytest.mark.parametrize("client", USED)
def test_a_difference_shows_no_token_of_the_file_either(
    client: str, arguments: tuple[str, ...], desk: Desk
) -> None:
    written = ["--client", client, "--no-check", *arguments]
    assert desk.run(*written, RUNG_TOKEN=OTHER_TOKEN).exit_code == 0
    assert OTHER_TOKEN in desk.file(client).read_text()
    shown = desk.run("--client", client, "--remove", "--dry-run")
    assert "\n-" in shown.stdout and OTHER_TOKEN not in shown.output


@pytest.mark.parametrize("client", BY_REFERENCE)
def test_a_token_stays_out_of_the_file_where_the_client_can_find_it(
    client: str, desk: Desk
) -> None:
    result = desk.write(client, RUNG_TOKEN=TOKEN)
    text = desk.file(client).read_text()
    assert TOKEN not in text and TOKEN not in result.output
    assert "RUNG_TOKEN" in text or "${input:rung-token}" in text
    assert desk.write(client).exit_code == 0  # nor need it be known here


@pytest.mark.parametrize("client", USED)
def test_a_file_with_the_token_is_for_its_owner_only(client: str, desk: Desk) -> None:
    path = desk.place(client, (DATA / USED[client]).read_bytes())
    path.chmod(0o644)
    desk.write(client, "--inline-token", RUNG_TOKEN=TOKEN)
    assert TOKEN in path.read_text() and mode(path) == 0o600
    assert [mode(backup) for backup in backups(path)] == [0o644]


def test_a_file_without_the_token_keeps_its_mode(desk: Desk) -> None:
    path = desk.place("cursor", b"{}")
    path.chmod(0o640)
    desk.write("cursor")
    assert mode(path) == 0o640


def test_a_client_that_keeps_the_token_in_its_file_needs_one(desk: Desk) -> None:
    result = desk.write("claude")
    assert result.exit_code == 2 and "--token-file" in result.output
    assert contents(desk.home) == {}


def test_papers_and_open_services_get_no_header(desk: Desk) -> None:
    for arguments in ((f"{URL}/mcp/papers",), (URL, "--no-token")):
        desk.run(*arguments, "--client", "cursor", "--no-check", "--force", RUNG_TOKEN=TOKEN)
        assert list(entry("cursor", desk.file("cursor"))) == ["url"]


def test_a_project_has_files_of_its_own(desk: Desk) -> None:
    for client in ("claude-code", "cursor", "vscode", "codex", "gemini"):
        assert desk.write(client, "--scope", "project").exit_code == 0
        assert entry(client, desk.file(client, "project"))
    assert contents(desk.home) == {}
    refused = desk.write("claude", "--scope", "project", "--token", TOKEN)
    assert refused.exit_code == 2 and "--scope" in refused.stderr


def test_another_file_can_be_named(desk: Desk) -> None:
    path = desk.project / "elsewhere" / "mcp.json"
    assert desk.write("cursor", "--config", str(path)).exit_code == 0
    assert entry("cursor", path) and contents(desk.home) == {}
    assert desk.write("cursor", "--config", str(path), "--scope", "user").exit_code == 2


def test_clients_keep_their_files_where_their_variables_say(desk: Desk) -> None:
    for client, variable, file in (
        ("codex", "CODEX_HOME", "config.toml"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
    ):
        folder = desk.project / client
        desk.write(client, **{variable: str(folder)})
        assert entry(client, folder / file)


def test_addresses_are_taken_as_people_copy_them(desk: Desk) -> None:
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
        desk.run(url, "--client", "cursor", "--no-check", "--force")
        assert entry("cursor", desk.file("cursor"))["url"] == expected
    for url in ("ftp://a", "https://me:secret@a", "https://a?b=c", "http://", "https://a b"):
        assert desk.run(url, "--client", "cursor", "--no-check").exit_code != 0


@pytest.mark.parametrize("client", [one.name for one in CLIENTS if one.config is None])
def test_a_client_without_a_file_is_told_what_to_paste(client: str, desk: Desk) -> None:
    result = desk.run(f"{URL}/mcp/papers", "--client", client, "--token", TOKEN)
    assert result.exit_code == 0 and TOKEN not in result.output
    assert named(client).note in result.stdout
    assert desk.run(URL, "--client", client, "--remove").exit_code == 2


def test_a_token_is_printed_when_it_is_asked_for(desk: Desk) -> None:
    for arguments in ((), ("--client", "goose"), ("--client", "curl")):
        assert TOKEN not in desk.run(URL, *arguments, "--token", TOKEN).output
        assert TOKEN in desk.run(URL, *arguments, "--token", TOKEN, "--inline-token").output


def test_an_owners_credential_is_refused(desk: Desk) -> None:
    result = desk.write("cursor", PDPP_OWNER_TOKEN="x")
    assert result.exit_code != 0 and "PDPP_OWNER_TOKEN" in result.stderr
    assert contents(desk.home) == {}


def test_an_address_that_does_not_answer_is_a_warning(desk: Desk) -> None:
    result = desk.run("http://127.0.0.1:9", "--client", "cursor", RUNG_TOKEN=TOKEN)
    assert result.exit_code == 0 and entry("cursor", desk.file("cursor"))
    assert "rung doctor http://127.0.0.1:9/mcp" in result.stderr


@pytest.mark.parametrize(
    "before",
    [
        b'{"mcpServers":{"gh":{"env":{"GITHUB_TOKEN":"ghp_of-others"}}}}',
        b'{\n"mcpServers": {\n "gh": {"env": {"GITHUB_TOKEN" : "ghp_of-others"}}\n}\n}',
        b'{\n"mcpServers": {\n "rung": {"headers": {"X-Key": "ghp_of-others"}}\n}\n}',
    ],
)
def test_a_difference_shows_no_secret_of_other_servers(before: bytes, desk: Desk) -> None:
    desk.place("cursor", before)
    for arguments in ((URL, "--force"), ("--remove",)):
        shown = desk.run(*arguments, "--client", "cursor", "--no-check", "--dry-run")
        assert shown.exit_code == 0 and "ghp_of-others" not in shown.output
    desk.write("cursor", "--force")
    shown = desk.run("--remove", "--client", "cursor", "--dry-run")
    assert f"{URL}/mcp" in shown.stdout and "ghp_of-others" not in shown.output


def test_a_difference_steers_no_terminal(desk: Desk) -> None:
    desk.place("cursor", b'{\n\t// \x1b[2J\xc2\x9b31m\xe2\x80\xae\n\t"a": 1\n}')
    shown = desk.write("cursor", "--dry-run").stdout
    assert '\n-\t"a": 1\n' in shown and shown.replace("\n", "").replace("\t", "").isprintable()


def test_without_a_home_folder_a_file_is_to_be_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as in a container, for a user it has not
    monkeypatch.delenv("HOME")
    kept = {"HOME": None, "RUNG_CONFIG": None, "XDG_CONFIG_HOME": str(desk.home)}
    written = ["connect", URL, "--no-check", "--client", "cursor"]
    refused = CliRunner().invoke(rung, written, env=kept)
    assert refused.exit_code == 1 and "name the file with --config" in refused.stderr
    file = desk.project / "mcp.json"
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
    words: tuple[str, ...], told: str, desk: Desk
) -> None:
    refused = desk.write("cursor", *words)
    assert refused.exit_code == 2 and told in refused.stderr and TOKEN not in refused.output
    assert not desk.file("cursor").exists()


def test_a_token_in_a_project_is_told_to_be_kept_out_of_its_history(desk: Desk) -> None:
    written = desk.write("cursor", "--scope", "project", "--inline-token", "--token", TOKEN)
    assert "out of version control" in written.stderr
    assert "version control" not in desk.write("cursor", "--scope", "project", "--force").stderr
