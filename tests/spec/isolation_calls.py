"""Random grants over the world of canaries, random calls to every surface, and their answers."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from evidence import handles
from evidence.errors import EvidenceError
from evidence.handles import RecordRef
from tests.helpers import canaries
from tests.helpers.api import Answer, Api, path, route_of
from tests.helpers.canaries import (
    BLOBS,
    CONNECTIONS,
    FIELDS,
    LEDGER,
    NOTES,
    RELATIONS,
    TASKS,
    VIEWS,
)
from tests.helpers.uris import record_uri, stream_uri

PLAN = canaries.plan()
STREAMS = {one["id"]: [s["name"] for s in one["streams"]] for one in PLAN["connections"]}
PLACES = [(one["id"], row[0], row[1]) for one in PLAN["connections"] for row in one["rows"]]
KEYS = sorted({row[1] for one in PLAN["connections"] for row in one["rows"]})
NAMES = sorted({name for fields in FIELDS.values() for name in fields.values()})
FOLLOWED = 3
FENCE = re.compile(r"(?<=<<<)[0-9a-f]{12}|[0-9a-f]{12}(?=>>>)")


@dataclass(frozen=True)
class Call:
    """A tool call, made over MCP and REST; or one address; or one resource."""

    kind: str
    name: str
    args: dict[str, Any]

    @property
    def said(self) -> str:
        """The text that the caller sends, which answers may repeat."""
        return json.dumps([self.name, self.args])


# -- grants ---------------------------------------------------------------------------------------


@st.composite
def grants(draw: Any) -> list[dict[str, Any]]:
    """Entries of a grant: some streams with some fields each, perhaps limited by time or record.

    One in three is a whole connection with all fields and limits, because it has many joins.
    """
    pairs = [(name, stream) for name in CONNECTIONS for stream in STREAMS[name]]
    if draw(st.integers(0, 2)) == 0:
        name = draw(st.sampled_from(CONNECTIONS))
        return [draw(_entry(name, stream, True)) for stream in STREAMS[name]]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=5, unique=True))
    return [draw(_entry(*pair)) for pair in chosen]


@st.composite
def _entry(draw: Any, connection: str, stream: str, whole: bool = False) -> dict[str, Any]:
    fields = list(FIELDS[stream].values())
    some = st.lists(st.sampled_from(fields), min_size=1, unique=True)
    shown = fields if whole else draw(st.just(fields) | some)
    entry = {"connection_id": connection, "stream": stream, "fields": shown}
    if draw(st.integers(0, 3)) <= whole:
        bounds = draw(st.sampled_from([("since",), ("until",), ("since", "until")]))
        months = {"since": draw(st.integers(1, 3)), "until": draw(st.integers(3, 6))}
        entry["time_constraint"] = {name: f"2026-0{months[name]}-15" for name in bounds}
    if draw(st.integers(0, 3)) == 0:
        own = [k for c, s, k in PLACES if (c, s) == (connection, stream)]
        entry["resources"] = draw(st.lists(st.sampled_from(own), min_size=1, unique=True))
    return entry


# -- calls ----------------------------------------------------------------------------------------


def _typed(words: list[str]) -> st.SearchStrategy[str]:
    """One of the words, sometimes mistyped, to get a suggestion."""
    exact = st.sampled_from(words)
    return st.one_of(exact, exact, exact, exact.map(lambda word: word[:-1]))


CONNECTION = _typed(list(CONNECTIONS))
STREAM = st.sampled_from([NOTES] * 4 + [TASKS, LEDGER]) | _typed([NOTES, TASKS, LEDGER])
FIELD = _typed(NAMES)
KEY = _typed(KEYS)
EXTRA = [canaries.word("text", "extra", c, NOTES, n, 0) for c in CONNECTIONS for n in range(5)]
BODIES = [canaries.word("text", "body", c, NOTES, n, 0) for c in CONNECTIONS for n in range(5)]
BULK = [canaries.word("big", c, NOTES, 3, 20) for c in CONNECTIONS]
ENUM = [canaries.word("enum", c, n) for c in CONNECTIONS for n in range(2)]
SINGLE = st.sampled_from(["common", "filler", "bulk", "comm*", '"common common"', "zq*"] + BULK)
TERM = SINGLE | _typed(EXTRA + BODIES)
OTHER = st.sampled_from(["bulk", "bulk", "filler"]) | _typed(EXTRA + BODIES)
EXCLUDING = st.builds(lambda wanted, other: f"{wanted} -{other}", SINGLE, OTHER)
QUERY = TERM | TERM | EXCLUDING
LIMIT = st.sampled_from([1, 2, 5, 100])
KIND, AMOUNT, FLAG, AT = (FIELDS[NOTES][name] for name in ("kind", "amount", "flag", "at"))
FILTER = st.one_of(
    st.builds(lambda value: {KIND: value}, _typed(ENUM)),
    st.builds(lambda value: {AMOUNT: {"gte": value}}, st.integers(1_000, 1_200)),
    st.builds(lambda month: {AT: {"lt": f"2026-0{month}-01"}}, st.integers(1, 6)),
    st.builds(lambda value: {FLAG: value}, st.booleans()),
    st.builds(lambda name, value: {name: value}, FIELD, KEY),
)
HANDLE = st.builds(
    lambda c, s, k: str(RecordRef(s, k, c)), CONNECTION | st.none(), STREAM, KEY | st.just(KEYS[0])
)
POINTER = st.builds(
    lambda name, rest: name if rest is None else f"/{name}{rest}",
    FIELD,
    st.sampled_from([None, "", "/k", "/deep/0/x", "/deep", "/blob_id", "/0"]),
)


def _args(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


def calls(query: st.SearchStrategy[str] = QUERY) -> st.SearchStrategy[Call]:
    """Calls to every tool and every route; searches are for `query`."""
    fields = st.lists(FIELD, min_size=1, max_size=2)
    relations = st.lists(st.sampled_from(list(RELATIONS.values())), min_size=1, max_size=2)
    limits = st.dictionaries(_typed(list(RELATIONS.values())), st.integers(1, 60), min_size=1)
    options: dict[str, st.SearchStrategy[Any]] = {
        "fields": fields,
        "filter": FILTER,
        "sort": FIELD | FIELD.map("-".__add__),
        "count": st.just("exact"),
        "view": _typed(list(VIEWS.values())),
        "expand": relations,
        "expand_limit": limits,
    }
    listing = st.one_of(
        *(
            _args({"stream": STREAM, name: option}, connection_id=CONNECTION, limit=LIMIT)
            for name, option in options.items()
        ),
        _args({"stream": STREAM}, **options),
    )
    simple = _args({"stream": STREAM}, connection_id=CONNECTION, limit=LIMIT, filter=FILTER)
    changes = _args(
        {"stream": STREAM, "changes_since": st.just("beginning")},
        connection_id=CONNECTION,
        fields=fields,
        limit=LIMIT,
    )
    metrics = st.sampled_from(["sum", "min", "max", "count_distinct"])
    names = st.sampled_from([KIND, AMOUNT, FLAG, AT]) | FIELD
    figures = st.one_of(
        _args({"metric": st.just("count")}, group_by=names, limit=LIMIT),
        _args({"metric": metrics, "field": names}),
        _args(
            {"metric": st.just("count"), "group_by_time": st.just(AT) | FIELD},
            granularity=st.sampled_from(["day", "month"]),
        ),
    )
    scope = _args({"stream": STREAM}, connection_id=CONNECTION, filter=FILTER)
    searches = _args(
        {"query": query},
        streams=st.lists(STREAM, min_size=1, max_size=2),
        connection_id=CONNECTION,
        filter=FILTER,
        limit=LIMIT,
    )
    window = _args({"query": query}, match=st.integers(1, 3), before_chars=st.integers(0, 400))
    offset = _args({}, offset_chars=st.integers(0, 90_000), limit_chars=st.integers(1, 16_384))
    reads = st.builds(
        lambda id, name, more: {"id": id, "field_path": name, **more},
        HANDLE,
        POINTER,
        window | offset,
    )
    schemas = _args(
        {}, stream=STREAM, connection_id=CONNECTION, detail=st.sampled_from(["compact", "full"])
    )
    fetches = _args({"id": HANDLE, "expand": relations}) | _args({"id": HANDLE}, fields=fields)
    tools: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "schema": schemas,
        "query_records": st.one_of(listing, listing, simple, changes),
        "aggregate": st.builds(lambda one, two: {**one, **two}, scope, figures),
        "search": searches | _args({"query": query}, limit=LIMIT),
        "fetch": fetches | _args({"id": HANDLE}),
        "read_record_field": reads,
    }
    asked = [
        args.map(lambda found, tool=tool: Call("mcp", tool, found)) for tool, args in tools.items()
    ]
    return st.one_of(*asked, *asked, _addresses(), _resources())


def aimed(call: Call, entry: dict[str, Any]) -> Call:
    """The same call about the stream of a grant's entry, so that it passes the first checks."""
    where = {"stream": entry["stream"], "connection_id": entry["connection_id"]}
    if "id" in call.args:
        ref = handles.parse(call.args["id"])
        own = RecordRef(entry["stream"], ref.record_id, entry["connection_id"])
        return Call(call.kind, call.name, {**call.args, "id": str(own)})
    if "stream" in call.args:
        return Call(call.kind, call.name, {**call.args, **where})
    return call


