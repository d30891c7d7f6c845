"""Random calls on papers: any arguments get an answer or a refusal, of bounded size."""

import json
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evidence.limits import CONTRACT
from service.operations.papers import PAPER_OPERATIONS
from tests.helpers.api import Api
from tests.helpers.papers import ATTENTION, DEEP_LEARNING, NO_SOURCE, NO_SUMMARY, papers_app
from tests.helpers.posting import JSON, legacy_body
from tests.helpers.scale import times
from tests.helpers.snapshots import DATA

pytestmark = pytest.mark.slow

ARGUMENTS = {operation.name: list(operation.arguments.fields) for operation in PAPER_OPERATIONS}
BY_NAME = {operation.name: operation for operation in PAPER_OPERATIONS}
TEXT_BYTES, STRUCTURED_BYTES = 24_576, 40_960
READS = {"get_paper_summary": CONTRACT.summary_chars_max, "get_paper_source": 50_000}
CODES = {
    *("invalid_request", "invalid_query", "invalid_cursor", "invalid_window", "cursor_expired"),
    *("paper_not_found", "ambiguous_paper", "template_not_available", "source_not_available"),
    *("translation_not_available",),
}

WORDS = st.sampled_from(
    ["attention", '"deep learning"', "transform*", "-survey attention", "注意力机制", "한국어"]
    + ["title:attention", 'author:"yann lecun"', "year:2015..", "-venue:nature x", "tag:slam"]
    + ["10.1038/nature14539", "1706.03762", "Deep learning", "schölkopf", "русский", "AND", "*"]
    + [
        "NEAR(a b)",
        "a OR b",
        '"',
        "%",
        "_",
        "title:",
        "author:",
        "-",
        "--",
        "\\",
        "ß",
        "İ",
        "\u202e",
    ]
    + [ATTENTION, DEEP_LEARNING, NO_SOURCE, NO_SUMMARY, "../x", "simple", "deep_read", "zh", "ja"]
    + ["author", "tag", "language", "0123456789.10", "x" * 500, "学" * 501, "\0", "a\nb", "e\u0301"]
)
NUMBERS = st.integers(-2, 120) | st.sampled_from(
    [9_990, 10_000, 10_001, 50_000, 50_001, 100_000, 100_001, 340_736, 340_737]
    + [2**31, 2**53, 2**63, 2**64, -(2**63), 10**30, 1e308, 5.0, 0.5, -0.0]
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(WORDS | st.text(), inner, max_size=2),
    max_leaves=4,
)
PAPERS = st.sampled_from([ATTENTION, DEEP_LEARNING, NO_SOURCE, NO_SUMMARY, "1706.03762"])
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "paper_id": PAPERS,
    "query": WORDS | st.text(max_size=40),
    "keyword": WORDS | st.text(max_size=10),
    "category": st.sampled_from(["author", "venue", "keyword", "tag", "year", "language"]),
    "template": st.sampled_from(["simple", "deep_read"]),
    "lang": st.sampled_from(["zh", "JA"]),
    "outline": st.booleans(),
    "limit": st.integers(1, 100),
    "max_chars": st.integers(1, 100_000),
    "offset_chars": st.integers(0, 340_736),
}


