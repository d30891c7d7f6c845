"""`rung schema|query|aggregate|search|fetch|read|blob`: what they take, print and refuse."""

import csv
import hashlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from evidence.errors import KINDS
from service.addresses import rung_url
from service.cli import commands
from tests.helpers import hostile as hostile_world, worlds
from tests.helpers.caller import Local
from tests.helpers.loopback import Asked, Reply, answering
from tests.helpers.shell import Shell, printed
from tests.helpers.small import LONG_BODY, LONG_ID
from tests.helpers.stores import build
from tests.helpers.worlds import House, two_mailboxes

WORK = ("messages", "--connection-id", "mail-work")


@pytest.fixture(scope="module")
def shell(small_house: House, small: Local) -> Shell:
    return Shell({**small_house.environment, "RUNG_TOKEN": str(small.api.token)})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell beside the two mailboxes, which has blobs."""
    house = build_household(tmp_path_factory.mktemp("home"))
    return Shell({**house.environment, "RUNG_TOKEN": house.grant()[1]})


def build_household(folder: Path) -> House:
    return worlds.build(two_mailboxes(), folder)


def body(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    "short",
    [
        ("--filter", "received_at>=2026-04-20T00:00:00Z"),
        ("--filter", '{"received_at":{"gte":"2026-04-20T00:00:00Z"}}'),
        ("--filter", "received_at >= 2026-04-20T00:00:00Z"),
    ],
)
def test_a_filter_is_json_or_short(shell: Shell, short: tuple[str, ...]) -> None:
    expected = shell.ok("query", *WORK, "--filter", "received_at>=2026-04-20T00:00:00Z").stdout
    assert shell.ok("query", *WORK, *short).stdout.split("\n")[1:-2] == expected.split("\n")[1:-2]
    assert 0 < expected.count(" emitted_at=") < shell.ok("query", *WORK).stdout.count(" emitted_at")


def test_ranges_and_values_of_several_filters_are_one(shell: Shell) -> None:
    result = shell.ok(
        *("query", *WORK, "--json", "--filter", "received_at>=2026-04-02"),
        *("--filter", "received_at<2026-05-01", "--filter", "folder=inbox"),
    )
    address = body(result)["links"]["self"]
    assert "filter%5Breceived_at%5D%5Bgte%5D=2026-04-02" in address
    assert "filter%5Breceived_at%5D%5Blt%5D=2026-05-01" in address
    assert "filter%5Bfolder%5D=inbox" in address
    doubled = shell.ok("query", *WORK, "--json", "--filter", "folder==inbox")
    assert "filter%5Bfolder%5D=inbox" in body(doubled)["links"]["self"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("folder", "is invalid"),
        ('{"folder"', "is not valid JSON"),
        ("folder=a --filter folder=b", "twice"),
        ("[1]", "is invalid"),
        ("folder!=a", "is invalid"),
    ],
)
def test_a_filter_that_cannot_be_read_is_explained(shell: Shell, given: str, said: str) -> None:
    result = shell.run("query", *WORK, "--filter", *given.split(" "))
    assert result.exit_code == 2 and said in result.stderr and "--filter" in result.stderr


def test_lists_repeat_or_have_commas_or_are_json(shell: Shell) -> None:
    ways = (
        ("--fields", "id", "--fields", "subject"),
        ("--fields", "id,subject"),
        ("--fields", '["id","subject"]'),
    )
    found = {shell.ok("query", *WORK, "--json", *way).stdout for way in ways}
    assert len(found) == 1
    assert set(orjson.loads(found.pop())["data"][0]["data"]) == {"id", "subject"}


def test_words_of_a_search_are_joined(shell: Shell) -> None:
    one, two = (
        body(shell.ok("search", *words, "--json"))["links"]["self"]
        for words in (("invoice", "number"), ("invoice number",))
    )
    assert one == two == "/v1/search?q=invoice+number"


def test_a_word_like_an_option_is_explained(shell: Shell) -> None:
    result = shell.run("search", "tag", "-friday")
    assert result.exit_code == 2 and "quote the whole query" in result.stderr
    assert shell.ok("search", "--", "tag", "-friday").stdout == (
        shell.ok("search", "tag -friday").stdout
    )
    assert "Did you mean '--limit'?" in shell.run("search", "x", "--limits", "3").stderr


def test_defaults_are_those_of_the_tools_for_text_and_of_rest_for_json(home: Shell) -> None:
    assert len(re.findall("^[0-9]+ mail-", home.ok("search", "lantern").stdout, re.M)) == 10
    assert len(body(home.ok("search", "lantern", "--json"))["data"]) > 10
    assert "With --json, --limit defaults to 25." in " ".join(
        home.ok("search", "--help").stdout.split()
    )


def test_help_lists_the_words_and_the_bounds_of_arguments(shell: Shell) -> None:
    told = " ".join(shell.ok("aggregate", "--help").stdout.split())
    assert "One of: count, sum, avg, min, max, count_distinct." in told
    assert "1 to 100." in told and "`rung schema STREAM`" in told
    refused = shell.run("aggregate", *WORK[:1], "median").stderr
    assert refused.count("Use one of count, sum, avg, min, max, count_distinct.") == 1
    few = shell.run("query", *WORK, "--limit", "0").stderr
    assert "--limit: Use a number from 1 to 100.\n" in few and "Results per page" not in few


# -- forms of output ------------------------------------------------------------------------------


def test_jsonl_is_the_rows_of_the_body_and_what_comes_next_is_beside_it(shell: Shell) -> None:
    command, seen = "rung query diary --connection-id notes --limit 3 --jsonl", list[Any]()
    while command:
        page = shell.line(command)
        seen += [orjson.loads(line) for line in page.stdout.splitlines()]
        command = next(iter(printed(page.stderr, "next_page")), "")
        assert not command or "--jsonl" in command
    whole = body(shell.ok("query", "diary", "--connection-id", "notes", "--json"))["data"]
    assert seen == whole and len(seen) == 7
    hits = shell.ok("search", "standup*", "--limit", "2", "--jsonl")
    assert [orjson.loads(line)["object"] for line in hits.stdout.splitlines()] == (
        ["search_result"] * 2
    )
    groups = shell.ok("aggregate", *WORK, "count", "--group-by", "folder", "--jsonl").stdout
    assert all({"key", "count"} <= orjson.loads(line).keys() for line in groups.splitlines())


def test_csv_has_an_id_a_command_takes_and_every_field(shell: Shell) -> None:
    listed = shell.ok("query", *WORK, "--limit", "3", "--csv")
    rows = list(csv.DictReader(io.StringIO(listed.stdout)))
    assert len(rows) == 3 and "next_page: rung query" in listed.stderr
    for row in rows:
        document = shell.ok("fetch", row["id"]).stderr
        assert f'title: "{row["subject"]}"' in document
    found = csv.DictReader(io.StringIO(shell.ok("search", "invoice number", "--csv").stdout))
    texts = {hit["id"]: hit["text"] for hit in found}
    assert "invoice number 4711" in texts[LONG_ID] and "<mark>" not in texts[LONG_ID]
    groups = shell.ok("aggregate", *WORK, "count", "--group-by", "folder", "--csv").stdout_bytes
    assert groups.startswith(b"key,count\r\n")
    value = shell.ok("aggregate", *WORK, "count", "--csv").stdout_bytes
    assert value.startswith(b"metric,value\r\ncount,")


def test_the_text_of_fetch_and_read_is_all_that_goes_to_stdout(shell: Shell) -> None:
    window = shell.ok("read", LONG_ID, "body", "--offset-chars", "10", "--limit-chars", "99")
    assert window.stdout == LONG_BODY[10:109]
    assert "next: rung read" in window.stderr
    document = shell.ok("fetch", LONG_ID)
    assert LONG_BODY.startswith(document.stdout) and len(document.stdout) == 16_384
    assert f"next_read: rung read {LONG_ID} body --offset-chars 16384" in document.stderr


def test_a_closed_pipe_is_no_reason_to_speak(shell: Shell) -> None:
    found = shell.bash("rung query messages --json --limit 100 | true; echo ${PIPESTATUS[0]}")
    assert found.stderr == "" and found.stdout in ("0\n", "1\n")


# -- blobs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["schema", "search invoice --json", "stats"])
def test_a_full_disk_is_named(shell: Shell, words: str) -> None:
    done = shell.bash(f"rung {words} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "Error: cannot write to standard output: No space left on device.\n"


def test_the_bytes_of_a_blob_are_had_by_the_command_that_is_printed(
    home: Shell, tmp_path: Path
) -> None:
    shown = home.ok("read", "mail-home/attachments:a1", "file")
    (command,) = printed(shown.stderr, "bytes")
    target = tmp_path / "file.pdf"
    saved = home.line(command.replace("FILE", str(target)))
    assert saved.exit_code == 0 and target.read_bytes() == worlds.BINARY
    assert list(tmp_path.iterdir()) == [target]
    words = shlex.split(command)[2:5]
    assert home.ok("blob", *words).stdout_bytes == worlds.BINARY
    told = body(home.ok("blob", *words, "--json"))
    assert told["sha256"] == hashlib.sha256(worlds.BINARY).hexdigest()
    assert told["size_bytes"] == len(worlds.BINARY) and told["mime_type"] == "application/pdf"
    assert "Use --output FILE" in home.terminal("blob", *words)
    missing = home.run("blob", "nothing", "--output", str(tmp_path / "none"))
    assert missing.exit_code == 5 and list(tmp_path.iterdir()) == [target]


# -- terminals ------------------------------------------------------------------------------------


def test_a_terminal_gets_tables_and_marks_with_every_id_whole(shell: Shell) -> None:
    listed = shell.terminals(
        ("query", *WORK, "--limit", "4"),
        ("search", "invoice", "number"),
        ("aggregate", *WORK, "count", "--group-by", "folder"),
        columns=80,
    )
    ids = [row["id"] for row in body(shell.ok("query", *WORK, "--json"))["data"][:4]]
    assert all(f"mail-work/messages:{key}" in listed for key in ids)
    assert "\x1b[" in listed and "<<<" not in listed
    (following,) = printed(listed, "next_page")[:1]
    assert shell.line(following).exit_code == 0
    narrow = shell.terminal("query", *WORK, "--limit", "2", columns=30)
    assert f"mail-work/messages:{ids[0]}" in narrow
    assert f"{LONG_ID}\x1b[0m" in listed and "<mark>" not in listed
    assert "\ninbox" in listed


def test_colours_are_left_out_where_they_are_not_wanted(shell: Shell) -> None:
    plain = Shell({**shell.environ, "NO_COLOR": "1"})
    found = plain.terminal("search", "invoice", "number")
    assert "\x1b[36m" not in found and "\x1b[1;36m" not in found and LONG_ID in found


def test_controls_in_records_do_not_reach_a_terminal(tmp_path: Path) -> None:
    house = build(hostile_world.connections(), tmp_path)
    shell = Shell({**house.environment, "RUNG_TOKEN": house.grant()[1], "TERM": "dumb"})
    one = ("forged/forged:controls", "text")
    raw = shell.ok("read", *one).stdout
    assert "\x1b" in raw
    shown = shell.terminals(
        ("read", *one),
        ("read", *one, "--json"),
        ("fetch", one[0]),
        ("query", "forged"),
        ("query", "forged", "--jsonl"),
        ("query", "forged", "--csv"),
        ("search", "marrow"),
    )
    assert shown.count("forged/forged:") > 7
    assert "\x1b" not in shown and "\u202e" not in shown


def test_no_line_of_a_record_passes_for_one_of_ours_on_a_terminal(tmp_path: Path) -> None:
    house = build(hostile_world.connections(), tmp_path)
    shell = Shell({**house.environment, "RUNG_TOKEN": house.grant()[1], "TERM": "dumb"})
    shown = shell.terminal("search", "marrow", "--connection-id", "forged").splitlines()
    forged = [line for line in shown if "evil/evil:evil" in line and "fetch {" in line]
    assert forged and all(line.startswith(("    ", "1 ", "2 ", "3 ")) for line in forged)


# -- sources and tokens ---------------------------------------------------------------------------


def test_without_a_token_the_demo_says_what_to_run(tmp_path: Path) -> None:
    bare = Shell({}, tmp_path)
    store = str(tmp_path / "rung.db")
    assert bare.run("search", "x", "--store", store).exit_code == 2
    house = build_household(tmp_path)
    token = house.grant()[1]
    refused = bare.run("search", "lantern", "--store", store)
    assert refused.exit_code == 3 and f"rung grant create --store {store}" in refused.stderr
    assert "retry" not in refused.stderr
    (tmp_path / "demo-token").write_text(token)
    (tmp_path / "demo-token").chmod(0o600)
    refused = bare.run("search", "lantern", "--limit", "1", "--store", store)
    (again,) = printed(refused.stderr, "retry")
    assert token not in again and "--limit 1" in again
    found = bare.line(again)
    assert found.exit_code == 0 and "hits=1" in found.stdout
    assert all("--token-file" in command for command in printed(found.stdout))


def test_the_command_line_comes_before_the_environment(shell: Shell, tmp_path: Path) -> None:
    elsewhere = Shell({**shell.environ, "RUNG_URL": "http://127.0.0.1:9"})
    store = shell.environ["RUNG_STORE"]
    assert elsewhere.run("schema").exit_code == 1
    assert elsewhere.ok("schema", "--store", store).stdout.startswith("schema ")
    (tmp_path / "token").write_text("rung_wrong")
    (tmp_path / "token").chmod(0o600)
    assert shell.run("schema", "--token-file", str(tmp_path / "token")).exit_code == 3
    assert shell.run("schema", "--token", "rung_wrong").exit_code == 3
    for both in (("--url", "x", "--store", store), ("--token", "a", "--token-file", "b")):
        assert shell.run("schema", *both).exit_code == 2
    unset = shell.run("schema", "--url", "")
    assert (unset.exit_code, unset.stdout) == (2, "") and "--url is empty" in unset.stderr


@pytest.mark.parametrize("name", ["RUNG_OWNER_TOKEN", "PDPP_OWNER_TOKEN"])
def test_owners_credentials_are_refused(shell: Shell, name: str) -> None:
    result = Shell({**shell.environ, name: "secret-of-the-owner"}).run("schema")
    assert result.exit_code == 4 and name in result.stderr
    assert "secret-of-the-owner" not in result.output


def test_a_file_that_others_can_read_is_warned_of(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(shell.environ["RUNG_TOKEN"])
    file.chmod(0o644)
    result = shell.ok("schema", "--token-file", str(file))
    assert "chmod 600" in result.stderr


def test_a_setting_that_cannot_be_is_named(shell: Shell) -> None:
    result = Shell({**shell.environ, "RUNG_THREADS": "many"}).run("schema")
    assert result.exit_code == 2 and "RUNG_THREADS is 'many'" in result.stderr
    empty = Shell({**shell.environ, "RUNG_STORE": __file__}).run("schema")
    assert empty.exit_code == 1 and "store_unavailable" in empty.stderr


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("localhost:8000/mcp/papers", "http://localhost:8000"),
        ("rung.example.com", "https://rung.example.com"),
        ("https://rung.example.com/records/mcp", "https://rung.example.com/records"),
    ],
)
def test_any_address_of_a_running_rung_will_do(given: str, url: str) -> None:
    assert rung_url(given) == url


def test_every_kind_of_error_has_an_exit_code() -> None:
    codes = {kind.kind: commands.exit_code(kind("x")) for kind in KINDS if kind.kind != "internal"}
    assert codes["invalid"] == 2 and codes["unauthenticated"] == 3
    assert codes["forbidden"] == 4 and codes["not_found"] == 5
    named = ("invalid", "unauthenticated", "forbidden", "not_found")
    assert {code for kind, code in codes.items() if kind not in named} == {1}


PAGE = b"<html><head><title>Sorry &amp; \x1b[31mgoodbye</title></head><body>x</body></html>"


@pytest.fixture(scope="module")
def proxy() -> Iterator[str]:
    """A proxy with a page of its own: the status is the first part of the path."""

    def answer(asked: Asked) -> Reply:
        return Reply(int(asked.target.split("/")[1]), PAGE, {"Content-Type": "text/html"})

    with answering(answer) as server:
        yield server.url


@pytest.mark.parametrize(("status", "code"), [(200, 1), (400, 2), (403, 4), (404, 5), (500, 1)])
def test_the_page_of_a_proxy_is_named(proxy: str, status: int, code: int) -> None:
    found = Shell({"RUNG_TOKEN": "abc"}).run("search", "x", "--url", f"{proxy}/{status}")
    assert found.exit_code == code and found.stdout == ""
    assert f"status {status} and a web page: Sorry & \\u{{1B}}[31mgoodbye" in found.stderr
    assert "Traceback" not in found.output
