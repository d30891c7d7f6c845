"""Every answer is good HTTP: caching, compression, verbs, and CORS for known origins."""

import gzip
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import orjson
import pytest

from evidence.limits import BUDGETS
from tests.helpers.api import Answer, Api
from tests.helpers.operated import Operated, operated
from tests.helpers.papers import RELEASES, Release, papers_app
from tests.helpers.signin import run_command
from tests.helpers.snapshots import DATA
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House

FRIEND, FOREIGN = "https://app.example.com", "https://elsewhere.example.com"
SEARCH = "/v1/search?q=invoice"
PAPERS = "/papers/v1/search?q=the"
SNAPSHOT = Release(DATA / RELEASES[0]).snapshot
BLOB = "/v1/blobs/plan?connection_id=mail-work"
#: Addresses of routes that have a name or a query in them.
NAMED = (
    BLOB,
    SEARCH,
    PAPERS,
    "/connect?for=records",
    "/connect?for=papers",
    "/v1/streams/messages",
    "/v1/streams/messages/records?connection_id=mail-work",
    "/v1/streams/messages/records/m_001?connection_id=mail-work",
    "/v1/streams/messages/records/m_long/field-window?connection_id=mail-work&field=body",
    "/v1/streams/messages/aggregate?metric=count&connection_id=mail-work",
)
GZIP = {"Accept-Encoding": "br;q=1.0, gzip;q=0.8"}


@pytest.fixture(scope="module")
def api(small_house: House) -> Api:
    app = small_house.application(RUNG_ALLOWED_ORIGINS=FRIEND, RUNG_PAPERS_DB=str(SNAPSHOT))
    return Api(app, small_house.grant()[1])


@pytest.fixture(scope="module")
def server(small_house: House) -> Iterator[Operated]:
    with operated(small_house.environment, workers=1) as found:
        yield found


def names(told: str) -> set[str]:
    return {part.strip() for part in told.split(",")}


# What caches may keep.


def test_papers_of_an_open_library_may_be_kept_and_asked_for_again(api: Api) -> None:
    first = api.get(PAPERS)
    assert first.headers["Cache-Control"].startswith("public, max-age=60")
    tag = first.headers["ETag"]
    assert tag.startswith('W/"')
    for told in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = api.get(PAPERS, **{"If-None-Match": told})
        assert (again.status, again.body) == (304, b""), told
        assert again.headers["ETag"] == tag and again.headers["Cache-Control"]
        assert "Content-Length" not in again.headers and "Content-Type" not in again.headers
    assert api.get(PAPERS, **{"If-None-Match": '"other"'}).body == first.body
    assert api.get("/papers/v1/search?q=of").headers["ETag"] != tag


def test_a_refusal_is_never_kept(api: Api) -> None:
    refused = api.get("/papers/v1/search?q=")
    assert refused.status == 400
    assert refused.headers["Cache-Control"] == "no-store" and "ETag" not in refused.headers


def test_where_a_token_is_used_nothing_is_kept(api: Api) -> None:
    closed = "a-long-random-token"
    library = Api(papers_app(SNAPSHOT, RUNG_PAPERS_TOKENS=closed), closed)
    for answer in (api.get(SEARCH), library.get(PAPERS)):
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "private, no-store"
        assert "ETag" not in answer.headers and "Authorization" in names(answer.headers["Vary"])


