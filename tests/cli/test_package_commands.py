"""`rung package`: made, listed and revoked at the shell; no token is printed but its own."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung
from service import keys
from service.access import packages
from service.access.registry import Registry
from service.records.sqlite.writer import open_writer
from tests.helpers.loopback import Reply, answering
from tests.helpers.replay import raw_body, recorded, replaying
from tests.helpers.worlds import House

ROWS = '{"id": "a", "text": "hello"}\n{"id": "b", "text": "there"}\n'
SECRET = "the secret of this test"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store that has one grant, labelled `diary`, and the token of a server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNG_STORE", "rung.db")
    monkeypatch.setenv("RUNG_SECRET_KEY", SECRET)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "diary.ndjson").write_text(ROWS, encoding="utf-8")
    run("import", "diary.ndjson", "--connection", "diary", "--label", "My diary")
    run("grant", "create", "--label", "diary")
    for name in ("full", "owner"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o600)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(rung, words)


def create(*words: str) -> Result:
    return run("package", "create", *words)


def test_a_package_prints_its_token_once_and_works_until_revoked(home: Path) -> None:
    made = create("--grant", "diary", "--label", "mine")
    token = made.stdout.strip()
    assert made.exit_code == 0 and token.startswith("rung_pkg_")
    assert "1 grant" in made.stderr and "not shown again" in made.stderr
    with open_writer("rung.db") as writer:
        found = packages.find(Registry(writer), token)
        assert found and [member.name for member in found.members] == ["diary"]
    listed = run("package", "list").stdout
    assert "active 'mine'" in listed and token not in listed
    assert run("package", "revoke", "mine").stdout.endswith("revoked\n")
    assert "revoked 'mine'" in run("package", "list").stdout
    again = run("package", "revoke", "mine")
    assert again.exit_code == 1 and "rung package list" in again.stderr


def test_a_member_elsewhere_is_asked_once_and_its_token_is_sealed(home: Path) -> None:
    with replaying() as server:
        made = create("--grant", "diary", "--remote", f"{server.url}/", "--token-file", "full")
        assert made.exit_code == 0, made.stderr
        assert {asked.token for asked in server.asked} == {"full"}
    with open_writer("rung.db") as writer:
        found = packages.find(Registry(writer), made.stdout.strip())
        (kept,) = writer.db.execute("SELECT token FROM member WHERE token NOT NULL").fetchall()
    assert found is not None and "full" not in kept[0]
    assert [member.origin for member in found.members] == [None, server.url]
    assert {held.stream for held in found.members[1].held} == {"messages", "threads"}
    sealer = keys.of_tokens(SECRET.encode())
    assert packages.unsealed(found.package_id, found.members[1], sealer) == "full"
    listed = run("package", "list").stdout
    assert server.url in listed and "full" not in listed + made.stderr


def test_without_a_key_of_its_own_the_store_says_where_the_key_lies(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUNG_SECRET_KEY")
    with replaying() as server:
        made = create("--remote", server.url, "--token-file", "full")
    assert made.exit_code == 0 and "RUNG_SECRET_KEY is not set" in made.stderr
    assert "RUNG_SECRET_KEY" not in create("--grant", "diary").stderr


def test_owner_tokens_are_refused_and_nothing_is_kept(home: Path) -> None:
    owners = Reply(200, raw_body(recorded("schema_compact_owner")))
    with answering(lambda asked: owners) as server:
        made = create("--remote", server.url, "--token-file", "owner")
    assert made.exit_code == 1 and "Owner tokens are refused" in made.stderr
    assert made.stdout == run("package", "list").stdout == ""


@pytest.mark.parametrize(
    ("words", "code", "advice"),
    [
        ((), 1, "needs at least one grant"),
        (("--grant", "nobody"), 1, "rung grant list"),
        (("--grant", "diary", "--grant", "diary"), 1, "listed twice"),
        (("--grant", "diary", "--expires", "soon"), 1, "30d"),
        (("--remote", "https://a.example"), 2, "--token-file"),
        (("--remote", "https://a.example", "--token-file", "nowhere"), 1, "nowhere"),
        (("--remote", "https://", "--token-file", "full"), 1, "https://pdpp.example.com"),
    ],
)
def test_a_package_that_cannot_be_made_says_why(
    home: Path, words: tuple[str, ...], code: int, advice: str
) -> None:
    result = create(*words)
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    assert advice in result.stderr


def test_a_label_of_several_grants_is_no_name(home: Path) -> None:
    House(home / "rung.db").grant(label="diary")
    result = create("--grant", "diary")
    assert result.exit_code == 1 and result.stderr.count("grt_") == 2


def test_a_revoked_grant_cannot_join(home: Path) -> None:
    run("grant", "revoke", "diary")
    assert "no active grant" in create("--grant", "diary").stderr
