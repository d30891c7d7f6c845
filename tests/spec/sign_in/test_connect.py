"""`rung connect` at a server with sign-in: which clients get a token by themselves."""

from pathlib import Path

import pytest

from tests.helpers.client_home import TOKEN, USED, ClientHome, entry
from tests.helpers.worlds import House


@pytest.fixture
def client_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClientHome:
    return ClientHome.at(tmp_path, monkeypatch)


@pytest.mark.parametrize("client", USED)
def test_without_a_token_only_the_address_is_written(
    base: str, client: str, client_home: ClientHome
) -> None:
    written = client_home.run(base, "--client", client)
    assert written.exit_code == 0 and "the owner signs in and allows access" in written.stderr
    assert "RUNG_TOKEN" not in written.output and "token" not in written.stderr
    found = entry(client, client_home.file(client))
    assert f"{base}/mcp" in str(found)
    assert not {"headers", "env", "bearer_token_env_var", "http_headers"} & found.keys()
    assert "inputs" not in client_home.file(client).read_text()


def test_a_token_that_is_given_is_used(base: str, house: House, client_home: ClientHome) -> None:
    written = client_home.run(base, "--client", "cursor", RUNG_TOKEN=house.grant()[1])
    assert "signs in" not in written.output
    assert "${env:RUNG_TOKEN}" in str(entry("cursor", client_home.file("cursor")))
    unchecked = client_home.run(base, "--client", "codex", "--no-check")
    assert "signs in" not in unchecked.output
    assert entry("codex", client_home.file("codex"))["bearer_token_env_var"] == "RUNG_TOKEN"
    without = client_home.run(base, "--client", "codex", "--no-token", "--force", RUNG_TOKEN=TOKEN)
    assert "To open it: codex mcp login rung" in without.stderr
    assert entry("codex", client_home.file("codex")) == {"url": f"{base}/mcp"}


@pytest.mark.parametrize("client", ["chatgpt", "goose", "mcp-remote"])
def test_a_client_without_a_file_gets_the_address_to_paste(
    base: str, client: str, client_home: ClientHome
) -> None:
    shown = client_home.run(base, "--client", client)
    assert f"{base}/mcp" in shown.stdout and "allows access" in shown.stderr
    assert "Authorization" not in shown.stdout and "RUNG_TOKEN=" not in shown.stdout


def test_a_client_that_cannot_sign_in_is_shown_where_the_token_goes(
    base: str, client_home: ClientHome
) -> None:
    shown = client_home.run(base, "--client", "curl")
    assert "Authorization" in shown.stdout and "signs in" not in shown.output


def test_a_local_command_reads_the_tokens_of_a_login(base: str, client_home: ClientHome) -> None:
    cache = client_home.project / "my cache"
    command = ["--client", "cursor", "--stdio", "--provider-url", base]
    written = client_home.run(*command, PDPP_CACHE_ROOT=str(cache))
    assert f"rung login {base}" in written.stderr
    found = entry("cursor", client_home.file("cursor"))
    assert found["args"][-2:] == ["--cache-root", str(cache)] and "env" not in found
    (cache / "clients").mkdir(parents=True)
    saved = cache / "clients" / f"{base.removeprefix('http://').replace(':', '_')}.json"
    saved.write_text("{}")
    again = client_home.run(*command, PDPP_CACHE_ROOT=str(cache))
    assert again.exit_code == 0 and f"uses and refreshes the token in {saved}" in again.stderr