def test_a_blob_that_is_known_is_not_sent_again(api: Api) -> None:
    target = BLOB
    first = api.get(target)
    assert first.status == 200, first
    again = api.get(target, **{"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    assert again.headers["Cache-Control"] == "private, no-store"
    part = api.get(target, Range="bytes=0-9")
    assert (part.status, part.body) == (206, first.body[:10])
    beyond = api.get(target, Range="bytes=999999-")
    assert beyond.status == 416 and beyond.error["code"] == "range_not_satisfiable"
    assert beyond.headers["Content-Range"] == f"bytes */{len(first.body)}"


def test_parts_of_a_blob_that_has_changed_are_never_put_together(api: Api) -> None:
    first = api.get(BLOB)
    tag, part = first.headers["ETag"], "bytes=0-9"
    assert api.get(BLOB, Range=part, **{"If-Range": tag}).status == 206
    for known in ('"of another"', "Wed, 21 Oct 2026 07:28:00 GMT", f"W/{tag}"):
        whole = api.get(BLOB, Range=part, **{"If-Range": known})
        assert (whole.status, whole.body) == (200, first.body), known
    again = api.get(BLOB, Range=part, **{"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"") and "Content-Range" not in again.headers


# Compression.


def raw(api: Api, target: str, body: bytes | None = None, **headers: str) -> Answer:
    """The answer with its bytes as sent."""
    assert not isinstance(api.app, str)
    sent = {"Authorization": f"Bearer {api.token}", **headers}
    if body is not None:
        sent["Content-Type"] = "application/json"
    method = "GET" if body is None else "POST"
    with api.app.test_client().open(target, method=method, data=body, headers=sent) as response:
        return Answer(response.status_code, dict(response.headers), response.get_data())


@pytest.mark.parametrize("target", [SEARCH, PAPERS, "/v1/schema"])
def test_a_large_body_comes_compressed_to_who_takes_that(api: Api, target: str) -> None:
    plain, packed = raw(api, target), raw(api, target, **GZIP)
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) == len(packed.body) < len(plain.body)
    if target != SEARCH:  # a search reports how long it took
        assert gzip.decompress(packed.body) == plain.body
    for answer in (plain, packed):
        assert "Accept-Encoding" in names(answer.headers["Vary"])
        assert answer.headers.get("ETag") == plain.headers.get("ETag")


def test_answers_over_mcp_come_compressed_too(api: Api) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    plain, packed = raw(api, "/mcp", body), raw(api, "/mcp", body, **GZIP)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_small_bodies_and_bytes_come_as_they_are(api: Api) -> None:
    for target, headers in (
        ("/healthz", GZIP),
        (BLOB, GZIP),
        (BLOB, {**GZIP, "Range": "bytes=0-9"}),
        ("/v1/schema", {"Accept-Encoding": "gzip;q=0"}),
        ("/v1/schema", {"Accept-Encoding": "identity"}),
    ):
        answer = raw(api, target, **headers)
        assert answer.status in (200, 206) and "Content-Encoding" not in answer.headers
        assert int(answer.headers["Content-Length"]) == len(answer.body)


# Pages of other origins.


@pytest.mark.parametrize("target", [SEARCH, PAPERS, "/v1/streams/none/records", BLOB])
def test_a_page_of_an_allowed_origin_may_read_answers_and_refusals(api: Api, target: str) -> None:
    answer = api.get(target, Origin=FRIEND)
    assert answer.headers["Access-Control-Allow-Origin"] == FRIEND
    exposed = names(answer.headers["Access-Control-Expose-Headers"])
    assert {"Request-Id", "Retry-After", "RateLimit-Remaining", "ETag", "Link"} <= exposed
    assert "Origin" in names(answer.headers["Vary"])
    foreign = api.get(target, Origin=FOREIGN)
    assert foreign.status == 403 and foreign.error["code"] == "origin_not_allowed"
    assert "Access-Control-Allow-Origin" not in foreign.headers


@pytest.mark.parametrize(
    ("target", "verbs"),
    [
        ("/v1/search", {"GET", "HEAD", "OPTIONS", "POST"}),
        (BLOB, {"GET", "HEAD", "OPTIONS"}),
        ("/papers/v1/search", {"GET", "HEAD", "OPTIONS"}),
    ],
)
def test_a_page_may_ask_first_without_a_token(api: Api, target: str, verbs: set[str]) -> None:
    asks = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "traceparent"}
    stranger = Api(api.app, None)
    answer = stranger.send("OPTIONS", target, b"", {"Origin": FRIEND, **asks})
    assert (answer.status, answer.body) == (204, b"")
    assert names(answer.headers["Allow"]) == verbs
    assert names(answer.headers["Access-Control-Allow-Methods"]) == verbs
    assert {"authorization", "traceparent"} <= names(answer.headers["Access-Control-Allow-Headers"])
    assert answer.headers["Access-Control-Allow-Origin"] == FRIEND
    assert stranger.send("OPTIONS", target, b"", {"Origin": FOREIGN, **asks}).status == 403


def test_what_anybody_may_know_any_page_may_read(small_house: House) -> None:
    server = {"RUNG_AUTHORIZATION_SERVERS": "https://as.example.com"}
    run_command(small_house, "grant", "map", *server.values(), "ada", small_house.grant()[0])
    api = Api(small_house.application(**server), None)
    answer = api.get("/.well-known/oauth-protected-resource", Origin=FOREIGN)
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, "*")
    asked = api.send("OPTIONS", "/.well-known/oauth-protected-resource", b"", {"Origin": FOREIGN})
    assert (asked.status, asked.headers["Access-Control-Allow-Origin"]) == (204, "*")


# Verbs, and what is refused before it is read.


def test_every_route_answers_head_as_get_without_the_body(api: Api) -> None:
    assert not isinstance(api.app, str)
    targets = [
        rule.rule
        for rule in api.app.url_map.iter_rules()
        if "GET" in (rule.methods or ()) and not rule.arguments
    ]
    assert len(targets) > 10 and all(api.get(target).status == 200 for target in NAMED)
    for target in (*targets, *NAMED):
        for sent in ({}, {"Accept": "text/html"}):
            whole, head = api.get(target, **sent), api.send("HEAD", target, b"", sent)
            assert (head.status, head.body) == (whole.status, b""), target
            assert steady(head, target) == steady(whole, target), target


def steady(answer: Answer, target: str) -> dict[str, str]:
    """The headers of an answer, without those that differ from one request to the next."""
    changing = {"Server-Timing", "Content-Length"} if target == "/metrics" else {"Server-Timing"}
    return {name: text for name, text in answer.headers.items() if name not in changing}


def test_every_route_answers_options_with_its_verbs(api: Api) -> None:
    assert not isinstance(api.app, str)
    rules = [rule for rule in api.app.url_map.iter_rules() if rule.methods and not rule.arguments]
    assert len(rules) > 10
    for rule in rules:
        options = api.send("OPTIONS", rule.rule, b"", {})
        assert options.status == 204 and "OPTIONS" in names(options.headers["Allow"]), rule
        refused = api.send("DELETE", rule.rule, b"", {})
        assert refused.status == 405, rule
        assert names(refused.headers["Allow"]) == names(options.headers["Allow"]), rule


def test_every_answer_says_that_it_is_what_it_says(api: Api) -> None:
    for target in ("/", "/healthz", SEARCH, PAPERS, "/nowhere", BLOB, "/metrics"):
        answer = api.get(target)
        assert answer.headers["X-Content-Type-Options"] == "nosniff", target
        assert answer.headers["Referrer-Policy"] == "no-referrer", target
        assert answer.headers["Request-Id"] if target.startswith("/v1") else True


def exchange(server: Operated, sent: bytes) -> tuple[bytes, dict[str, object]]:
    """(status line, error) of the answer to these bytes, on a new connection."""
    split = urlsplit(server.url)
    with socket.create_connection((split.hostname, split.port or 0), timeout=WAIT_SECONDS) as line:
        line.sendall(sent)
        head, _, body = line.makefile("rb").read().partition(b"\r\n\r\n")
    error: dict[str, object] = orjson.loads(body)["error"]
    return head.split(b"\r\n")[0], error


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /v1/search?q=" + b"x" * 9_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nX-Large: " + b"x" * 70_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X-Many: x\r\n" * 200 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_body_of_all_errors(
    server: Operated, sent: bytes, status: bytes
) -> None:
    line, error = exchange(server, sent)
    assert line.split()[1] == status
    assert set(error) == {"type", "code", "message", "request_id"}
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("target", ["/mcp", "/v1/search"])
@pytest.mark.parametrize("known", [True, False])
def test_a_body_that_is_refused_does_not_break_the_connection_of_its_sender(
    small_house: House, server: Operated, target: str, known: bool
) -> None:
    """The whole body is sent before the answer is read, as most clients do."""
    token = small_house.grant()[1] if known else "rung_of-nobody"
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=WAIT_SECONDS)
    body = b" " * (BUDGETS.drained_bytes - BUDGETS.body_bytes)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    for _ in range(3):
        connection.request("POST", target, body, headers)
        response = connection.getresponse()
        assert response.status == (413 if known else 401)
        assert orjson.loads(response.read())["error"]
    connection.close()


def test_an_old_client_gets_a_length_and_the_end_of_its_connection(server: Operated) -> None:
    split = urlsplit(server.url)
    with socket.create_connection((split.hostname, split.port or 0), timeout=WAIT_SECONDS) as line:
        line.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        head, _, body = line.makefile("rb").read().partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: %d\r\n" % len(body) in head and b"chunked" not in head