@st.composite
def worlds_of_calls(
    draw: Any, query: st.SearchStrategy[str] = QUERY
) -> tuple[list[dict[str, Any]], list[Call]]:
    """A grant, and calls that are mostly about what it shows."""
    entries = draw(grants())
    found = []
    for call in draw(st.lists(calls(query), min_size=4, max_size=12)):
        near = draw(st.integers(0, 3)) > 0
        found.append(aimed(call, draw(st.sampled_from(entries))) if near else call)
    return entries, found


def _addresses() -> st.SearchStrategy[Call]:
    where = _args({}, connection_id=CONNECTION)
    blobs = _typed(list(BLOBS) + [canaries.word("blob", c, n) for c in CONNECTIONS for n in (2, 3)])
    routes = st.one_of(
        st.just("/v1/connectors"),
        st.just("/v1/streams"),
        st.just("/v1/schema"),
        st.builds(path, STREAM),
        blobs.map("/v1/blobs/".__add__),
    )
    spanned = _args({"window": st.just("exact")}, order=st.just("asc"), connection_id=CONNECTION)
    lists = st.builds(lambda s, args: Call("rest", path(s, "records"), args), STREAM, spanned)
    return st.builds(lambda route, args: Call("rest", route, args), routes, where) | lists


def _resources() -> st.SearchStrategy[Call]:
    refs = st.builds(lambda c, s, k: RecordRef(s, k, c), CONNECTION, STREAM, KEY)
    uris = st.one_of(
        refs.map(record_uri),
        st.builds(handles.field_window_uri, refs, FIELD),
        st.builds(stream_uri, STREAM, CONNECTION | st.none()),
        st.builds(lambda id: handles.RECORD_SCHEME + quote(id, safe=""), HANDLE),
    )
    return uris.map(lambda uri: Call("read", uri, {}))


