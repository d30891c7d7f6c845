"""`rung doctor URL`: each way to break a way to a server is named, with the line to change."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import orjson
import pytest
from click.testing import CliRunner, Result

from service.__main__ import rung
from service.doctor import remote
from tests.helpers import fronts, small
from tests.helpers.asset_server import asset_server, certificate
from tests.helpers.fronts import front
from tests.helpers.loopback import Asked, Reply, answering, as_json, free_port, silent
from tests.helpers.papers import Library
from tests.helpers.server import serving
from tests.helpers.stores import build
from tests.helpers.worlds import House

APP = "service.app:create_app()"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
NO_PROXIES = {name: None for upper in PROXIES for name in (upper, upper.lower())}
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Server:
    """A running Rung over a small store, and a token for it."""

    url: str
    token: str
    house: House


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    house = build(small.connections(), tmp_path_factory.mktemp("doctor"))
    _, token = house.grant()
    with serving(APP, {**house.environment, "RUNG_ALLOWED_HOSTS": "127.0.0.1"}) as url:
        yield Server(url, token, house)


@dataclass(frozen=True)
class Report:
    """What the doctor said: verdict, text, meaning and change by step."""

    exit_code: int
    steps: dict[str, dict[str, str]]

    def verdict(self, step: str) -> str:
        return self.steps[step]["verdict"]

    def failed(self) -> list[str]:
        return [name for name, found in self.steps.items() if found["verdict"] == "fail"]


def run(*words: str, **environ: str | None) -> Result:
    found = {**NO_PROXIES, "RUNG_TOKEN": None, "REQUESTS_CA_BUNDLE": None, **environ}
    return CliRunner().invoke(rung, ["doctor", *words], env=found)


def report(url: str, token: str | None = None, **environ: str | None) -> Report:
    result = run(url, "--json", RUNG_TOKEN=token, **environ)
    assert token is None or token not in result.output + result.stderr
    body = orjson.loads(result.stdout)
    found = Report(result.exit_code, {step["step"]: step for step in body["steps"]})
    assert body["failed"] is bool(found.failed()) is bool(result.exit_code)
    for step in found.steps.values():
        assert step["verdict"] not in ("fail", "warn") or (step["meaning"] and step["change"])
    return found


def test_a_server_in_order_passes_every_step(server: Server) -> None:
    result = run(server.url, RUNG_TOKEN=server.token)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert all(line.startswith("ok ") for line in lines[:-1]), result.output
    assert "2026-07-28" in result.output and "2025-11-25" in result.output
    assert "6 tools" in result.output and "bytes in" in result.output
    assert lines[-1] == "No step failed (12 steps)."
    assert server.token not in result.output


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/mcp/"])
def test_the_address_may_name_the_server_or_its_endpoint(server: Server, path: str) -> None:
    found = report(server.url.removeprefix("http://") + path, server.token)
    assert found.exit_code == 0, found
    assert f"its endpoint is {server.url}/mcp" in found.steps["address"]["told"]


def test_a_token_may_come_from_a_file(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(server.token + "\n")
    assert "accepted" in run(server.url, "--token-file", str(file)).output


def test_without_a_token_what_needs_none_is_looked_at(server: Server) -> None:
    found = report(server.url)
    assert found.exit_code == 0
    assert found.verdict("auth") == "warn" and "RUNG_TOKEN" in found.steps["auth"]["change"]
    assert [found.verdict(name) for name in ("post", "headers", "challenge")] == ["ok"] * 3
    assert [found.verdict(name) for name in ("era", "tools", "search")] == ["skip"] * 3


@pytest.mark.parametrize("path", ["", "/mcp/papers"])
def test_open_papers_need_no_token(papers: Library, path: str) -> None:
    found = report(f"{papers.api.app}{path}")
    assert found.exit_code == 0, found
    assert found.steps["auth"]["told"] == "no token is needed"
    assert "Mcp-Name" in found.steps["headers"]["told"]
    assert "search_papers" in found.steps["search"]["told"]


def test_a_token_nobody_knows_is_named(server: Server) -> None:
    found = report(server.url, "rung_" + "x" * 43)
    assert found.failed() == ["auth"] and "rung grant create" in found.steps["auth"]["change"]
    assert "to another store" in found.steps["auth"]["meaning"]


def test_a_revoked_token_is_named(server: Server) -> None:
    grant_id, token = server.house.grant()
    server.house.revoke(grant_id)
    found = report(server.url, token)
    assert found.failed() == ["auth"] and "revoked" in found.steps["auth"]["told"]


# (how the front is broken, the step that fails, what it says, what to change)
BROKEN = {
    "https": (fronts.redirecting("https://127.0.0.1{}"), "post", "redirected (301)", "https://"),
    "slash": (fronts.redirecting("{}/", 308), "post", "redirected (308)", "not to redirect"),
    "elsewhere": (
        fronts.redirecting("https://login.example/start", 302),
        *("post", "login.example/start", "https://login.example"),
    ),
    "page": (fronts.saying(200), "post", "Company sign-in & access", "Exempt"),
    "sign-in": (fronts.saying(403), "post", "Server: gateway/1.0", "Exempt"),
    "down": (fronts.saying(502), "post", "returned 502 from something in front", "Start Rung"),
    "no-post": (
        fronts.saying(405),
        "post",
        "returned 405",
        "the method and the path /mcp unchanged",
    ),
    "small": (fronts.saying(413), "post", "returned 413", "client_max_body_size"),
    "no-mcp": (fronts.saying(404), "post", "returned 404", "location /"),
    "credentials": (fronts.saying(407), "post", "requires credentials", "USER:PASSWORD"),
    "nonsense": (
        fronts.saying(200, b"[]", Content_Type="application/json"),
        *("post", "returned 200", "is the endpoint"),
    ),
    "no-bearer": (fronts.without("authorization"), "headers", "Authorization", "to forward"),
    "no-version": (
        fronts.without("mcp-protocol-version"),
        *("headers", "MCP-Protocol-Version does not arrive", "Mcp-Name"),
    ),
    "no-method": (
        fronts.without("mcp-method"),
        *("headers", "Mcp-Method does not arrive", "Mcp-Method"),
    ),
    "no-name": (fronts.without("mcp-name"), "headers", "Mcp-Name does not arrive", "Mcp-Name"),
    "bodies-401": (
        fronts.rewriting(401),
        *("challenge", "lacks Rung's body", "proxy_intercept_errors off;"),
    ),
    "bodies-400": (
        fronts.rewriting(400),
        *("era", "lacks its JSON body", "proxy_intercept_errors off;"),
    ),
    "challenge": (fronts.unchallenged, "challenge", "lacks the challenge", "WWW-Authenticate"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_front_is_named_with_the_line_to_change(server: Server, name: str) -> None:
    bend, step, told, change = BROKEN[name]
    with front(server.url, bend) as broken:
        found = report(broken.url, server.token)
    assert found.exit_code == 1 and found.failed() == [step], found
    assert told in found.steps[step]["told"]
    assert change in found.steps[step]["change"]


def test_a_removed_token_is_told_once_and_what_needs_it_is_skipped(server: Server) -> None:
    with front(server.url, fronts.without("authorization")) as broken:
        found = report(broken.url, server.token)
    assert [found.verdict(name) for name in ("auth", "era", "tools", "search")] == ["skip"] * 4
    assert "Authorization" in found.steps["auth"]["told"]


def test_older_clients_go_on_where_newer_headers_are_removed(server: Server) -> None:
    with front(server.url, fronts.without("mcp-method", "mcp-name")) as broken:
        found = report(broken.url, server.token)
    assert found.failed() == ["headers"]
    assert [found.verdict(name) for name in ("auth", "tools", "search")] == ["ok"] * 3


def test_a_proxy_page_everywhere_is_told_at_its_first_step(server: Server) -> None:
    with answering(lambda asked: Reply(200, fronts.PAGE, fronts.HTML)) as page:
        found = report(page.url, server.token)
    assert found.failed() == ["post"]
    assert "Company sign-in" in found.steps["post"]["told"]


def test_a_server_that_hangs_is_left_alone_and_the_step_is_named(server: Server) -> None:
    until = Event()
    try:
        with front(
            server.url, fronts.hanging(b'"arguments":{"query":"the","limit"', until)
        ) as slow:
            steps = {
                found.step: found for found in remote.look(slow.url, server.token, NOW, seconds=0.5)
            }
            until.set()
    finally:
        until.set()
    assert steps["search"].verdict == "FAIL" and "timed out after 0.5" in steps["search"].message
    assert [name for name, found in steps.items() if found.verdict == "FAIL"] == ["search"]


def test_a_port_that_accepts_and_says_nothing_is_named() -> None:
    with silent() as url:
        steps = {found.step: found for found in remote.look(url, None, NOW, seconds=0.2)}
    assert steps["tcp"].verdict == "ok" and steps["post"].verdict == "FAIL"
    assert "server's log" in steps["post"].change


def test_a_closed_port_and_a_name_without_an_address_are_named() -> None:
    port = free_port()
    found = report(f"http://127.0.0.1:{port}")
    assert found.failed() == ["tcp"] and f"--port {port}" in found.steps["tcp"]["change"]
    found = report("https://rung.invalid/mcp")
    assert found.failed() == ["dns"] and found.verdict("tcp") == "skip"


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://[", "http://a:port"])
def test_what_is_no_address_is_told(url: str) -> None:
    found = report(url)
    assert found.failed() == ["address"]
    assert all(found.verdict(name) == "skip" for name in list(found.steps)[1:])


def test_a_password_in_the_address_is_not_repeated(server: Server) -> None:
    found = report(server.url.replace("http://", "http://me:s3cret@"), server.token)
    assert found.verdict("address") == "warn" and "s3cret" not in str(found)


def test_a_host_that_is_not_allowed_is_told_with_the_setting(server: Server) -> None:
    found = report(server.url.replace("127.0.0.1", "localhost"), server.token)
    assert found.failed() == ["post"]
    assert found.steps["post"]["change"] == "RUNG_ALLOWED_HOSTS=localhost"


def test_metadata_for_another_address_is_told_with_the_setting(server: Server) -> None:
    def elsewhere(asked: Asked) -> Reply:
        body = {"resource": "https://other.example.com/mcp", "authorization_servers": []}
        return Reply(200, orjson.dumps(body), {"Content-Type": "application/json"})

    with answering(elsewhere) as documents:
        challenge = f'Bearer realm="rung", resource_metadata="{documents.url}/metadata"'

        def bend(asked: Asked, passed: object) -> Reply:
            headers = {"WWW-Authenticate": challenge, "Content-Type": "application/json"}
            return Reply(401, b'{"error":{}}', headers)

        with front(server.url, bend) as broken:
            found = report(broken.url)
    assert "challenge" in found.failed()
    assert found.steps["challenge"]["change"] == f"RUNG_PUBLIC_URL={broken.url}"


def test_certificates_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "old").mkdir()
    path, tls = certificate(tmp_path / "good")
    with asset_server({}, tls=tls) as server:
        found = report(server.url)
        assert found.failed() == ["tls"] and "is self-signed" in found.steps["tls"]["told"]
        assert "REQUESTS_CA_BUNDLE" in found.steps["tls"]["change"]
        assert found.verdict("post") == "skip"
        trusted = report(server.url, REQUESTS_CA_BUNDLE=str(path))
        assert trusted.verdict("tls") == "ok" and "loopback" in trusted.steps["tls"]["told"]
        named = report(server.url.replace("127.0.0.1", "localhost"), REQUESTS_CA_BUNDLE=str(path))
        assert "is not for localhost" in named.steps["tls"]["told"]
    path, tls = certificate(tmp_path / "old", datetime(2021, 1, 1))
    with asset_server({}, tls=tls) as server:
        found = report(server.url, REQUESTS_CA_BUNDLE=str(path))
        assert "has expired" in found.steps["tls"]["told"]
        assert "Renew" in found.steps["tls"]["change"]


def test_a_certificate_that_ends_soon_is_warned_of(tmp_path: Path) -> None:
    path, tls = certificate(tmp_path)
    soon = datetime(2119, 12, 30, tzinfo=UTC)
    with asset_server({}, tls=tls) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", str(path))
        steps = {found.step: found for found in remote.look(server.url, None, soon)}
    assert steps["tls"].verdict == "warn" and "Renew" in steps["tls"].change


def test_https_where_http_is_spoken_is_named(server: Server) -> None:
    found = report(server.url.replace("http://", "https://"))
    assert found.failed() == ["tls"] and "http://127.0.0.1" in found.steps["tls"]["change"]


#: How to reach an origin is kept, so no other test may have asked this one.
NEVER_ASKED = "http://127.0.0.1:19"


def test_a_proxy_in_use_is_told_and_gone_through(server: Server) -> None:
    with answering(lambda asked: Reply(407, fronts.PAGE, fronts.HTML)) as proxy:
        found = report(NEVER_ASKED, server.token, HTTP_PROXY=proxy.url)
        assert found.verdict("proxy") == "warn" and "NO_PROXY=" in found.steps["proxy"]["change"]
        assert "proxy" in found.steps["dns"]["told"]
        assert "requires credentials" in found.steps["post"]["told"]
        assert proxy.asked[0].target == f"{NEVER_ASKED}/mcp"
        asked = len(proxy.asked)
        with front(server.url, fronts.without()) as fresh:
            again = report(fresh.url, server.token, HTTP_PROXY=proxy.url, NO_PROXY="127.0.0.1")
        assert len(proxy.asked) == asked
        assert again.exit_code == 0 and again.verdict("proxy") == "ok"


def test_a_proxy_that_opens_no_way_to_tls_is_named() -> None:
    with fronts.tunnels("403 Forbidden") as proxy:
        found = report("https://rung.example.com", HTTPS_PROXY=proxy.url)
    assert found.failed() == ["tls"] and "403 Forbidden" in found.steps["tls"]["told"]
    assert "rung.example.com" in found.steps["tls"]["change"]
    assert proxy.asked == ["CONNECT rung.example.com:443 HTTP/1.0"]


def test_a_proxy_of_another_kind_is_named() -> None:
    found = report("https://rung.example.com", HTTPS_PROXY="socks5://127.0.0.1:1080")
    assert found.failed() == ["proxy"] and "HTTPS_PROXY=http://" in found.steps["proxy"]["change"]


def test_what_a_server_says_cannot_steer_the_terminal() -> None:
    page = b"<title>a\x1b[2Jb\nc</title>"
    headers = {"Content-Type": "text/html", "Server": "x\x1b[31m", "Location": "/\x1b]0;x"}
    for status in (200, 301, 404):
        with answering(lambda asked: Reply(status, page, headers)) as hostile:
            output = run(hostile.url).output
        assert "\x1b" not in output and all(line[0] in "ofsw FN123" for line in output.splitlines())


def test_tls_is_looked_at_through_a_proxy(tmp_path: Path) -> None:
    path, tls = certificate(tmp_path)
    with asset_server({}, tls=tls) as server, fronts.tunnels() as proxy:
        environ = {"HTTPS_PROXY": proxy.url, "NO_PROXY": "", "REQUESTS_CA_BUNDLE": str(path)}
        found = report(server.url, **environ)
    assert found.verdict("tls") == "ok" and "loopback" in found.steps["tls"]["told"]
    assert proxy.asked[0].startswith("CONNECT 127.0.0.1:")


# (method, what a server answers to it): JSON of shapes no server should send
SHAPES: dict[str, tuple[str, object]] = {
    "no-list-of-tools": ("tools/list", {"tools": 5}),
    "no-list-of-blocks": ("tools/call", {"isError": True, "content": {"a": 1}}),
    "no-blocks": ("tools/call", {"isError": True, "content": []}),
    "words-without-end": ("tools/list", {"tools": [{"name": "x" * 500_000}]}),
    "characters-that-steer": ("tools/list", {"tools": [{"name": "\x9b31m\u202e"}]}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_of_any_shape_is_told_in_a_few_lines(shape: str) -> None:
    method, result = SHAPES[shape]
    said = {"tools/list": {"tools": [{"name": "search"}]}, method: result}

    def answer(asked: Asked) -> Reply:
        if asked.method == "GET":
            return as_json({"status": "ok"})
        called = orjson.loads(asked.body)
        if called["method"] == "ping" and "_meta" in called["params"]:
            return as_json({"error": {"code": -32_022, "message": "no"}}, 400)
        return as_json({"result": said.get(called["method"], {"protocolVersion": "2025-06-18"})})

    with answering(answer) as hostile:
        for words in ((), ("--json",)):
            told = run(hostile.url, *words)
            assert isinstance(told.exception, (SystemExit, type(None))), told.exception
            assert len(told.output) < 10_000 and told.output.replace("\n", "").isprintable()


def test_a_page_of_half_titles_is_looked_through_once() -> None:
    page = b"<title" * 170_000
    with answering(lambda asked: Reply(200, page, {"Content-Type": "text/html"})) as hostile:
        assert "an HTML page" in run(hostile.url).output
