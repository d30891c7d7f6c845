"""What every client keeps in its context: the tool list, the instructions, and their size."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from evidence.limits import BUDGETS
from tests.helpers.caller import Local
from tests.helpers.reading import TOOLS
from tests.spec.scenarios import scenario

pytestmark = pytest.mark.slow

EVERYWHERE = ("type", "description", "properties", "required", "additionalProperties", "items")
BOUNDS = ("enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")


@pytest.fixture(scope="module")
def tools(small: Local) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = small.result("tools/list")["tools"]
    return found


@scenario("004/tools/exact-set", "004/footprint/budget-and-members")
def test_there_are_exactly_these_six_tools_in_this_order(tools: list[dict[str, Any]]) -> None:
    names = tuple(tool["name"] for tool in tools)
    assert names == TOOLS
    assert not {"list_streams", "fetch_blob"} & set(names)
    assert not any("event" in name or "subscri" in name for name in names)


@scenario("004/footprint/budget-and-members")
def test_the_whole_list_stays_inside_its_budget(small: Local) -> None:
    size = len(orjson.dumps(small.result("tools/list")))
    assert size <= BUDGETS.tools_list_bytes == 9_216, f"tools/list has {size} bytes"


@scenario("002/endpoint/tools-explain-themselves")
def test_each_tool_has_a_title_and_says_what_it_is_for(tools: list[dict[str, Any]]) -> None:
    assert len({tool["title"] for tool in tools}) == len(tools)
    for tool in tools:
        assert tool["title"] == tool["annotations"]["title"]
        assert 80 <= len(tool["description"]) <= 400, tool["name"]
        assert tool["annotations"]["readOnlyHint"] is True
        assert "outputSchema" not in tool
        for name, schema in tool["inputSchema"]["properties"].items():
            assert schema["description"], (tool["name"], name)


@scenario("004/tools/connection-id-only")
def test_every_tool_takes_connection_id_and_none_its_deprecated_name(
    tools: list[dict[str, Any]],
) -> None:
    for tool in tools:
        properties = tool["inputSchema"]["properties"]
        assert properties["connection_id"]["type"] == "string"
        assert "connection_id" not in tool["inputSchema"].get("required", [])
    assert b"connector_instance_id" not in orjson.dumps(tools)


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and those of its properties and items."""
    yield schema
    for inner in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
        yield from schemas(inner)


def test_input_schemas_keep_to_the_subset_every_vendor_takes(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        schema = tool["inputSchema"]
        Draft202012Validator.check_schema(schema)
        assert "additionalProperties" not in schema
        for part in schemas(schema):
            assert set(part) <= {*EVERYWHERE, *BOUNDS}, (tool["name"], part)
            assert isinstance(part["type"], str), (tool["name"], part)
            assert part["type"] != "object" or part["properties"], (tool["name"], part)
            assert part.get("additionalProperties") is None or part["additionalProperties"] == {}


def test_the_first_512_characters_of_the_instructions_stand_alone(small: Local) -> None:
    result = small.result(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    )
    instructions: str = result["instructions"]
    first = instructions[:512]
    for name in ("schema", "search", "query_records", "aggregate", "read_record_field"):
        assert name in first, f"{name} is named too late"
    assert "untrusted" in instructions and "connection_id" in instructions
    assert first.endswith((".", ".\n")) or first.rfind(". ") > 380, "a sentence ends near the cut"
    assert len(instructions) <= 1_500


def test_the_list_is_the_same_for_every_token(small: Local, demo: Local) -> None:
    assert small.result("tools/list") == demo.result("tools/list")


def test_an_unknown_argument_is_refused_with_the_nearest_name(small: Local) -> None:
    for given in ({"streem": "messages"}, {"stream": "messages", "limits": 3}):
        answer = small.fails("query_records", **given)
        name = "stream" if "streem" in given else "limit"
        assert answer.error["did_you_mean"] == [name]
        assert f"did_you_mean: {name}" in answer.text


def test_null_counts_as_absent_in_every_argument(small: Local, tools: list[dict[str, Any]]) -> None:
    required = {
        "query_records": {"stream": "notes"},
        "aggregate": {"stream": "notes", "metric": "count"},
        "search": {"query": "flow"},
        "fetch": {"id": "notes/notes:phrase"},
        "read_record_field": {"id": "notes/notes:phrase", "field_path": "text"},
    }
    for tool in tools:
        given = required.get(tool["name"], {})
        nulls = {name: None for name in tool["inputSchema"]["properties"] if name not in given}
        assert small.ok(tool["name"], **given, **nulls).text == small.ok(tool["name"], **given).text
