"""No answer passes its limits, whatever names, ids, values and relations a stream has."""

from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from evidence.limits import BUDGETS
from tests.helpers import worlds
from tests.helpers.reading import printed_calls

FIELDS, RELATIONS, NOTES = 100, 50, 30
NOT_THERE = ("field_not_found", "query_not_found")
#: What names and ids consist of; the last ones need escapes in ids and in JSON.
ALPHABETS = ("n", "ä", "日", 'q"', "% /")


def wide_world(random: Random, letters: str) -> worlds.World:
    """A stream with 100 long fields and 50 long relations to a stream of long ids."""
    size = 60 // len(letters.encode())
    stem = (letters * 64)[: size * len(letters) - 4]
    names = [f"{stem[: len(stem) // 2]}{n:03}" for n in range(FIELDS)]
    relations = [f"{stem[: len(stem) // 2]}r{n:03}" for n in range(RELATIONS)]
    fields = {name: worlds.text() for name in names}
    query = {
        "expand": [{"name": name, "default_limit": 3, "max_limit": 50} for name in relations],
        "search": {"lexical_fields": names[:3]},
    }
    pages = worlds.stream(
        "pages",
        fields,
        query=query,
        relationships=[worlds.relation(name, "notes", "page") for name in relations],
    )
    notes = worlds.stream("notes", {"page": worlds.text()})
    ids = [f"{(letters * 500)[: 440 // len(letters.encode()) * len(letters)]}{n}" for n in range(4)]
    rows = [
        worlds.row(
            "pages",
            key,
            **{
                name: (letters + "word ") * random.choice([1, 1, 9, 400, 4_000])
                for name in names
                if random.random() < 0.9
            },
        )
        for key in ids
    ]
    rows += [
        worlds.row("notes", f"{ids[0][:-1]}-{n}", page=random.choice(ids)) for n in range(NOTES)
    ]
    return worlds.World(
        (worlds.Connection("c" * 60, "wide", "A label", (pages, notes), tuple(rows)),)
    )


@pytest.mark.parametrize("letters", ALPHABETS)
def test_the_longest_names_and_ids_stay_within_the_limits(tmp_path: Path, letters: str) -> None:
    random = Random(letters)
    drawn = wide_world(random, letters)
    api = worlds.build(drawn, tmp_path).api()
    (connection,) = drawn.connections
    names = [*connection.streams[0]["schema"]["properties"]][1:]
    relations = [one["name"] for one in connection.streams[0]["relationships"]]
    listed = api.mcp("query_records", stream="pages", limit=4, fields=names[:1])
    ids = [one["id"] for one in listed["structuredContent"]["content_ladder"]["records"]]
    calls: list[tuple[str, dict[str, Any]]] = []
    for limit in (1, 2, 4):
        for shown in (names, names[:40], relations and None):
            for expanded in (None, relations, relations[:7]):
                args: dict[str, Any] = {"fields": shown, "expand": expanded}
                args = {name: value for name, value in args.items() if value}
                calls.append(("query_records", {"stream": "pages", "limit": limit, **args}))
                calls.append(("fetch", {"id": ids[limit - 1], **args}))
                many = {name: 50 for name in expanded or ()}
                if many:
                    calls.append(("fetch", {"id": ids[0], **args, "expand_limit": many}))
    for name in names[:12]:
        window = {"offset_chars": 2_000, "limit_chars": 16_384}
        calls.append(("read_record_field", {"id": ids[0], "field_path": name, **window}))
        query = {"query": "word " * 90 + '"word"', "limit_chars": 16_384}
        calls.append(("read_record_field", {"id": ids[1], "field_path": name, **query}))
    for tool, args in calls:
        result = api.mcp(tool, **args)
        if result.get("isError"):
            assert result["structuredContent"]["error"]["code"] in NOT_THERE, result
            continue
        text = sum(len(block["text"].encode()) for block in result["content"])
        data = len(orjson.dumps(result["structuredContent"]))
        assert (text <= BUDGETS.text_bytes, data <= BUDGETS.structured_bytes) == (True, True), (
            tool,
            list(args),
            text,
            data,
        )
        for call in printed_calls(result["content"][0]["text"])[:3]:
            assert "isError" not in api.mcp(call.tool, **call.args), call
