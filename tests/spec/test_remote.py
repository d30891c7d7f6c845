"""Rung in front of another resource server: the same answers, and tokens sent nowhere else."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest

from evidence.limits import BUDGETS
from service import bootstrap, settings
from service.app import create_app
from tests.golden.transcripts import CALLS, path_of, transcript
from tests.helpers.api import Api
from tests.helpers.caller import Local, over_http
from tests.helpers.loopback import Asked, Reply, answering, as_json
from tests.helpers.replay import replaying
from tests.helpers.server import serving
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import SECRET, House

RECORD = "/v1/streams/messages/records"
WORK = "connection_id=mail-work"

#: The REST requests sent to both servers.
TARGETS = (
    "/v1/schema",
    "/v1/schema?view=compact",
    "/v1/schema?stream=messages",
    "/v1/schema?stream=messages&detail=full&connection_id=mail-work",
    "/v1/connectors",
    "/v1/streams",
    "/v1/streams?connection_id=notes",
    f"/v1/streams/messages?{WORK}",
    f"{RECORD}?{WORK}&limit=2&count=exact&window=exact",
    f"{RECORD}?{WORK}&fields=id,subject&filter[folder]=inbox&order=asc",
    f"{RECORD}?{WORK}&expand=attachments&expand_limit[attachments]=1&limit=3",
    "/v1/streams/diary/records?changes_since=beginning",
    f"{RECORD}/m_001?{WORK}",
    f"{RECORD}/m_long?{WORK}&fields=body",
    f"{RECORD}/m_long/field-window?{WORK}&field=body&q=invoice+number",
    f"{RECORD}/m_long/field-window?{WORK}&field=body&offset_chars=1000&limit_chars=500",
    f"/v1/streams/messages/aggregate?{WORK}&metric=count&group_by=folder",
    "/v1/search?q=invoice+number",
    "/v1/search?q=standup*&limit=3&streams=messages",
    # refusals
    "/v1/streams/secrets/records",
    f"{RECORD}?connection_id=elsewhere",
    f"{RECORD}?{WORK}&filter[body]=x",
    f"{RECORD}?{WORK}&cursor=garbage",
    f"{RECORD}/nobody?{WORK}",
    f"{RECORD}/m_001",
    "/v1/search?q=",
    "/v1/search?q=x&streems=messages",
)


def settings_of(url: str, **more: str) -> dict[str, str]:
    """The environment of a Rung that is only in front of another."""
    return {"RUNG_UPSTREAM_URL": url, "RUNG_SECRET_KEY": SECRET, **more}


@pytest.fixture(scope="module")
def back(small_house: House) -> Iterator[str]:
    with serving("wsgi:app", small_house.environment) as url:
        yield url


@pytest.fixture(scope="module")
def log() -> Iterator[IO[bytes]]:
    with TemporaryFile() as file:
        yield file


@pytest.fixture(scope="module")
def front(back: str, log: IO[bytes], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serves without a store, from an empty folder."""
    folder = tmp_path_factory.mktemp("empty")
    with serving("wsgi:app", settings_of(back), cwd=folder, threads=16, log=log) as url:
        yield url
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", CALLS)
def test_models_read_the_same_bytes(front: str, small: Local, name: str) -> None:
    there = transcript(over_http(front, str(small.api.token)), name)
    assert there == path_of(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("target", TARGETS)
def test_rest_answers_the_same(front: str, small: Local, target: str) -> None:
    there, here = Api(front, small.api.token).get(target), small.api.get(target)
    assert (there.status, there.body) == (here.status, here.body)


@pytest.mark.parametrize("asked", [None, "bytes=3-9", "bytes=-5"])
def test_so_are_blobs_and_their_ranges(front: str, small: Local, asked: str | None) -> None:
    blob = small.get("/v1/streams/attachments/records?connection_id=mail-work")["data"][0]["data"]
    target = f"/v1/blobs/{blob['blob_ref']['blob_id']}?{WORK}"
    headers = {} if asked is None else {"Range": asked}
    there, here = Api(front, small.api.token).get(target, **headers), small.api.get(
        target, **headers
    )
    assert (there.status, there.body) == (here.status, here.body)
    for name in ("Content-Type", "Content-Length", "Content-Range", "ETag"):
        assert there.headers.get(name) == here.headers.get(name)


def test_paging_through_the_front_gives_every_record_once(front: str, small: Local) -> None:
    api, target, keys = Api(front, small.api.token), "/v1/streams/diary/records?limit=2", []
    while target:
        body = api.get(target).body
        keys += [row["id"] for row in body["data"]]
        target = body["links"]["next"]
    assert len(keys) == len(set(keys)) == body["meta"].get("total", 7)


def test_bad_tokens_are_refused_on_both_surfaces_and_none_is_logged(
    front: str, small_house: House, small: Local, log: IO[bytes]
) -> None:
    grant_id, revoked = small_house.grant()
    small_house.revoke(grant_id)
    unknown, owner = "at_nobody-knows-this-one", "rung_owner_of-nothing"
    expected = {revoked: (401, "grant_revoked"), unknown: (401, "invalid_token")}
    expected[owner] = (403, "permission_error")
    for token, found in expected.items():
        api = Api(front, token)
        answer = api.get("/v1/schema")
        assert (answer.status, answer.error["code"]) == found
        refusal = api.post(b"{}")
        assert (refusal.status, refusal.body["error"]["data"]["code"]) == found
    assert Api(front, small.api.token).get("/v1/schema").status == 200
    log.seek(0)
    said = log.read().decode()
    assert "Booting worker" in said
    for token in (*expected, str(small.api.token)):
        assert token not in said


def test_what_needs_no_token_says_what_is_served(front: str) -> None:
    api = Api(front, None)
    assert api.get("/healthz").body == {"status": "ok"}
    assert api.get("/readyz").body == {"status": "ready", "upstream": {"failing": False}}
    assert api.get("/").body["links"]["core_query_base"] == "/v1"
    assert api.get("/v1/schema").status == 401
    assert api.get("/.well-known/oauth-protected-resource/mcp").status == 404


def test_the_well_known_documents_name_the_servers_that_hand_out_tokens() -> None:
    more = {"RUNG_AUTHORIZATION_SERVERS": "https://as.example.com"}
    app = create_app(bootstrap.build(settings.load(settings_of("http://127.0.0.1:9", **more))))
    for path in (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ):
        body = Api(app, None).get(path).body
        assert body["authorization_servers"] == ["https://as.example.com"]
        assert body["resource"].endswith("/mcp")


def test_an_upstream_that_is_away_is_an_error_and_readyz_tells_it_without_asking() -> None:
    def away(asked: Asked) -> Reply:
        return Reply(503)

    with answering(away) as server:
        app = create_app(bootstrap.build(settings.load(settings_of(server.url))))
        api = Api(app, "at_some-client-token")
        assert api.get("/readyz").body["upstream"] == {"failing": False}
        assert not server.asked
    for _ in range(BUDGETS.breaker_failures):
        answer = api.get("/v1/schema")
        assert answer.status in (502, 503)
        assert server.url.removeprefix("http://") not in str(answer.body)
    ready = api.get("/readyz")
    assert (ready.status, ready.body["upstream"]) == (200, {"failing": True})
    assert api.get("/healthz").status == 200


def test_introspection_decides_where_it_is_configured(
    small: Local, back: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # has no store, unlike the tests' folder after the demo
    said = {"active": True, "token_kind": "client", "aud": "https://rung.example.com/mcp"}
    with answering(lambda asked: as_json(said)) as server:
        more = {
            "RUNG_INTROSPECTION_URL": f"{server.url}/introspect",
            "RUNG_INTROSPECTION_CLIENT_ID": "rung",
            "RUNG_INTROSPECTION_CLIENT_SECRET": "s3cret",
        }
        for audience, status in (("https://rung.example.com/mcp", 200), ("https://b.example", 401)):
            found = settings.load(settings_of(back, RUNG_AUDIENCE=audience, **more))
            app = create_app(bootstrap.build(found))
            assert Api(app, small.api.token).get("/v1/streams").status == status
        assert [asked.target for asked in server.asked] == ["/introspect", "/introspect"]


def test_tokens_of_the_store_beside_an_upstream_never_leave(small_house: House) -> None:
    with replaying() as server:
        environ = {**small_house.environment, "RUNG_UPSTREAM_URL": server.url}
        app = create_app(bootstrap.build(settings.load(environ)))
        _, token = small_house.grant()
        assert Api(app, token).get("/v1/streams").status == 200
        assert Api(app, "rung_nobody-knows").get("/v1/streams").status == 401
        assert not server.asked
        streams = Api(app, "full").get("/v1/streams").body["data"]
        assert {row["name"] for row in streams} == {"messages", "threads"}
        assert {asked.token for asked in server.asked} == {"full"}


def test_rest_speaks_for_a_server_that_spells_things_its_own_way() -> None:
    with replaying() as server:
        app = create_app(bootstrap.build(settings.load(settings_of(server.url))))
        api = Api(app, "full")
        for more in ({}, {"connector_id": "gmail"}):
            found = api.rest("/v1/search", q="4711", limit=25, **more)
            assert {hit["record_key"] for hit in found.body["data"]} >= {"m_p007"}
        assert api.rest("/v1/search", q="4711", limit=25, connector_id="nope").status == 404
        page = api.rest("/v1/streams/messages/records", connection_id="cin_demo_personal", limit=2)
        assert len(page.body["data"]) == 2
        assert api.get(page.body["links"]["next"]).body["data"] != page.body["data"]


HUNG = 50


@pytest.mark.slow
def test_hung_upstream_calls_leave_the_store_and_health_alone(
    small_house: House, tmp_path: Path
) -> None:
    free, hangs = threading.Event(), threading.Semaphore(0)

    def hang(asked: Asked) -> Reply:
        hangs.release()
        free.wait(WAIT_SECONDS)
        return Reply(503)

    _, token = small_house.grant()
    spare = 2
    with answering(hang) as server, ThreadPoolExecutor(HUNG) as pool:
        more = {"RUNG_UPSTREAM_URL": server.url, "RUNG_THREADS": str(HUNG + spare)}
        environ = {**small_house.environment, **more}
        with serving("wsgi:app", environ, threads=HUNG + spare) as url:
            calls = [
                pool.submit(Api(url, f"at_client-{n}").get, "/v1/streams") for n in range(HUNG)
            ]
            for _ in calls:
                assert hangs.acquire(timeout=WAIT_SECONDS)
            late = Api(url, "at_client-late").get("/v1/streams")
            assert (late.status, late.error["code"]) == (503, "upstream_busy")
            assert late.headers["Retry-After"] == "1"
            for _ in range(20):
                assert Api(url, token).get("/v1/streams").status == 200
                assert Api(url, None).get("/healthz").status == 200
            free.set()
            assert {call.result().status for call in calls} == {503}
