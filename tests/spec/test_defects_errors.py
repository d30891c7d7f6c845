"""Refusals: at once, in both channels, and never for lack of something that cannot be given.

`defects.py` lists the promises.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import pytest
from flask import Flask
from jsonschema import Draft202012Validator

from service import bootstrap, settings
from service.app import create_app
from service.operations import OPERATIONS
from tests.helpers import worlds
from tests.helpers.api import Api
from tests.helpers.caller import Answer, Caller
from tests.helpers.loopback import Loopback, Reply, answering, as_json
from tests.helpers.posting import legacy_body
from tests.helpers.reading import printed_calls, structured_calls
from tests.helpers.remote import caller_of, opener
from tests.helpers.replay import Recorded, raw_body, refusals
from tests.helpers.sources import of_grants
from tests.helpers.worlds import House
from tests.spec.bad_calls import CASES, Bad
from tests.spec.defects import lacks

SCHEMAS: dict[str, dict[str, Any]] = {op.name: op.tool["inputSchema"] for op in OPERATIONS}
ARGUMENTS = {name: set(schema["properties"]) for name, schema in SCHEMAS.items()}
GOOD: dict[str, dict[str, Any]] = {
    "schema": {"stream": "messages"},
    "query_records": {"stream": "messages"},
    "aggregate": {"stream": "messages", "metric": "count"},
    "search": {"query": "lantern"},
    "fetch": {"id": "mail-work/messages:m1"},
    "read_record_field": {"id": "mail-work/messages:m1", "field_path": "body"},
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("errors"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[Loopback]:
    """A server, called or not; every test sets its answers."""
    with answering(lambda asked: Reply(503)) as server:
        yield server


def standing_before(server: Loopback, **more: str) -> Flask:
    """The whole application in front of this upstream."""
    found = {"RUNG_UPSTREAM_URL": server.url, "RUNG_SECRET_KEY": worlds.SECRET, **more}
    return create_app(bootstrap.build(settings.load(found)))


@lacks("D20")
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Accept": "text/event-stream"}, 405),
        ("DELETE", {}, 405),
        ("POST", {"Origin": "https://evil.example"}, 403),
        ("GET", {"Origin": "https://evil.example"}, 403),
    ],
)
def test_other_verbs_and_origins_are_refused_before_anybody_is_asked(
    upstream: Loopback, method: str, headers: dict[str, str], status: int
) -> None:
    before = len(upstream.asked)
    api = Api(standing_before(upstream), "at_a-client")
    body = orjson.dumps(legacy_body("tools/list"))
    answer = api.send(method, "/mcp", body, {"Content-Type": "application/json", **headers})
    assert answer.status == status and isinstance(answer.body, dict)
    assert len(upstream.asked) == before


@lacks("D20")
@pytest.mark.parametrize(
    ("audience", "status"), [("https://rung.example/mcp", 200), ("https://b.example/mcp", 401)]
)
def test_a_token_for_another_audience_is_refused(
    upstream: Loopback, audience: str, status: int
) -> None:
    said = {"active": True, "token_kind": "client", "aud": audience}
    upstream.answer = lambda asked: as_json(said)
    more = {
        "RUNG_AUDIENCE": "https://rung.example/mcp",
        "RUNG_INTROSPECTION_URL": f"{upstream.url}/introspect",
        "RUNG_INTROSPECTION_CLIENT_ID": "rung",
        "RUNG_INTROSPECTION_CLIENT_SECRET": "a secret of tests only",
    }
    api = Api(standing_before(upstream, **more), "at_a-client")
    assert api.post(orjson.dumps(legacy_body("tools/list"))).status == status
    assert upstream.asked[-1].target == "/introspect"


@lacks("D20")
def test_no_request_builds_a_schema_or_a_server_again(house: House) -> None:
    api = house.api()
    ran = set[tuple[str, str]]()

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            ran.add((f"{path.parent.name}/{path.name}", frame.f_code.co_name))

    def both(limit: int) -> None:
        api.rpc("tools/list", {})
        assert "isError" not in api.mcp("search", query="lantern", limit=limit)

    both(10)
    sys.setprofile(note)
    try:
        both(9)  # the same call would be answered from the cache
    finally:
        sys.setprofile(None)
    assert ("search/pages.py", "search") in ran
    built = {("bootstrap.py", "build"), ("schema.py", "__init__"), ("base.py", "tool")}
    assert not any(path.endswith("/json_schema.py") for path, _ in ran)
    assert not {found for found in ran if (found[0].rpartition("/")[2], found[1]) in built}


def odd_arguments() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(tool, wrong argument, arguments) for every argument of every tool."""
    for tool, schema in SCHEMAS.items():
        yield tool, "bogus", {**GOOD[tool], "bogus": 1}
        for name in schema.get("required", []):
            yield tool, name, {key: one for key, one in GOOD[tool].items() if key != name}
        for name, declared in schema["properties"].items():
            wrong: Any = "x" if declared["type"] == "object" else {"odd": ["x"]}
            yield tool, name, {**GOOD[tool], name: wrong}


