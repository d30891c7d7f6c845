"""A grant, or an address without a token, has a budget of CPU time in each minute."""

import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from flask import Flask

from evidence import work
from evidence.errors import NotFound
from renderers.pool import WorkerPool
from service import settings
from service.access.owner import Owner
from service.access.rates import Rates
from service.access.entries import Entries
from service.records.sidecar import open_sidecar
from service.access.signins import Signins
from service.mcp.protocol import handle
from service.mcp.server import Server
from service.mcp.surface import RecordsSurface
from service.mcp.validation import Headers
from service.operations.base import Session
from service.records.opening import open_reader
from tests.helpers.api import Answer, Api
from tests.helpers.papers import papers_app
from tests.helpers.places import ENGINE
from tests.helpers.posting import legacy_body
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House

ONE, OTHER = "203.0.113.7", "198.51.100.7"
#: A proxy is trusted, so that clients have their own addresses.
ENV = {"RUNG_WORK_SECONDS": "1", "RUNG_TRUSTED_PROXY_HOPS": "1", "RUNG_SIGN_IN": "on"}
#: Requests that use a second, on any machine.
ENOUGH = 20_000
SEARCH = "/v1/search?q=invoice"
PAPERS = "/papers/v1/search?q=learning"
CPU_SECONDS, POOL_THREADS = 0.05, 2


def until_refused(ask: Callable[[], Answer]) -> Answer:
    """The first refusal of a request that is sent again and again."""
    answers = (ask() for _ in range(ENOUGH))
    return next(answer for answer in answers if answer.status != 200)


def access_tokens(house: House, grant_id: str) -> tuple[str, str]:
    """Two tokens that sign-in issued for a grant, one after the other."""
    signins = Signins(Entries(open_sidecar(house.path)))
    paths = {"paths": ["/mcp", "/v1"], "scope": ""}
    codes = [signins.consented(grant_id, {}, {}) for _ in range(2)]
    first, second = (signins.exchange(code, paths, None)["access_token"] for code in codes)
    return first, second


def test_all_tokens_of_a_grant_share_its_budget(small_house: House) -> None:
    app = small_house.application(**ENV)
    first, second = access_tokens(small_house, small_house.grant()[0])
    refused = until_refused(lambda: Api(app, first).get(SEARCH))
    assert refused.status == 429 and refused.error["code"] == "rate_limited"
    assert refused.error["spent_seconds"] >= refused.error["limit_seconds"] == 1
    assert 0 < int(refused.headers["Retry-After"]) <= 120
    again = Api(app, second)
    assert again.get("/v1/streams").status == 429, "a refresh brings no new budget"
    refused = again.post(orjson.dumps(legacy_body("ping")))
    assert refused.status == 429 and refused.body["error"]["data"]["code"] == "rate_limited"
    assert Api(app, small_house.grant()[1]).get(SEARCH).status == 200


def page(app: Flask, address: str, path: str = "/connect", **headers: str) -> Answer:
    return Api(app, None).get(path, **{"X-Forwarded-For": address, **headers})


def test_pages_are_paid_by_the_address_or_by_the_owner(small_house: House) -> None:
    app = small_house.application(**ENV)
    refused = until_refused(lambda: page(app, ONE))
    assert refused.status == 429 and refused.error["code"] == "rate_limited"
    assert page(app, ONE, "/owner").status == 429, "signing in is included"
    assert page(app, ONE, "/connect", Authorization="Bearer rung_of-nobody").status == 429
    assert page(app, ONE, "/healthz").status == page(app, OTHER).status == 200
    assert Api(app, small_house.grant()[1]).get(SEARCH, **{"X-Forwarded-For": ONE}).status == 200
    owner = Owner(Entries(open_sidecar(small_house.path)))
    browser = app.test_client()
    path = "/s/" + 22 * "x"
    value = owner.sign_in(owner.new_code(), path).rpartition("/")[2]
    browser.set_cookie("rung_owner", value, path=path)
    assert browser.get(f"{path}/owner", headers={"X-Forwarded-For": ONE}).status_code == 200


def test_papers_are_paid_by_the_address() -> None:
    app = papers_app(DATA / "papers" / "snapshot.db", **{**ENV, "RUNG_SIGN_IN": "off"})
    refused = until_refused(lambda: page(app, ONE, PAPERS))
    assert refused.status == 429 and refused.error["code"] == "rate_limited"
    assert refused.error["spent_seconds"] >= refused.error["limit_seconds"] == 1
    assert 0 < int(refused.headers["Retry-After"]) <= 120
    call = {"name": "search_papers", "arguments": {"query": "learning"}}
    body = orjson.dumps(legacy_body("tools/call", call))
    headers = {"Content-Type": "application/json", "X-Forwarded-For": ONE}
    again = Api(app, None).send("POST", "/mcp/papers", body, headers)
    assert again.status == 429 and again.body["error"]["data"]["code"] == "rate_limited"
    assert int(again.headers["Retry-After"]) > 0
    assert page(app, OTHER, PAPERS).status == 200


def test_refused_tokens_are_paid_by_their_address(small_house: House) -> None:
    app = small_house.application(**ENV, RUNG_RATE_LIMIT_FAILURES="off")
    for number in range(ENOUGH):
        stranger = Api(app, f"rung_of-nobody-{number}")
        assert stranger.get(SEARCH, **{"X-Forwarded-For": ONE}).status == 401
        if page(app, ONE).status == 429:
            break
    assert page(app, OTHER).status == 200


class Costly:
    """A resource server each of whose answers takes two CPU seconds."""

    def schema(self, query: Any) -> Any:
        work.spend(2.0)
        raise NotFound("There is nothing here.")


def test_a_message_of_a_batch_is_refused_once_the_budget_is_used() -> None:
    costly: Any = Costly()
    rates = Rates(settings.load({"RUNG_STORE": "rung.db", "RUNG_WORK_SECONDS": "3"}))
    call = {"name": "schema", "arguments": {}}
    messages = [legacy_body("tools/call", call, id=id) for id in range(4)]

    def again() -> Session:
        return rates.opened("a token", lambda: Session(costly))

    work.begin(60)
    try:
        server, raw = Server(RecordsSurface()), orjson.dumps(messages)
        reply = handle(server, raw, Headers({}), again(), again=again)
    finally:
        work.end()
    assert reply.body is not None
    errors = [one["result"]["structuredContent"]["error"] for one in orjson.loads(reply.body)]
    assert [error["code"] for error in errors] == ["not_found"] * 2 + ["rate_limited"] * 2


def burn(_: Any) -> None:
    """Uses CPU time on this thread."""
    end = time.thread_time() + CPU_SECONDS
    while time.thread_time() < end:
        pass


def test_threads_of_pools_count_for_the_request_that_waits_for_them() -> None:
    spending = work.begin(60)
    try:
        pool = WorkerPool(POOL_THREADS, "test")
        pool.map(burn, range(4), work.request_deadline(60))
        assert work.spent() >= 4 * CPU_SECONDS
    finally:
        work.end()
    charged = list[float]()
    spending.end(charged.append)
    spending.add(1.0)  # by a thread that ended late
    assert len(charged) == 2 and charged[1] == 1.0


@pytest.mark.skipif(ENGINE != "postgres", reason="statements of SQLite run on the thread itself")
def test_statements_of_the_database_count_for_the_request(small_house: House) -> None:
    reader = open_reader(small_house.path)
    work.begin(60)
    try:
        with reader.snapshot() as snapshot:
            snapshot.run("SELECT pg_sleep(0.1)")
        assert work.spent() >= 0.1
    finally:
        work.end()
        reader.close()
