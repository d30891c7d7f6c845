"""`rung stdio` in front of a PDPP provider: whose token it uses, what a bad provider costs."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service import credentials
from service.mcp.surface import RecordsSurface
from service.mcp.stdio import serve
from service.operations.base import Session
from service.sources.remote.origin import Origin
from service.sources.remote.remote_authority import RemoteAuthority
from tests.helpers.loopback import free_port, running, silent
from tests.helpers.caller import Local
from tests.helpers.posting import legacy_body
from tests.helpers.stdio import ERAS, started, stdio
from tests.helpers.waiting import WAIT_SECONDS
from tests.helpers.worlds import House
from tests.spec.scenarios import scenario

pytestmark = pytest.mark.slow

CLIENT, OWNER, DEAD = "at_client-secret", "at_opaque-owner-secret", "at_dead-secret"
BOTH = pytest.mark.parametrize("era", ERAS)
OWNERS_SCHEMA = Path(__file__).parents[1] / "data" / "pdpp" / "schema_compact_owner.json"
HERE = {"NO_PROXY": "127.0.0.1"}

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("schema", {}),
    ("search", {"query": "invoice number", "words": "all"}),
    ("read_record_field", {"id": "mail-work/messages:m_long", "field_path": "body"}),
    ("fetch", {"id": "mail-work/messages:m_002"}),
    ("query_records", {"stream": "messages", "connection_id": "mail-work", "limit": 2}),
)


class Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Logs nothing."""


class Provider:
    """`/v1` of a store, opened by the tokens of another server."""

    def __init__(self, house: House, token: str) -> None:
        self._tokens = {CLIENT: token}
        self._house = house

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        told = environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
        if told == OWNER:
            start("200 OK", [("Content-Type", "application/json")])
            return [orjson.dumps(orjson.loads(OWNERS_SCHEMA.read_bytes())["body"])]
        environ["HTTP_AUTHORIZATION"] = f"Bearer {self._tokens.get(told, 'rung_unknown')}"
        return self._house.app(environ, start)


@contextmanager
def listening(provider: Provider, port: int = 0) -> Iterator[str]:
    """Serves a provider on loopback; yields its address."""
    server = make_server("127.0.0.1", port, provider, threaded=True, request_handler=Quiet)
    with server, running(server):
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def provider(small_house: House, small: Local) -> Provider:
    return Provider(small_house, small.headers["Authorization"].removeprefix("Bearer "))


@pytest.fixture(scope="module")
def url(provider: Provider) -> Iterator[str]:
    with listening(provider) as found:
        yield found


def cached(root: Path, url: str, token: str) -> Path:
    """A cache with a credential for a provider, as `pdpp connect` writes it."""
    path = credentials.cache_file(root, url)
    path.parent.mkdir()
    path.write_bytes(orjson.dumps({"provider_url": url, "credential": {"access_token": token}}))
    path.chmod(0o600)
    return root


@BOTH
def test_a_provider_is_read_with_the_cached_token(
    era: str, url: str, small: Local, tmp_path: Path
) -> None:
    root = cached(tmp_path, url, CLIENT)
    with stdio("--provider-url", f"{url}/", "--cache-root", root, **HERE) as pipe:
        here, there = pipe.caller(ERAS[era]), ERAS[era](small._post, "")
        there.headers.update(small.headers)
        for tool, arguments in CALLS:
            found = here.ok(tool, **arguments)
            assert found.structured == there.ok(tool, **arguments).structured
        assert pipe.close() == (0, b"")
        (line,) = pipe.log().splitlines()
        assert url in line and CLIENT not in line


@scenario("004/owner/owner-tokens-refused")
@pytest.mark.parametrize(("token", "code"), [(OWNER, 77), (DEAD, 78)])
def test_an_opaque_token_is_found_out_by_asking(
    url: str, tmp_path: Path, token: str, code: int
) -> None:
    root = cached(tmp_path, url, token)
    process = started("--cache-root", root, RUNG_UPSTREAM_URL=url, **HERE)
    out, log = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, out) == (code, b"")
    assert token.encode() not in log and f"pdpp connect {url}".encode() in log


def test_the_command_line_comes_before_the_environment(
    url: str, small_house: House, small: Local
) -> None:
    token = small.headers["Authorization"].removeprefix("Bearer ")
    more = {"RUNG_UPSTREAM_URL": url, "RUNG_TOKEN": token}
    with stdio("--store", small_house.path, **more) as pipe:
        pipe.caller().ok("schema")
        assert str(small_house.path) in pipe.log()


def test_the_environment_comes_before_the_configuration_file(
    url: str, small_house: House, small: Local, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'provider_url = "{url}"\n', encoding="utf-8")
    token = small.headers["Authorization"].removeprefix("Bearer ")
    more = {"RUNG_STORE": str(small_house.path), "RUNG_CONFIG": str(config), "RUNG_TOKEN": token}
    with stdio(**more) as pipe:
        pipe.caller().ok("schema")
        assert str(small_house.path) in pipe.log()


def test_a_provider_may_come_and_go(provider: Provider) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with stdio("--provider-url", url, RUNG_TOKEN=CLIENT, **HERE) as pipe:
        caller = pipe.caller()
        assert caller.result("tools/list")["tools"]
        assert "has not checked the token" in pipe.log()
        with listening(provider, port):
            caller.ok("schema")
        assert caller.fails("schema").error["code"] == "upstream_unreachable"
        assert caller.result("tools/list")["tools"]


def test_a_hung_provider_costs_each_call_its_deadline_and_nothing_more() -> None:
    messages = [
        legacy_body("tools/call", {"name": "schema", "arguments": {}}),
        legacy_body("resources/read", {"uri": "pdpp://stream/notes"}),
        legacy_body("ping"),
    ]
    patience = Deadline.after(BUDGETS.start_seconds)
    with silent() as url:
        authority = RemoteAuthority(Origin(url))
        source, out = io.BytesIO(b"\n".join(map(orjson.dumps, messages))), io.BytesIO()
        serve(
            RecordsSurface(),
            lambda: Session(authority.open(CLIENT, Deadline.after(0.2))),
            source,
            out,
        )
    call, read, ping = map(orjson.loads, out.getvalue().splitlines())
    assert call["result"]["structuredContent"]["error"]["code"] == "upstream_timeout"
    assert read["error"]["data"]["code"] == "upstream_timeout"
    assert ping["result"] == {} and not patience.expired()
