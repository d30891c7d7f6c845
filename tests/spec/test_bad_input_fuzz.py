"""Random calls: with any arguments, never a 5xx, never -32603, and both surfaces agree."""

import base64
import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evidence import handles
from service.operations import OPERATIONS
from tests.helpers import worlds
from tests.helpers.api import Api, path, record_path
from tests.helpers.posting import legacy_body
from tests.helpers.scale import times
from tests.helpers.uris import record_uri
from tests.spec.bad_calls import ID, STATUS

pytestmark = pytest.mark.slow

CODES = {*STATUS, "invalid_argument", "blob_not_found"}
ARGUMENTS = {operation.name: list(operation.arguments.fields) for operation in OPERATIONS}
REF = handles.parse(ID)

#: Words that get a call past its first checks.
WORDS = st.sampled_from(
    ["messages", "threads", "attachments", "transactions", "mail-work", "mail-home", "bank"]
    + ["id", "body", "subject", "size", "folder", "unread", "received_at", "-received_at", "file"]
    + ["amount", "payee", "headers", "/headers/to/0/name", "/body", "/", "beginning", "basic"]
    + ["count", "sum", "min", "max", "count_distinct", "exact", "full", "day", "week", "minute"]
    + ["lantern", '"the lantern"', "lant*", "-work lantern", "quorum elm", "Europe/Berlin"]
    + [ID, "mail-work/messages:long", "messages:m1", "threads:t1", "mail-work/attachments:a0"]
    + [record_uri(REF), handles.field_window_uri(REF, "body", q="lantern", match=2)]
)
NUMBERS = st.integers(-2, 120) | st.sampled_from(
    [2**31, 2**53, 2**63, 2**64, -(2**63), 10**30, 1e308, 5.0, 0.5, -0.0]
)
SCALARS = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(WORDS | st.text(), inner, max_size=3),
    max_leaves=6,
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "stream": st.just("messages") | WORDS,
    "connection_id": st.just("mail-work") | WORDS,
    "id": st.just(ID) | WORDS,
    "fields": st.lists(WORDS, min_size=1, max_size=3),
    "streams": st.lists(WORDS, min_size=1, max_size=2),
    "expand": st.lists(st.sampled_from(["attachments", "messages"]), min_size=1),
    "filter": st.dictionaries(
        WORDS,
        SCALARS | st.dictionaries(st.sampled_from(["gte", "gt", "lte", "lt", "x"]), SCALARS),
        min_size=1,
        max_size=2,
    ),
    "expand_limit": st.dictionaries(WORDS, NUMBERS, min_size=1, max_size=1),
    "limit": NUMBERS,
    "match": NUMBERS,
    "offset_chars": NUMBERS,
}


def arguments_of(tool: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a tool: mostly plausible values, sometimes anything, sometimes other names."""
    declared = {name: LIKELY.get(name, WORDS) | VALUES for name in ARGUMENTS[tool]}
    some = st.fixed_dictionaries({}, optional=declared)
    wild = st.dictionaries(st.text(max_size=8), VALUES, max_size=2)
    return some | st.builds(lambda one, two: {**one, **two}, some, wild)


def encoded(handle: dict[str, Any]) -> str:
    """A handle as it appears in URIs."""
    return base64.urlsafe_b64encode(json.dumps(handle).encode()).decode().rstrip("=")


CALLS = st.sampled_from(sorted(ARGUMENTS)).flatmap(
    lambda tool: st.tuples(st.just(tool), arguments_of(tool))
)
PARAMETERS = st.sampled_from(
    sorted({name for names in ARGUMENTS.values() for name in names})
    + ["q", "field", "order", "window", "connector_id", "connector_instance_id", "subject_id"]
    + ["filter[size]", "filter[size][gte]", "filter[received_at][lt]", "filter[]", "fields[]"]
    + ["expand_limit[attachments]", "expand[]", "streams[]", "filter[folder][x][y]", "filter[["]
)
QUERIES = st.lists(
    st.tuples(PARAMETERS | st.text(max_size=6), (SCALARS | WORDS).map(str)), max_size=5
)
SEGMENTS = WORDS | st.text(min_size=1, max_size=8)
PATHS = st.one_of(
    st.sampled_from(
        ["/v1/schema", "/v1/streams", "/v1/connectors", "/v1/search", path("messages", "records")]
        + [path("messages", "aggregate"), record_path("messages", "m1"), path("messages")]
        + [record_path("messages", "m1", "field-window"), "/v1/blobs/text-work"]
    ),
    st.builds(record_path, SEGMENTS, SEGMENTS),
    st.builds(lambda s, r: record_path(s, r, "field-window"), SEGMENTS, SEGMENTS),
    st.builds(lambda s: f"/v1/blobs/{quote(s, safe='')}", SEGMENTS),
    st.builds(path, SEGMENTS),
)
SCHEMES = (handles.RECORD_SCHEME, handles.FIELD_WINDOW_SCHEME, handles.STREAM_SCHEME)
HANDLES = st.dictionaries(
    st.sampled_from(["stream", "record_id", "connection_id", "field_path", "q", *LIKELY]),
    st.none() | WORDS | st.integers(-2, 2**53) | st.booleans() | st.lists(WORDS, max_size=1),
).map(lambda found: encoded({"v": 1, "kind": "field-window", **found}))
URIS = st.text() | st.builds(
    str.__add__, st.sampled_from(SCHEMES), st.text() | WORDS | WORDS.map(quote) | HANDLES
)
ANY = settings(deadline=None, max_examples=times(250, 80), suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return worlds.build(worlds.two_mailboxes(), tmp_path_factory.mktemp("fuzz")).api()


@ANY
@given(call=CALLS)
@example(call=("read_record_field", {"id": ID, "field_path": "body", "query": "x", "match": 2**63}))
def test_any_tool_call_is_answered(api: Api, call: tuple[str, dict[str, Any]]) -> None:
    tool, args = call
    body = json.dumps(legacy_body("tools/call", {"name": tool, "arguments": args}))
    answer = api.post(body.encode("utf-8", "surrogatepass"))
    if answer.status != 200:
        assert (answer.status, answer.body["error"]["code"]) == (400, -32700)
        return
    result = answer.body["result"]
    assert result["content"][0]["text"] and result["structuredContent"]
    if result.get("isError"):
        assert result["structuredContent"]["error"]["code"] in CODES


@ANY
@given(target=PATHS, query=QUERIES)
@example(target="/v1/search", query=[("filter", "a"), ("filter[b]", "c")])
@example(
    target=record_path("messages", "m1"), query=[("expand_limit", "1"), ("expand_limit[a]", "1")]
)
def test_any_address_is_answered(api: Api, target: str, query: list[tuple[str, str]]) -> None:
    answer = api.get(f"{target}?{urlencode(query, errors='replace')}")
    assert answer.status < 500, answer
    if answer.status >= 400:
        assert answer.error["code"] in CODES, answer.error
        assert answer.error["message"]


@ANY
@given(uri=URIS)
def test_any_uri_is_answered(api: Api, uri: str) -> None:
    found = api.rpc("resources/read", {"uri": uri})
    assert "result" in found or found["error"]["code"] in (-32002, -32602), found
