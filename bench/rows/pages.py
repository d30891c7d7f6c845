"""A search page, relative to a bare Flask page with the same query."""

import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from flask import Flask, render_template_string, request
from flask.testing import FlaskClient

from bench import figures
from bench.findings import Finding, Line, Note
from bench.plan import Plan
from bench.servers import BY_WORDS, COUNTED, UNCACHED
from bench.stores import open_corpus, open_queries
from service import bootstrap, settings
from service.app import create_app
from service.bootstrap import Services
from service.ports import SearchQuery

PAGE = """<!doctype html><title>{{ query }}</title><ol>
{% for hit in hits %}<li><a href="/{{ hit.id }}">{{ hit.title }}</a> {{ hit.authored_at }}
<p>{{ hit.matches[0].shown if hit.matches }}</p></li>{% endfor %}</ol>"""
HITS = 10
MS = 1_000


def measure(plan: Plan) -> Iterator[Line]:
    """Measures all questions on both pages, in turn."""
    corpus, queries = open_corpus(plan.middle), open_queries(plan.middle).mix
    environ = {"RUNG_STORE": str(corpus.store), **UNCACHED, **COUNTED, **BY_WORDS}
    services = bootstrap.build(settings.load(environ))
    reading = create_app(services).test_client()
    answer = reading.post("/read", data={"token": corpus.token, "surface": "records"})
    path = answer.text.partition('data-path="')[2].partition('"')[0]
    bare = bare_page(services, corpus.token).test_client()
    rounds = []
    for turn in range(plan.rounds + 1):  # the first round warms up
        times = [seconds(*one, queries) for one in ((reading, path), (bare, ""))]
        if turn:
            rounds.append(times)
    yield Finding("pages", figures.ratios(*map(list, zip(*rounds))))
    for name, took in zip(("reading page", "bare page"), map(min, zip(*rounds))):
        yield Note(f"{name}: per search", f"{took / len(queries) * MS:.2f} ms")


def bare_page(services: Services, token: str) -> Flask:
    """A page with hits and their first passages, and nothing else of the reading pages."""
    app = Flask("bare", static_folder=None)

    @app.get("/read")
    def page() -> str:
        query = request.args["q"]
        found = services.open_session(token).rs.search(SearchQuery(query, limit=HITS)).value
        return render_template_string(PAGE, query=query, hits=found.hits)

    return app


def seconds(client: FlaskClient, path: str, queries: Sequence[str]) -> float:
    """The seconds for all questions, below the path of a session. Raises `RuntimeError` unless each
    returns a page of hits."""
    begun = time.perf_counter()
    for query in queries:
        answer = client.get(f"{path}/read?{urlencode({'q': query})}")
        if answer.status_code != 200 or "<li" not in answer.text:
            raise RuntimeError(f"/read answered {answer.status_code} for {query!r}")
    return time.perf_counter() - begun