# -- answers --------------------------------------------------------------------------------------


def ask(api: Api, call: Call) -> list[Answer]:
    """The answers of every surface that accepts the call."""
    if call.kind == "read":
        body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": call.name}}
        return [api.post(json.dumps(body).encode())]
    if call.kind == "rest":
        return [api.rest(call.name, **call.args)]
    params = {"name": call.name, "arguments": call.args}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    found = [api.post(json.dumps(body).encode())]
    try:
        route, args = route_of(call.name, call.args)
    except EvidenceError:
        return found
    return [*found, api.rest(route, **args)]


def followed(call: Call, answers: list[Answer]) -> list[Call]:
    """The first few calls that the answers offer: pages and bookmarks before others."""
    offered = [found for answer in answers for found in _offers(answer.body)]
    pages = []
    for name, value in offered:
        if name in ("next_cursor", "next_changes_since") and call.kind == "mcp":
            args = {**call.args, "cursor" if name == "next_cursor" else "changes_since": value}
            pages.append(Call("mcp", call.name, args))
    others = [
        Call("mcp", value["tool"], value["args"]) for name, value in offered if name == "call"
    ]
    others += [Call("rest", value, {}) for name, value in offered if name == "address"]
    return [*pages[:1], *pages[-1:], *others[:FOLLOWED]]


def _offers(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _offers(item)
    if not isinstance(value, dict):
        return
    if value.keys() >= {"tool", "args"}:
        yield "call", value
    for name, item in value.items():
        if name in ("next_cursor", "next_changes_since") and isinstance(item, str):
            yield name, item
        elif name in ("fetch_url", "record_url", "read", "next") and isinstance(item, str):
            yield "address", item
        else:
            yield from _offers(item)


def written(answer: Answer) -> str:
    """An answer as text: status, headers and body."""
    body = answer.body
    shown = body.decode("latin-1") if isinstance(body, bytes) else json.dumps(body)
    return f"{answer.status}\n{json.dumps(answer.headers)}\n{shown}"
