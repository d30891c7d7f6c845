"""A token reads what was ticked and nothing else: random consents over a world of canaries."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers import canaries, worlds
from tests.helpers.api import Answer, Api
from tests.helpers.canaries import CONNECTIONS, FIELDS, words_in
from tests.helpers.papers import RELEASES
from tests.helpers.posting import JSON, legacy_body
from tests.helpers.reading import PAPER_TOOLS
from tests.helpers.scale import times
from tests.helpers.server import serving
from tests.helpers.signin import Browser, Client, answer
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House
from tests.spec.isolation_calls import PLAN, STREAMS, Call, aimed, ask, calls, followed, written
from tests.spec.sign_in.conftest import PROXIED

PAIRS = [(name, stream) for name in CONNECTIONS for stream in STREAMS[name]]
MONTHS = st.integers(1, 6).map("2026-0{}-15".format) | st.just("")
SEARCH = Call("mcp", "search", {"query": "common", "limit": 100})


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Canaries, beside papers that need a token."""
    papers = str(DATA / RELEASES[0] / "snapshot.db")
    environ = {"RUNG_PAPERS_DB": papers, "RUNG_PAPERS_TOKENS": "a-long-token-of-a-reader"}
    folder = tmp_path_factory.mktemp("canaries")
    return worlds.build(canaries.world_of(PLAN), folder, **environ)


@pytest.fixture(scope="module")
def served(library: House) -> Iterator[str]:
    environ = {**library.environment, **PROXIED, "RUNG_SIGN_IN": "on"}
    with serving("wsgi:app", environ) as found:
        yield found


def consented(
    base: str,
    house: House,
    entries: list[dict[str, Any]],
    resource: str | None = "/mcp",
    **more: str,
) -> Api:
    """A client that signed in, after its owner ticked the streams and fields of these entries."""
    browser, client = Browser(base, house.path), Client(base).register()
    path = client.path(resource=None if resource is None else base + resource)
    form = browser.fill(browser.prove(path).text, decision="allow", **more)
    for entry in entries:
        place = [entry["connection_id"], entry["stream"]]
        form.append(("stream", orjson.dumps(place).decode()))
        form += [("field", orjson.dumps([*place, name]).decode()) for name in entry["fields"]]
    code = answer(browser.post(path, form))["code"]
    return Api(base, client.token(code, resource=None).json()["access_token"])


def of_papers(api: Api) -> Answer:
    body = legacy_body("tools/call", {"name": PAPER_TOOLS[0], "arguments": {"query": "attention"}})
    return api.send("POST", "/mcp/papers", orjson.dumps(body), JSON)


@st.composite
def ticks(draw: Any) -> tuple[list[dict[str, Any]], dict[str, str], list[Call]]:
    """(entries as they are ticked, the other inputs of the form, calls about them and others)."""
    entries = []
    for connection, stream in draw(st.lists(st.sampled_from(PAIRS), min_size=1, unique=True)):
        names = list(FIELDS[stream].values())
        fields = draw(st.just(names) | st.lists(st.sampled_from(names), min_size=1, unique=True))
        entries.append({"connection_id": connection, "stream": stream, "fields": fields})
    dates = {"since": draw(MONTHS), "until": draw(MONTHS)}
    if dates["until"] and dates["since"] >= dates["until"]:
        dates["since"] = ""
    asked = [
        aimed(call, draw(st.sampled_from(entries))) if draw(st.booleans()) else call
        for call in draw(st.lists(calls(), min_size=3, max_size=6))
    ]
    return entries, dates, asked


def test_papers_and_records_are_ticked_apart(served: str, library: House) -> None:
    connection, stream = PAIRS[0]
    mail = {"connection_id": connection, "stream": stream, "fields": [*FIELDS[stream].values()]}
    both = {"papers": "yes"}
    for entries, more, papers in (([mail], {}, False), ([], both, True), ([mail], both, True)):
        api = consented(served, library, entries, **more)
        assert (of_papers(api).status == 200) is papers
        shown = "".join(map(written, ask(api, SEARCH)))
        assert bool(words_in(shown)) is bool(entries)


@pytest.mark.parametrize(
    ("resource", "more", "opened"),
    [
        (None, {}, {"/mcp", "/v1"}),
        ("/mcp", {}, {"/mcp", "/v1"}),
        ("/v1", {}, {"/v1"}),
        ("/mcp", {"papers": "yes"}, {"/mcp", "/v1", "/mcp/papers", "/papers/v1"}),
        ("", {"papers": "yes"}, {"/mcp", "/v1", "/mcp/papers", "/papers/v1"}),
        ("/mcp/papers", {"papers": "yes"}, {"/mcp/papers", "/papers/v1"}),
    ],
)
def test_a_token_opens_the_surfaces_it_was_requested_for(
    served: str, library: House, resource: str | None, more: dict[str, str], opened: set[str]
) -> None:
    connection, stream = PAIRS[0]
    mail = {"connection_id": connection, "stream": stream, "fields": [*FIELDS[stream].values()]}
    api = consented(served, library, [mail], resource, **more)
    ping = orjson.dumps(legacy_body("tools/list", {}))
    for path, sent in {
        "/mcp": ("POST", "/mcp", ping, JSON),
        "/mcp/papers": ("POST", "/mcp/papers", ping, JSON),
        "/v1": ("GET", "/v1/streams", b"", {}),
        "/papers/v1": ("GET", "/papers/v1/search?q=attention", b"", {}),
    }.items():
        got = api.send(*sent)
        assert got.status == (200 if path in opened else 401), (path, got)
        if path not in opened:
            told = got.headers["WWW-Authenticate"]
            assert 'error="invalid_token"' in told
            assert (
                f'resource_metadata="{served}/.well-known/oauth-protected-resource{path}"' in told
            )


@settings(
    deadline=None,
    max_examples=times(40, 20),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(ticked=ticks())
def test_no_canary_is_read_that_was_not_ticked(
    served: str, library: House, ticked: tuple[list[dict[str, Any]], dict[str, str], list[Call]]
) -> None:
    entries, dates, asked = ticked
    api = consented(served, library, entries, **dates)
    limits = {name: date for name, date in dates.items() if date}
    granted = [{**one, **({"time_constraint": limits} if limits else {})} for one in entries]
    allowed = canaries.permitted(PLAN, granted)
    schema = ask(api, Call("mcp", "schema", {}))
    assert words_in("".join(map(written, schema)))
    for call in [SEARCH, *asked]:
        answers = ask(api, call)
        for offer, got in [
            (call, answers),
            *((one, ask(api, one)) for one in followed(call, answers)),
        ]:
            shown = "".join(map(written, got))
            assert not words_in(shown) - allowed - words_in(offer.said), (offer, shown[:2_000])
            assert all(one.status < 500 and one.status != 401 for one in got), (offer, got)
    assert of_papers(api).status in (401, 403)