@lacks("D21")
@pytest.mark.parametrize(("tool", "name", "args"), [*odd_arguments()])
def test_a_bad_argument_is_told_in_both_channels_with_what_to_do_and_asks_nobody(
    upstream: Loopback, tool: str, name: str, args: dict[str, Any]
) -> None:
    before = len(upstream.asked)
    answer = caller_of(opener(upstream.url, "full")).fails(tool, **args)
    assert len(upstream.asked) == before
    assert answer.error["code"] in ("invalid_request", "invalid_filter", "invalid_expand")
    assert answer.error["param"] == name and answer.error["message"] in answer.text
    taught = answer.error.get("hint") or answer.error["message"]
    assert f"{name}: " in taught or "it accepts " in taught or "did you mean" in taught


NAMED = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
#: Names in errors that are not arguments: members of answers, parts of an id, a metric.
TERMS = {"available_connections", "record_id", "count_distinct"}


def demands_nothing_strange(answer: Answer, tool: str, given: dict[str, Any]) -> None:
    """Fails unless an error asks only for arguments of the tool and names only real calls."""
    error = answer.error
    assert error.get("retry_with") in (None, *ARGUMENTS[tool])
    assert error.get("param") in (None, *ARGUMENTS[tool], *given)
    calls = printed_calls(answer.text)
    assert {call.key() for call in calls} == {c.key() for c in structured_calls(answer.structured)}
    for call in calls:
        Draft202012Validator(SCHEMAS[call.tool]).validate(call.args)


@lacks("D22")
@pytest.mark.parametrize("bad", CASES.values(), ids=CASES.keys())
def test_no_error_asks_for_an_argument_that_no_tool_takes(
    callers: tuple[Caller, Caller], bad: Bad
) -> None:
    for caller in callers:
        answer = caller.fails(bad.tool, **bad.args)
        demands_nothing_strange(answer, bad.tool, bad.args)
        said = f"{answer.error['message']} {answer.error.get('hint', '')}"
        granted = NAMED.findall(caller.ok("schema", stream="messages").text)
        known = TERMS.union(ARGUMENTS, *ARGUMENTS.values(), granted, bad.args)
        assert known.issuperset(NAMED.findall(said))


@pytest.fixture(scope="module")
def callers(house: House) -> tuple[Caller, Caller]:
    """Callers of two mailboxes as one grant, and as a package of three."""
    store, token = house.app.extensions["rung"].store, house.grant()[1]
    entries = {name: ({"connection_id": name},) for name in ("mail-home", "mail-work", "bank")}
    return caller_of(lambda: store.open(token)), caller_of(of_grants(house, entries))


@lacks("D22")
@pytest.mark.parametrize("found", refusals(), ids=lambda found: str(found["name"]))
def test_nor_does_one_that_an_upstream_says(upstream: Loopback, found: Recorded) -> None:
    upstream.answer = lambda asked: Reply(found["status"], raw_body(found), found["headers"])
    caller = caller_of(opener(upstream.url, "full"))
    for tool, args in GOOD.items():
        answer = caller.fails(tool, **args)
        assert answer.error.get("retry_with") in (None, *ARGUMENTS[tool])
        for call in printed_calls(answer.text):
            Draft202012Validator(SCHEMAS[call.tool]).validate(call.args)


@lacks("D22")
@pytest.mark.parametrize("told", ["source_id", {"field": "source_id", "guidance": "Choose one."}])
def test_nor_one_that_knows_arguments_of_its_own(upstream: Loopback, told: Any) -> None:
    error = {"code": "ambiguous_connection", "message": "Which of them?", "retry_with": told}
    error |= {"retry_arguments": {"source_id": "x"}}
    upstream.answer = lambda asked: as_json({"error": error}, 409)
    answer = caller_of(opener(upstream.url, "full")).fails("query_records", stream="messages")
    assert answer.error["code"] == "ambiguous_connection" and "retry_with" not in answer.error
    assert not printed_calls(answer.text)
