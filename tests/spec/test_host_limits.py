"""Every result fits the hosts that cut long ones: both channels together, in any script."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from evidence.limits import BUDGETS, CONTRACT
from service.mcp.surface import PapersSurface, RecordsSurface
from tests.helpers import worlds

#: Under 25,000, at which Claude Code writes a result to a file; a token has at least 3 bytes.
TOKENS, BYTES_PER_TOKEN = 20_000, 3
#: From this many characters, Claude Code writes it to a file too, unless the tool has a hint.
PERSISTED_CHARS = 50_000
HINT = "anthropic/maxResultSizeChars"
#: A sentence in each kind of text; the last is JSON in which nearly every character is escaped.
TEXTS = {
    "ascii": "The invoice of the lighthouse keeper is 4711. ",
    "cjk": "灯台守の請求書は四七一一番です。来月までに支払う。",
    "escapes": '"\\"\\\\\\n\\t\\u0000" <&> \x1b\x07\u202e {"a": "\\\\\\"b\\\\\\""}, ',
}


def heavy_world(sentence: str) -> worlds.World:
    """120 records with a short, a medium, a long and a nested value."""
    fields = {
        **{name: worlds.text() for name in ("subject", "summary", "body")},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    notes = worlds.stream("notes", fields, query={"search": {"lexical_fields": [*fields][:3]}})
    rows = [
        worlds.row(
            "notes",
            f"{sentence[:4]}n{number}",
            subject=f"{sentence * 3}invoice {number}",
            summary=f"invoice {sentence * 12}",
            body=f"{sentence * 1_500} invoice {sentence * 1_500}",
            tags=[sentence] * 60,
        )
        for number in range(120)
    ]
    home = worlds.Connection("home", "notes", sentence[:20], (notes,), tuple(rows))
    return worlds.World((home,))


@pytest.mark.parametrize("kind", TEXTS)
def test_a_result_of_any_script_has_less_than_20_000_tokens(tmp_path: Path, kind: str) -> None:
    api = worlds.build(heavy_world(TEXTS[kind]), tmp_path).api()
    first = api.mcp("query_records", stream="notes", limit=1)
    (id,) = [row["id"] for row in first["structuredContent"]["content_ladder"]["records"]]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("schema", {}),
        ("schema", {"stream": "notes"}),
        ("schema", {"stream": "notes", "connection_id": "home", "detail": "full"}),
        ("query_records", {"stream": "notes", "limit": 100, "count": "exact"}),
        ("query_records", {"stream": "notes", "limit": 100, "changes_since": "beginning"}),
        ("aggregate", {"stream": "notes", "metric": "count", "group_by": "subject", "limit": 100}),
        ("search", {"query": "invoice", "limit": 100}),
        ("search", {"query": TEXTS[kind][:400], "limit": 100}),
        ("fetch", {"id": id}),
        ("read_record_field", {"id": id, "field_path": "tags", "limit_chars": 16_384}),
        ("read_record_field", {"id": id, "field_path": "body", "limit_chars": 16_384}),
        ("read_record_field", {"id": id, "field_path": "body", "query": "invoice"}),
        ("fetch", {"id": TEXTS[kind] * 100}),
    ]
    for tool, args in calls:
        result = api.mcp(tool, **args)
        text = sum(len(block["text"].encode()) for block in result["content"])
        size = text + len(orjson.dumps(result["structuredContent"]))
        assert size < TOKENS * BYTES_PER_TOKEN, (tool, args, size)


def test_the_budgets_of_both_channels_together_stay_below_20_000_tokens() -> None:
    together = BUDGETS.text_bytes + BUDGETS.structured_bytes
    assert together < TOKENS * BYTES_PER_TOKEN


def test_tools_whose_answers_may_be_longer_tell_hosts_so() -> None:
    tools = [*RecordsSurface().tools, *PapersSurface().tools]
    hints = {tool["name"]: tool["_meta"][HINT] for tool in tools if "_meta" in tool}
    assert hints.keys() == {"schema", "get_paper_summary", "get_paper_source"}
    assert hints["schema"] >= 2 * BUDGETS.schema_bytes
    assert hints["get_paper_summary"] > CONTRACT.summary_chars_max > PERSISTED_CHARS
    assert hints["get_paper_source"] > CONTRACT.source_chars_max
    assert BUDGETS.text_bytes < BUDGETS.structured_bytes < PERSISTED_CHARS
