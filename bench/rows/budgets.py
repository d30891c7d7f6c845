"""The sizes of answers: ten hits, the largest pages, and the list of tools."""

from collections.abc import Iterator
from typing import Any

import orjson

from bench.calls import call, request, result_of
from bench.findings import Finding, Line
from bench.load import ask
from bench.plan import Plan
from bench.servers import pinned, rung, two_cores
from bench.stores import open_corpus, open_queries
from evidence.limits import CONTRACT

WIDEST_PAGES = 40  # queries that ask for the largest page


def measure(plan: Plan) -> Iterator[Line]:
    found, queries = open_corpus(plan.middle), open_queries(plan.middle)
    core, client = two_cores()
    most = CONTRACT.page_items
    with rung(found.store, core) as server, pinned(client):

        def result(tool: str, **arguments: Any) -> dict[str, Any]:
            return result_of(ask(server.port, call(found.token, tool, arguments)))

        pages = [result("search", query=query, limit=10) for query in queries.mix]
        widest = (*queries.common, *queries.mix)[:WIDEST_PAGES]
        largest = [result("search", query=query, limit=most) for query in widest]
        largest.append(result("query_records", stream="messages", limit=most))
        listed = ask(server.port, request(found.token, "tools/list", {}))
    every = [*pages, *largest]
    data = max(len(orjson.dumps(each["structuredContent"])) for each in every)
    yield Finding("search-text", (max(map(text_bytes, pages)),))
    yield Finding("text", (max(map(text_bytes, every)),))
    yield Finding("structured", (data,))
    yield Finding("tools", (len(orjson.dumps(orjson.loads(listed)["result"])),))


def text_bytes(result: dict[str, Any]) -> int:
    """The bytes of a result that a model sees."""
    return sum(len(block["text"].encode()) for block in result["content"])
