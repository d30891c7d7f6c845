"""Where a request's CPU time goes, in this process: each stage without the stages inside it."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any
from unittest.mock import patch

from flask import Flask

from bench.calls import message
from bench.findings import Finding, Line, Note
from bench.plan import Plan
from bench.servers import BY_WORDS, COUNTED, UNCACHED
from bench.stores import Corpus, open_corpus, open_queries
from renderers import search
from service import bootstrap, settings
from service.access.guard import Access, Guard
from service.mcp import blueprint as mcp
from service.mcp.surface import RecordsSurface
from service.operations import OPERATIONS
from service.operations.base import AnyOperation
from service.records.store import StoreResourceServer

#: A stage is an (owner, attribute) pair: calls that look the attribute up there are measured.
Place = tuple[Any, str]

MS = 1_000
ANSWERING = ("wire", "fit", "render")


@dataclass(slots=True)
class Stages:
    """Seconds by stage. A stage's own time leaves out the measured calls it makes."""

    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[float] = field(default_factory=list)

    def measured(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a function so that its time counts for `stage`."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self._open.append(0.0)
            begun = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.thread_time() - begun
                own = took - self._open.pop()
                self.seconds[stage] = self.seconds.get(stage, 0.0) + own
                if self._open:
                    self._open[-1] += took

        return timed

    @contextmanager
    def watching(self, places: Sequence[tuple[str, Place]]) -> Iterator[None]:
        """Measures the function at each place, under the name of its stage, during the block."""
        patches = []
        for stage, (owner, name) in places:
            patches.append(patch.object(owner, name, self.measured(stage, getattr(owner, name))))
        try:
            for each in patches:
                each.start()
            yield
        finally:
            for each in reversed(patches):
                each.stop()

    def share(self, *names: str) -> float:
        """The share of the total time that these stages took."""
        return sum(self.seconds.get(name, 0.0) for name in names) / sum(self.seconds.values())


def measure(plan: Plan) -> Iterator[Line]:
    """Measures where the time of a search goes."""
    queries = open_queries(plan.middle).mix
    found = profile(open_corpus(plan.middle), queries, passes=plan.rounds)
    yield Finding("rendering", (found.share(*ANSWERING),))
    spent = sum(found.seconds.get(name, 0.0) for name in ANSWERING)
    yield Finding("answering", (spent / (plan.rounds * len(queries)) * MS,))
    for name, seconds in sorted(found.seconds.items(), key=lambda item: -item[1]):
        each = seconds / (plan.rounds * len(queries)) * MS
        yield Note(f"stage {name}", f"{each:.2f} ms, {found.share(name):.0%}")


def profile(corpus: Corpus, queries: Sequence[str], *, passes: int) -> Stages:
    """The stages of MCP searches over a corpus, after one pass to warm up."""
    found = Stages()

    def watched(operation: AnyOperation) -> AnyOperation:
        render, fit = (found.measured(name, getattr(operation, name)) for name in ("render", "fit"))
        return replace(operation, render=render, fit=fit)

    services = bootstrap.build(
        settings.load({"RUNG_STORE": str(corpus.store), **UNCACHED, **COUNTED, **BY_WORDS})
    )
    surface = RecordsSurface([watched(one) for one in OPERATIONS])
    app = Flask("bench", static_folder=None)
    guard = Guard(Access.CLIENT_TOKEN)
    app.register_blueprint(
        mcp.blueprint(surface, path="/mcp", guard=guard, open_session=services.open_session)
    )
    places = [
        ("store", (StoreResourceServer, "search")),
        ("wire", (search, "structured")),
    ]
    whole = found.measured("all else", answer)
    with found.watching(places):
        for turn in range(passes + 1):
            for query in queries:
                whole(app, _search(corpus.token, query))
            if turn == 0:
                found.seconds.clear()
    return found


def _search(token: str, query: str) -> dict[str, Any]:
    params = {"name": "search", "arguments": {"query": query, "limit": 10}}
    return environ("/mcp", message("tools/call", params), {"Authorization": f"Bearer {token}"})


def environ(path: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
    """The WSGI environment of a POST, as a server would make it."""
    found = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    return found | {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def answer(app: Callable[..., Any], sent: dict[str, Any]) -> bytes:
    """The body of the application's answer. Raises `RuntimeError` unless its status is 200."""
    statuses: list[str] = []

    def start(status: str, headers: Any, exc_info: Any = None) -> None:
        statuses.append(status)

    parts = app(sent, start)
    try:
        body = b"".join(parts)
    finally:
        getattr(parts, "close", lambda: None)()
    if not statuses[0].startswith("200 "):
        raise RuntimeError(f"the application answered {statuses[0]}: {body[:200]!r}")
    return body