def arguments_of(tool: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a tool: mostly plausible values, sometimes anything, sometimes other names."""
    declared = {name: LIKELY.get(name, NUMBERS) | VALUES for name in ARGUMENTS[tool]}
    some = st.fixed_dictionaries({}, optional=declared)
    needed, *others = (name for name in ARGUMENTS[tool] if name in LIKELY)
    likely = {name: LIKELY[name] for name in others}
    good = st.fixed_dictionaries({needed: LIKELY[needed]}, optional=likely)
    wild = st.dictionaries(st.text(max_size=8), VALUES, max_size=2)
    return good | some | st.builds(lambda one, two: {**one, **two}, some, wild)


CALLS = st.sampled_from(sorted(ARGUMENTS)).flatmap(
    lambda tool: st.tuples(st.just(tool), arguments_of(tool))
)
quiet = settings(
    max_examples=times(250, 80),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def api() -> Api:
    return Api(papers_app(DATA / "papers" / "snapshot.db"), None)


def post(api: Api, method: str, params: Any) -> dict[str, Any]:
    """The JSON-RPC answer. Numbers of any size are sent unchanged."""
    body = json.dumps(legacy_body(method, params)).encode()
    answer = api.send("POST", "/mcp", body, JSON)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.body
    return found


@quiet
@given(call=CALLS)
@example(call=("search_papers", {"query": "the", "limit": 100}))
@example(call=("list_top_facets", {"category": "author", "offset": 2**63}))
@example(call=("get_paper_source", {"paper_id": DEEP_LEARNING, "max_chars": 50_000}))
@example(call=("get_paper_source", {"paper_id": DEEP_LEARNING, "outline": True}))
@example(call=("get_paper_source", {"paper_id": DEEP_LEARNING, "query": "the"}))
def test_a_tool_answers_or_says_what_is_wrong_within_its_size(
    api: Api, call: tuple[str, dict[str, Any]]
) -> None:
    tool, args = call
    answer = post(api, "tools/call", {"name": tool, "arguments": args})
    assert "error" not in answer, answer
    result = answer["result"]
    if result.get("isError"):
        error = result["structuredContent"]["error"]
        assert error["code"] in CODES and error["message"]
        assert result["content"][0]["text"].startswith(f"error code={error['code']}")
    body = result["content"][0]["text"] if len(result["content"]) > 1 else ""
    texts = "".join(block["text"] for block in result["content"])
    assert len(body) <= READS.get(tool, 0) + 40
    assert len(texts.encode()) - len(body.encode()) <= TEXT_BYTES
    structured = {**result["structuredContent"], "text": ""}
    assert len(orjson.dumps(structured)) <= STRUCTURED_BYTES


URIS = st.builds(
    lambda paper, kind, name, query: f"paper://{paper}/{kind}{name}{query}",
    PAPERS.map(quote) | WORDS.map(lambda word: quote(word, safe="")) | st.text(max_size=8),
    st.sampled_from(["metadata", "summary", "source", "translation", "pdf", ""]),
    st.sampled_from(["", "/zh", "/simple", "/no_such", "/", "/..", "//"]) | st.text(max_size=5),
    st.sampled_from(["", "?offset_chars=5", "?offset_chars=-1", "?x=1", "?", "#a"]),
)


@quiet
@given(uri=URIS | st.text(max_size=30))
def test_a_resource_is_read_or_says_what_is_wrong(api: Api, uri: str) -> None:
    answer = post(api, "resources/read", {"uri": uri})
    if "error" in answer:
        assert answer["error"]["code"] in (-32002, -32602)
        assert answer["error"]["data"]["code"] in {*CODES, "not_found"}
        assert answer["error"]["data"]["uri"] == uri
    else:
        contents = answer["result"]["contents"]
        assert sum(len(content["text"]) for content in contents) <= 51_000


@quiet
@given(call=CALLS)
def test_a_route_answers_or_says_what_is_wrong(api: Api, call: tuple[str, dict[str, Any]]) -> None:
    tool, args = call
    operation, left = BY_NAME[tool], dict(args)
    path = operation.route.path
    for name in ("paper_id", "category"):
        if f"<{name}>" in path:
            value = quote(str(left.pop(name, "x")), safe="") or "x"
            path = path.replace(f"<{name}>", value)
    named = {operation.rest_name(name): value for name, value in left.items()}
    pairs = [
        (name, str(value).lower() if isinstance(value, bool) else value)
        for name, value in named.items()
        if value is not None
    ]
    answer = api.get(f"{path}?{urlencode(pairs)}")
    assert answer.status in (200, 400, 404, 409, 410), answer
    if answer.status != 200:
        assert answer.error["code"] in {*CODES, "not_found"} and answer.error["message"]
