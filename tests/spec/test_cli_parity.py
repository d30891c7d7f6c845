"""The command line gives the same results as REST and the tools, for all calls and errors."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from evidence.model import Continuation, spelled
from evidence.hits_wire import READ_ANY_FIELD
from evidence.text import json_line
from service.cli.reading import ENTRIES
from service.operations import OPERATIONS
from tests.helpers.api import route_of
from tests.helpers.caller import Local
from tests.helpers.reading import printed_calls
from tests.helpers.server import serving
from tests.helpers.shell import SPELL, Shell, words_of
from tests.helpers.small import LONG_ID
from tests.helpers.worlds import House
from tests.spec.scenarios import scenario
from tests.spec.test_parity import EVERY, EXAMPLES, LONG, WORK

FENCE = re.compile(r"^(?:<<<([0-9a-f]{12}) untrusted record text|([0-9a-f]{12})>>>)$", re.MULTILINE)


@pytest.fixture(scope="module")
def at_store(small_house: House, small: Local) -> Shell:
    """A shell that reads the store itself."""
    return Shell({**small_house.environment, "RUNG_TOKEN": str(small.api.token)})


@pytest.fixture(scope="module")
def at_server(small_house: House, small: Local) -> Iterator[Shell]:
    """A shell that reads a running service, with only its address and a token."""
    with serving("wsgi:app", small_house.environment) as url:
        yield Shell({"RUNG_URL": url, "RUNG_TOKEN": str(small.api.token)})


@pytest.fixture(params=["store", "server"])
def shell(request: pytest.FixtureRequest) -> Shell:
    found: Shell = request.getfixturevalue(f"at_{request.param}")
    return found


def asked(tool: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The REST request with the same arguments and no others."""
    path, params = route_of(tool, args)
    return path, ({**args} if tool == "schema" else params)


def test_every_operation_has_a_command() -> None:
    assert [entry.operation for entry in ENTRIES] == list(OPERATIONS)
    assert {tool for tool, _ in EXAMPLES} == {entry.operation.name for entry in ENTRIES}


@EVERY
@scenario("004/tools/same-contract-same-grant")
def test_json_is_the_body_of_rest(
    small: Local, shell: Shell, tool: str, args: dict[str, Any]
) -> None:
    body = orjson.loads(shell.ok(*words_of(tool, args), "--json").stdout)
    path, params = asked(tool, args)
    expected = small.api.rest(path, **params).body
    itself = small.get(body["links"]["self"])
    assert body == itself
    assert {**body, "links": None} == {**expected, "links": None}


@EVERY
@scenario("000/parity/cli-reads-windows")
def test_text_is_that_of_the_tools_with_commands_for_calls(
    small: Local, at_store: Shell, tool: str, args: dict[str, Any]
) -> None:
    answer, result = small.ok(tool, **args), at_store.ok(*words_of(tool, args))
    if tool == "fetch":
        check_document(answer.structured, result.stdout, result.stderr)
        return
    expected = with_commands(answer.text)
    for call in printed_calls(answer.text):
        told = f"{call.tool} {json_line(call.args)}"
        assert told in expected
        expected = expected.replace(told, SPELL(Continuation(call.tool, call.args, call.why)))
    expected = expected.replace(spelled(READ_ANY_FIELD), SPELL(READ_ANY_FIELD))
    if tool == "read_record_field":
        beside = re.sub(r"\n<<<.*", "", expected, flags=re.DOTALL)
        assert result.stderr.rstrip("\n") == beside
        assert result.stdout == answer.structured.get("window", {}).get("text", "")
        return
    assert result.stderr == ""
    assert FENCE.sub("fence", result.stdout.rstrip("\n")) == FENCE.sub("fence", expected)


def with_commands(text: str) -> str:
    """The text with commands instead of routes to base64."""
    route = re.compile(
        r'HTTP GET "/v1/streams/notes/records/(\w+)\?\S+ with the same bearer token '
        r"\((\w+) is base64\)"
    )
    return route.sub(r"rung export blob notes/notes:\1 \2 --output FILE", text)


def check_document(structured: dict[str, Any], text: str, beside: str) -> None:
    assert text == structured["text"]
    assert f"fetch id={structured['id']}\n" in beside
    for name, value in structured["metadata"].items():
        (line,) = [line for line in beside.split("\n") if line.startswith(f"{name}: ")]
        if not name.startswith("data.") and (calls := printed_calls(f"{name}: {value}")):
            (call,) = calls
            value = SPELL(Continuation(call.tool, call.args, name))
        assert line.partition(": ")[2] in (str(value), json_line(value), str(value).lower())


