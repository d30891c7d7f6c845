"""Every whole number in an argument has a bound. A number beyond it is refused by name.

REST clamps the limits that PDPP clamps.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from evidence.limits import CONTRACT
from service.cli.words import option_name
from service.operations import OPERATIONS
from service.ports.types import Number
from service.operations.papers import PAPER_OPERATIONS
from tests.helpers import worlds
from tests.helpers.api import Answer, Api, route_of
from tests.helpers.papers import DEEP_LEARNING, in_process
from tests.helpers.posting import legacy_body
from tests.helpers.shell import Shell, words_of
from tests.helpers.snapshots import DATA

BEYOND = (2**53, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63) - 1, -(10**30))
MAIL = {"stream": "messages", "connection_id": "mail-work"}
FIELD = {"id": "mail-work/messages:m1", "field_path": "body"}
#: A call of each operation that takes numbers.
CALLS: dict[str, dict[str, Any]] = {
    "query_records": MAIL,
    "aggregate": {**MAIL, "metric": "count", "group_by": "folder"},
    "search": {"query": "lantern"},
    "read_record_field": FIELD,
    "search_papers": {"query": "deep"},
    "search_papers_by_keyword": {"keyword": "learning"},
    "get_paper_summary": {"paper_id": DEEP_LEARNING},
    "get_paper_source": {"paper_id": DEEP_LEARNING},
    "list_top_facets": {"category": "author"},
}
NEEDS_QUERY = ("match", "before_chars", "after_chars")


def numbers(operations: Any) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """(operation, argument, a call without it) for every whole-number argument."""
    for operation in operations:
        for name, field in operation.arguments.fields.items():
            if isinstance(field, Number):
                more = {"query": "lantern"} if name in NEEDS_QUERY else {}
                yield operation, name, {**CALLS[operation.name], **more}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> worlds.House:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("large"))


@pytest.fixture(scope="module")
def records(house: worlds.House) -> Api:
    return house.api()


@pytest.fixture(scope="module")
def papers() -> Api:
    return in_process().api


def over_mcp(api: Api, tool: str, args: dict[str, Any]) -> dict[str, Any]:
    message = legacy_body("tools/call", {"name": tool, "arguments": args})
    answer = api.post(json.dumps(message).encode())  # orjson writes no such numbers
    result = answer.body["result"]
    assert answer.status == 200 and result["isError"], (tool, args, answer.body)
    error: dict[str, Any] = result["structuredContent"]["error"]
    return error


def over_rest(api: Api, operation: Any, args: dict[str, Any]) -> Answer:
    """The answer to the same call at its route."""
    if operation in OPERATIONS:
        where, params = route_of(operation.name, args)
        return api.rest(where, **params)
    inside = re.findall(r"<(\w+)>", operation.route.path)
    where = operation.route.path
    for part in inside:
        where = where.replace(f"<{part}>", str(args[part]))
    names = operation.rest_names
    return api.rest(where, **{names.get(k, k): v for k, v in args.items() if k not in inside})


@pytest.mark.parametrize("surface", ["records", "papers"])
def test_no_whole_number_is_too_large_to_be_refused(
    surface: str, request: pytest.FixtureRequest
) -> None:
    api = request.getfixturevalue(surface)
    for operation, name, call in numbers(OPERATIONS if surface == "records" else PAPER_OPERATIONS):
        for number in BEYOND:
            args = {**call, name: number}
            error = over_mcp(api, operation.name, args)
            assert (error["code"], error["param"]) == ("invalid_request", name), error
            answer = over_rest(api, operation, args)
            if number > 0 and name in operation.request.marked("clamped"):
                assert answer.status == 200 and "limit_clamped" in str(answer.body["meta"]), answer
                continue
            assert answer.status == 400 and answer.error["code"] == "invalid_request", answer
            spelled = operation.rest_names.get(name, name)
            assert answer.error["param"] == spelled and "Use" in answer.error["message"]


@pytest.mark.parametrize("surface", ["records", "papers"])
def test_the_largest_whole_number_is_answered(surface: str, request: pytest.FixtureRequest) -> None:
    api = request.getfixturevalue(surface)
    for operation, name, call in numbers(OPERATIONS if surface == "records" else PAPER_OPERATIONS):
        answer = over_rest(api, operation, {**call, name: CONTRACT.whole_number})
        assert answer.status in (200, 400, 404), answer


def test_a_limit_of_related_records_is_bounded_too(records: Api) -> None:
    for number in BEYOND:
        args = {**MAIL, "expand": ["attachments"], "expand_limit": {"attachments": number}}
        assert over_mcp(records, "query_records", args)["code"] == "invalid_expand"
        where, params = route_of("query_records", args)
        assert records.rest(where, **params).error["code"] == "invalid_expand"


def test_commands_refuse_them_as_wrong_usage(house: worlds.House) -> None:
    shell = Shell({**house.environment, "RUNG_TOKEN": house.grant()[1]})
    for operation, name, call in numbers(OPERATIONS):
        for number in BEYOND:
            refused = shell.run(*words_of(operation.name, {**call, name: number}))
            assert refused.exit_code == 2 and option_name(name) in refused.stderr, refused.output
    library = Shell({"RUNG_PAPERS_DB": str(DATA / "papers" / "snapshot.db")})
    for number in BEYOND:
        refused = library.run("papers", "facets", "author", "--offset", str(number))
        assert refused.exit_code == 2 and "--offset" in refused.stderr, refused.output
