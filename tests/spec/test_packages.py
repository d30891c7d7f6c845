"""One token over a grant of this store and a grant at another server, both real."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from service import keys
from service.access import packages
from evidence.model import MemberStream
from service.access.registry import Registry
from service.access.registry import Member
from service.records.opening import open_writer
from tests.helpers.api import Answer, Api
from tests.helpers.two_owners import HERE, THERE, Package, Pair, two
from tests.helpers.loopback import Asked, Reply, answering
from tests.helpers.posting import JSON
from tests.helpers.server import serving
from tests.helpers.worlds import SECRET, House
from tests.helpers.two_owners import local_member

EVERYTHING = {f"home-{n}" for n in range(HERE)} | {f"abroad-{n}" for n in range(THERE)}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with two(tmp_path_factory.mktemp("pair")) as found:
        yield found


@pytest.fixture(scope="module")
def front(pair: Pair) -> Iterator[str]:
    with serving("wsgi:app", {**pair.here.environment, "RUNG_THREADS": "8"}, threads=8) as url:
        yield url


@pytest.fixture(scope="module")
def package(pair: Pair) -> Package:
    return pair.package(label="both")


@pytest.fixture(scope="module")
def api(front: str, package: Package) -> Api:
    return Api(front, package.token)


def revoke(pair: Pair, name: str) -> None:
    with open_writer(pair.here.path) as writer:
        packages.revoke(Registry(writer), name)


def post(api: Api, **body: Any) -> Answer:
    return api.send("POST", "/v1/search", orjson.dumps(body), JSON)


def keys_of(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    return [hit["record_key"] for hit in answer.body["data"]]


def test_a_search_merges_both_sources_under_one_limit(api: Api) -> None:
    found = api.mcp("search", query="lantern", limit=4)
    sources = {hit["connection_id"] for hit in found["structuredContent"]["results"]}
    assert sources == {"home", "abroad"} and len(found["structuredContent"]["results"]) == 4
    assert "sources: 2 answered" in found["content"][0]["text"]


def test_paging_over_mcp_gives_every_hit_once(api: Api) -> None:
    ids, args = list[str](), {"query": "lantern", "limit": 3}
    for _ in range(HERE + THERE):
        found = api.mcp("search", **args)["structuredContent"]
        ids += [hit["record_id"] for hit in found["results"]]
        if not found["data"]["has_more"]:
            break
        args = found["data"]["next"][0]["args"]
    assert len(ids) == len(set(ids)) and set(ids) == EVERYTHING


def test_paging_over_rest_follows_links_and_posts_alike(api: Api) -> None:
    page = api.rest("/v1/search", q="lantern", limit=5)
    seen = keys_of(page)
    assert page.body["links"]["next"].endswith(page.body["next_cursor"])
    linked = api.get(page.body["links"]["next"])
    posted = post(api, q="lantern", limit=5, cursor=page.body["next_cursor"])
    assert keys_of(linked) == keys_of(posted)
    assert linked.body["meta"] == posted.body["meta"]
    assert posted.body["links"] == {"self": "/v1/search", "next": None}
    seen += keys_of(linked)
    while (cursor := posted.body.get("next_cursor")) is not None:
        posted = post(api, q="lantern", limit=5, cursor=cursor)
        seen += keys_of(posted)
    assert len(seen) == len(set(seen)) and set(seen) == EVERYTHING


def test_a_shared_stream_needs_a_connection_and_the_error_lists_both(
    api: Api, package: Package
) -> None:
    refused = api.rest("/v1/streams/letters/records")
    assert (refused.status, refused.error["code"]) == (409, "ambiguous_connection")
    listed = refused.error["available_connections"]
    assert [(one["grant_id"], one["connection_id"]) for one in listed] == [
        (package.local_grant, "home"),
        (package.remote_grant, "abroad"),
    ]
    for one, count in zip(listed, (HERE, THERE)):
        page = api.rest("/v1/streams/letters/records", connection_id=one["connection_id"])
        assert len(page.body["data"]) == count


def test_records_of_both_are_fetched_by_their_ids(api: Api) -> None:
    for id in ("home/letters:home-1", "abroad/letters:abroad-1"):
        assert "lantern number 1" in api.mcp("fetch", id=id)["structuredContent"]["text"]


def test_a_revoked_member_fails_alone_and_both_channels_say_so(front: str, pair: Pair) -> None:
    package = pair.package()
    api = Api(front, package.token)
    pair.here.revoke(package.local_grant)
    found = api.mcp("search", query="lantern")
    assert {hit["connection_id"] for hit in found["structuredContent"]["results"]} == {"abroad"}
    assert "grant_revoked" in found["content"][0]["text"]
    assert "grant_revoked" in orjson.dumps(found["structuredContent"]).decode()
    alone = api.rest("/v1/search", q="lantern", connection_id="home")
    assert (alone.status, alone.error["code"]) == (403, "grant_revoked")


def test_a_revoked_package_is_refused_from_the_next_request(front: str, pair: Pair) -> None:
    package = pair.package()
    api = Api(front, package.token)
    assert api.get("/v1/schema").status == 200
    revoke(pair, package.id)
    refused = api.get("/v1/schema")
    assert (refused.status, refused.error["code"]) == (401, "grant_revoked")
    assert Api(front, "rung_pkg_nobody").get("/v1/schema").status == 401


def test_an_expired_package_is_refused(front: str, pair: Pair) -> None:
    package = pair.package(expires_at="2020-01-01T00:00:00Z")
    refused = Api(front, package.token).get("/v1/schema")
    assert (refused.status, refused.error["code"]) == (401, "grant_expired")


def test_a_source_that_is_gone_leaves_a_partial_answer(tmp_path: Path) -> None:
    with two(tmp_path) as pair:
        package = pair.package()
    api = Api(pair.here.app, package.token)
    found = api.mcp("search", query="lantern")
    text, structured = found["content"][0]["text"], orjson.dumps(found["structuredContent"])
    assert {hit["connection_id"] for hit in found["structuredContent"]["results"]} == {"home"}
    assert "sources:" in text and "upstream_unreachable" in text
    assert b"upstream_unreachable" in structured
    assert pair.url.removeprefix("http://") not in text + structured.decode()
    assert api.get("/readyz").status == 200


def test_another_key_closes_the_member_elsewhere_and_names_the_variable(pair: Pair) -> None:
    package = pair.package()
    rekeyed = House(pair.here.path, {"RUNG_SECRET_KEY": "another secret"})
    api = Api(rekeyed.app, package.token)
    refused = api.rest("/v1/search", q="lantern", connection_id="abroad")
    assert (refused.status, refused.error["code"]) == (503, "member_token_sealed")
    assert "RUNG_SECRET_KEY" in refused.error["message"]
    assert len(keys_of(api.rest("/v1/search", q="lantern"))) == HERE


@pytest.mark.parametrize(
    "path", ["/v1/search?q=a&", "/v1/streams/letters/records?", "/v1/blobs/b?"]
)
def test_the_dead_token_of_a_member_is_neither_shown_nor_taken_for_that_of_the_caller(
    pair: Pair, path: str
) -> None:
    """A token that a server repeats in an error does not reach the holder of the package."""
    token, local = "member/token-of-the-owner", pair.here.grant()[0]
    held = (MemberStream("letters", "away", "post", "Away"),)
    for slash in ("/", "\\/"):

        def refuse(asked: Asked, slash: str = slash) -> Reply:
            said = asked.token.replace("/", slash)
            text = f'{{"error": {{"code": "context.active_false", "message": "No {said} here"}}}}'
            return Reply(401, text.encode())

        with answering(refuse) as server, open_writer(pair.here.path) as writer:
            member = Member("Away", "grt_away", held, server.url, token)
            members = [local_member(writer, pair.here.path, local), member]
            sealer = keys.of_tokens(SECRET.encode())
            api = Api(pair.here.app, packages.create(Registry(writer), members, sealer)[1])
            refused = api.get(f"{path}connection_id=away")
            whole = api.rest("/v1/search", q="lantern")
            assert server.asked[0].token == token
        assert (refused.status, refused.error["code"]) == (403, "context.active_false")
        assert "WWW-Authenticate" not in refused.headers
        assert "renew the grant" in refused.error["hint"]
        assert whole.status == 200 and len(whole.body["data"]) == HERE
        assert "token-of-the-owner" not in f"{refused.body} {whole.body}"


def test_a_package_of_one_answers_as_its_grant(pair: Pair) -> None:
    grant_id, token = pair.here.grant(label="alone")
    with open_writer(pair.here.path) as writer:
        member = local_member(writer, pair.here.path, "alone")
        _, package = packages.create(
            Registry(writer), [member], pair.here.app.extensions["rung"].store.sealer
        )
    for target in ("/v1/schema", "/v1/search?q=lantern&limit=3", "/v1/streams/letters/records"):
        one, other = Api(pair.here.app, token).get(target), Api(pair.here.app, package).get(target)
        assert one.body == other.body