@EVERY
def test_a_server_gives_the_text_of_the_store(
    at_store: Shell, at_server: Shell, tool: str, args: dict[str, Any]
) -> None:
    here, there = (one.ok(*words_of(tool, args)) for one in (at_store, at_server))
    told = [FENCE.sub("fence", f"{one.stdout}\n{one.stderr}") for one in (here, there)]
    if "Later hits score far lower" in told[0]:  # REST never cuts the tail
        _, *cards = told[0].partition("to read any field: ")[0].split("\n")
        assert told[1].split("\n")[1 : len(cards)] == cards[:-1]
        return
    assert told[0] == re.sub(r"^url: .*\n", "", told[1], flags=re.MULTILINE)


MISSING = "mail-work/messages:nobody"
ERRORS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("query_records", {**WORK, "limit": 0}, 2),
    ("query_records", {**WORK, "filter": {"body": "x"}}, 2),
    ("query_records", {**WORK, "cursor": "garbage"}, 2),
    ("query_records", {"stream": "secrets"}, 4),
    ("query_records", {"stream": "messages", "connection_id": "elsewhere"}, 5),
    ("search", {"query": "x", "streams": ["secrets"]}, 4),
    ("search", {"query": "x" * 501}, 2),
    ("search", {"query": "invoice", "cursor": "garbage"}, 2),
    ("aggregate", {**WORK, "metric": "median"}, 2),
    ("aggregate", {**WORK, "metric": "sum", "field": "body"}, 2),
    ("schema", {"detail": "full"}, 2),
    ("schema", {"stream": "secrets"}, 4),
    ("fetch", {"id": MISSING}, 5),
    ("fetch", {"id": "mail-work/messages:m_002", "fields": ["nothing"]}, 4),
    ("read_record_field", {"id": MISSING, "field_path": "body"}, 5),
    ("fetch", {"id": "messages:m_001"}, 1),
    ("read_record_field", {**LONG, "query": "zzyzx"}, 5),
    ("read_record_field", {**LONG, "match": 2}, 2),
    ("read_record_field", {"id": LONG_ID, "field_path": "nothing"}, 4),
)


@pytest.mark.parametrize(("tool", "args", "code"), ERRORS)
def test_errors_are_those_of_rest_with_an_exit_code_for_their_kind(
    small: Local, shell: Shell, tool: str, args: dict[str, Any], code: int
) -> None:
    result = shell.run(*words_of(tool, args), "--json")
    path, params = asked(tool, args)
    expected = small.api.rest(path, **params).body["error"]
    del expected["request_id"]
    assert (result.exit_code, result.stdout) == (code, "")
    assert orjson.loads(result.stderr)["error"] == expected


@pytest.mark.parametrize(("tool", "args", "code"), ERRORS)
def test_errors_as_text_teach_with_commands(
    small: Local, at_store: Shell, tool: str, args: dict[str, Any], code: int
) -> None:
    result, answer = at_store.run(*words_of(tool, args)), small.fails(tool, **args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.split("\n")[0] == answer.lines[0]
    for call in printed_calls(answer.text):
        command = SPELL(Continuation(call.tool, call.args, call.why))
        assert f"{call.why}: {command}" in result.stderr
        assert at_store.line(command).exit_code == 0


def test_without_a_good_token_nothing_is_read(at_store: Shell, at_server: Shell) -> None:
    for one in (at_store, at_server):
        for token, code in (("rung_unknown", "invalid_token"), ("", "authentication_error")):
            result = Shell({**one.environ, "RUNG_TOKEN": token}).run("search", "invoice")
            assert (result.exit_code, result.stdout) == (3, ""), result.output
            assert code in result.stderr


def test_the_source_that_was_named_is_in_every_printed_command(
    small: Local, small_house: House, at_server: Shell, tmp_path: Path
) -> None:
    bare = Shell({"RUNG_TOKEN": str(small.api.token), "RUNG_SECRET_KEY": "a secret of tests only"})
    for named in (
        ("--store", str(small_house.path)),
        ("--url", f"{at_server.environ['RUNG_URL']}/mcp"),
        ("--provider-url", at_server.environ["RUNG_URL"]),
    ):
        found = bare.ok("search", "invoice number", "--limit", "2", *named).stdout
        lines = [line for line in found.split("\n") if " rung " in line]
        assert all(line.endswith(" ".join(named)) for line in lines)
        reads = [line.partition(" rung ")[2] for line in lines if "<id of the hit>" not in line]
        assert len(reads) >= 2
        for command in reads:
            assert str(small.api.token) not in command
            assert bare.line(f"rung {command}").exit_code == 0
