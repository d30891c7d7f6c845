"""What the commands say to somebody who begins: no server, a wrong token, words and numbers."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from service.addresses import rung_url
from service.cli.commands import Spelling, report_errors
from service.cli.opening import open_session
from service.cli.source import Source
from service.ports import SchemaQuery
from tests.helpers.loopback import free_port, silent
from tests.helpers.archive import Archive
from tests.helpers.papers import RELEASES, Library, Release
from tests.helpers.shell import Shell
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House


@pytest.mark.parametrize(
    ("url", "why"),
    [("127.0.0.1:9", "connection refused"), ("http://nobody.invalid", "no such host")],
)
def test_a_server_that_is_not_there_is_named(url: str, why: str) -> None:
    found = Shell({"RUNG_TOKEN": "abc"}).run("schema", "--url", url)
    named = rung_url(url)
    assert found.exit_code == 1 and "upstream server" not in found.stderr
    assert (
        f"{named} does not answer: {why}. Is it running? Run `rung doctor {named}`" in found.stderr
    )


def test_a_server_that_is_silent_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with silent() as url:
        source = Source(store=Path("none.db"), url=url, token="abc")
        with pytest.raises(SystemExit), report_errors(Spelling((), ()), server=source.server):
            open_session(source, seconds=0.1).rs.schema(SchemaQuery())
    assert f"{url} does not answer: timed out. Is it running?" in capsys.readouterr().err


def test_an_unknown_token_is_said_once_with_the_command_that_makes_one(archive: Archive) -> None:
    here = archive.shell.run("schema", "--token", "rung_nobodys")
    told = here.stderr.splitlines()[1:]
    assert here.exit_code == 3 and len(told) == 1
    assert "does not accept this token" in told[0] and "`rung grant create --" in told[0]


def test_an_unknown_token_is_said_once_by_a_server_too(archive: Archive, url: str) -> None:
    there = archive.shell.run("schema", "--url", url, "--token", "rung_nobodys")
    assert there.exit_code == 3 and there.stderr.lower().count("ask the owner") == 1


def test_words_of_a_paper_search_need_no_quotes() -> None:
    shell = Shell({"RUNG_PAPERS_DB": str(Release(DATA / RELEASES[0]).snapshot)})
    words = shell.ok("papers", "search", "deep", "OR", "attention").stdout
    assert words == shell.ok("papers", "search", "deep OR attention").stdout
    assert " hits=0" not in words
    dashed = shell.run("papers", "search", "deep", "-learning")
    assert dashed.exit_code == 2 and "quote the whole query" in dashed.stderr


@contextmanager
def somebodys(tmp_path: Path, **environ: str) -> Iterator[Shell]:
    """A machine without a store, where nobody listens at the port of a service."""
    yield Shell({"PORT": str(free_port()), "RUNG_STORE": str(tmp_path / "none.db"), **environ})


def test_the_doctor_goes_to_the_server_that_commands_read_from(
    archive: Archive, url: str, tmp_path: Path
) -> None:
    token = archive.shell.environ["RUNG_TOKEN"]
    with somebodys(tmp_path, RUNG_URL=url, RUNG_TOKEN=token) as shell:
        found = shell.run("doctor")
    assert found.exit_code == 0 and "the token is accepted" in found.stdout
    assert "skip  store" in found.stdout and f"the server is {url}" in found.stdout
    config = tmp_path / "config.toml"
    (tmp_path / "token").write_text(token)
    config.write_text(f'url = "{url}"\ntoken_file = "token"\n')
    with somebodys(tmp_path, RUNG_CONFIG=str(config)) as shell:
        assert "the token is accepted" in shell.ok("doctor").stdout
    with somebodys(tmp_path, RUNG_CONFIG=str(config), RUNG_URL="http://127.0.0.1:9") as shell:
        other = shell.run("doctor").stdout
    assert "127.0.0.1 is an IP address" in other and "FAIL  tcp" in other and token not in other


def test_a_mistyped_path_is_met_with_the_right_one_first(url: str) -> None:
    found = Shell({}).run("doctor", f"{url}/mcpp").stdout
    assert found.count(f"such as {url}/mcp") == 1
    assert found.index("Correct the path") < found.index("nginx")


def test_a_port_without_tls_is_kept_in_the_address_to_use(url: str) -> None:
    found = Shell({}).run("doctor", url.replace("http:", "https:")).stdout
    assert "FAIL  tls" in found and f"use {url}." in found


def test_headers_of_an_open_endpoint_are_told_plainly(papers: Library) -> None:
    found = Shell({}).ok("doctor", f"{papers.api.app}/mcp/papers").stdout
    assert "Mcp-Name arrive; Authorization is not needed" in found


@pytest.mark.parametrize("given", [(), ("--no-check",)])
def test_connect_says_that_no_token_was_tried(
    given: tuple[str, ...], url: str, tmp_path: Path
) -> None:
    words = ("connect", url, "--client", "cursor", "--config", str(tmp_path / "mcp.json"))
    found = Shell({}).ok(*words, *given)
    assert ("so Rung did not check one" in found.stderr) is (not given)


def test_a_table_begins_with_time_and_title_and_ends_with_text(small_house: House) -> None:
    """Where ids fill the line, each has one of its own."""
    _, token = small_house.grant()
    shell = Shell({**small_house.environment, "RUNG_TOKEN": token, "NO_COLOR": "1"})
    query = ("query", "messages", "--connection-id", "mail-work", "--limit", "3")
    ids = [f"mail-work/messages:{key}" for key in keys(shell, *query)]
    heading, *rows = shell.terminal(*query, columns=110).splitlines()[1:5]
    names = re.sub("\x1b[^m]*m", "", heading).split()
    assert names[:3] == ["id", "received_at", "subject"] and "body" not in names
    assert [row.split()[0] for row in rows] == ids
    narrow = shell.terminal(*query, columns=50).splitlines()
    assert all(id in narrow for id in ids), "each on a line of its own"
    assert "received_at" in narrow[2] and narrow[4].startswith("  2026-")
    chosen = shell.terminal(*query, "--fields", "body,subject", columns=110).splitlines()[1]
    assert re.sub("\x1b[^m]*m", "", chosen).split() == ["id", "body", "subject"]


def keys(shell: Shell, *query: str) -> list[str]:
    """The keys of the records a query gives."""
    return [row["id"] for row in orjson.loads(shell.ok(*query, "--json").stdout)["data"]]
