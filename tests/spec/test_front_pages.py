"""`/` and `/connect`: what anyone may see without a token, and nothing else."""

import re
import shlex
from html import unescape
from pathlib import Path

import click
import pytest
from flask import Flask

from service import bootstrap, settings
from service.__main__ import rung
from service.cli.deferred import loaded
from service.app import create_app
from service.clients.table import CLIENTS, RECOMMENDED
from service.pages.blueprint import PLACEHOLDER
from service.place import Place, spelled
from service.access.tokens import PREFIX
from tests.helpers import canaries, worlds
from tests.helpers.api import Answer, Api
from tests.helpers.shell import root_context
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import House

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
PUBLIC = "https://rung.example.com"
PAGES = ["/", "/connect", "/connect?for=records", "/connect?for=papers"]
SNAPSHOT = DATA / "papers" / "snapshot.db"
CLOSED = "a-token-of-the-library"


def application(**environ: str) -> Flask:
    return create_app(bootstrap.build(settings.load(environ)))


def page(app: Flask, path: str, **headers: str) -> Answer:
    """A page as a browser without a token gets it."""
    return Api(app, None).get(path, Accept=BROWSER, **headers)


def text(app: Flask, path: str, **headers: str) -> str:
    """The page as a person reads it."""
    answer = page(app, path, **headers)
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/html")
    return str(answer.body.decode())


def pasted(html: str) -> list[str]:
    """The snippets that a page offers to paste, as the clipboard gets them."""
    blocks = re.findall(r"<pre><code>(.*?)</code></pre>", html, re.DOTALL)
    return [unescape(re.sub("<[^>]+>", "", block)) for block in blocks]


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A store in which every word is a secret, and papers as well."""
    world = canaries.world_of(canaries.plan())
    folder = tmp_path_factory.mktemp("secrets")
    return worlds.build(world, folder, RUNG_PAPERS_DB=str(SNAPSHOT))


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/json, text/html"])
def test_a_program_gets_the_discovery_index(secrets: House, accept: str | None) -> None:
    answer = Api(secrets.app, None).get("/", **({"Accept": accept} if accept else {}))
    assert answer.body["object"] == "pdpp_discovery_index"
    assert answer.headers["Content-Type"].startswith("application/json")
    assert "Accept" in answer.headers["Vary"]


def test_a_browser_gets_a_page(secrets: House) -> None:
    answer = page(secrets.app, "/")
    assert "<h1>" in answer.body.decode()
    assert "Accept" in answer.headers["Vary"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_tells_nothing_that_a_token_guards(secrets: House, path: str) -> None:
    _, token = secrets.grant()
    html = text(secrets.app, path, Authorization=f"Bearer {token}")
    assert not canaries.words_in(html)
    assert token not in html and PREFIX + "_" not in html


def test_editors_are_set_up_by_a_link(secrets: House) -> None:
    html = text(secrets.app, "/connect")
    (cursor,) = re.findall(r'href="(cursor:[^"]+)"', html)
    (vscode,) = re.findall(r'href="(vscode:[^"]+)"', html)
    assert "/mcp/install?name=rung&amp;config=" in cursor and PLACEHOLDER not in vscode


def test_open_papers_are_counted_and_closed_ones_are_not() -> None:
    build_id = Api(application(RUNG_PAPERS_DB=str(SNAPSHOT)), None).get("/readyz").body["papers"]
    named = (f"{build_id['papers']} papers", build_id["snapshot"])
    opened = application(RUNG_PAPERS_DB=str(SNAPSHOT))
    closed = application(RUNG_PAPERS_DB=str(SNAPSHOT), RUNG_PAPERS_TOKENS=CLOSED)
    assert all(word in text(opened, "/") for word in named)
    for path in PAGES:
        found = text(closed, path)
        assert not [word for word in (*named, CLOSED) if word in found]
    assert Api(closed, None).get("/readyz").body == {
        "status": "ready",
        "papers": {"status": "ready"},
    }


def test_a_server_behind_this_one_is_told_but_not_its_address() -> None:
    app = application(RUNG_UPSTREAM_URL="https://inner.example.net/deep")
    found = text(app, "/")
    assert "another PDPP resource server" in found and "inner.example.net" not in found


def test_a_store_that_is_not_there_is_said_with_what_to_do(tmp_path: Path) -> None:
    found = text(application(RUNG_STORE=str(tmp_path / "none.db")), "/")
    assert "Not ready" in found and "<code>rung import</code>" in found
    assert str(tmp_path) not in found


@pytest.mark.parametrize(
    "host",
    [
        '"><script>alert(1)</script>',
        "rung.example.com'; rm -rf ~ #",
        "user@evil.example",
        "zebra horse",
        "rung.example.com:80:80",
        "evil.example/path",
        "$(reboot)",
    ],
)
@pytest.mark.parametrize("path", PAGES)
def test_a_host_that_is_none_is_not_repeated(secrets: House, path: str, host: str) -> None:
    behind = application(**secrets.environment, RUNG_TRUSTED_PROXY_HOPS="1")
    html = text(behind, path, Host=host)
    assert "http://127.0.0.1:8000" in html
    assert host not in unescape(html) and "evil.example" not in html


@pytest.mark.parametrize("host", ["rung.example.com", "localhost:8000", "[::1]:8000", "10.0.0.7"])
def test_the_address_is_the_one_the_browser_used(secrets: House, host: str) -> None:
    behind = application(**secrets.environment, RUNG_TRUSTED_PROXY_HOPS="1")
    assert f"http://{host}/mcp" in text(behind, "/connect", Host=host)


def test_the_public_address_comes_before_the_browsers(secrets: House) -> None:
    app = application(**secrets.environment, RUNG_PUBLIC_URL=PUBLIC)
    for path in PAGES:
        found = text(app, path, Host="localhost:81")
        assert f"{PUBLIC}/mcp" in found and "localhost:81" not in found


def test_a_host_that_is_not_allowed_is_not_repeated(secrets: House) -> None:
    app = application(**secrets.environment, RUNG_ALLOWED_HOSTS="rung.example.com")
    refused = page(app, "/connect", Host="evil.example")
    assert refused.status == 403 and "evil.example" not in str(refused.body)
    assert "http://rung.example.com:81/mcp" in text(app, "/connect", Host="rung.example.com:81")


def test_a_surface_that_is_not_there_shows_the_first(secrets: House) -> None:
    assert text(secrets.app, "/connect?for=<script>") == text(secrets.app, "/connect")


@pytest.mark.parametrize(
    "path, mcp, token", [(PAGES[2], "/mcp", PLACEHOLDER), (PAGES[3], "/mcp/papers", "")]
)
def test_the_lines_are_those_of_the_clients(
    secrets: House, path: str, mcp: str, token: str
) -> None:
    app = application(**secrets.environment, RUNG_PUBLIC_URL=PUBLIC)
    html = text(app, path)
    shown = pasted(html)
    for client in (RECOMMENDED, *CLIENTS):
        lines = [snippet.text for snippet in client.snippets(PUBLIC + mcp, token)]
        assert not [line for line in lines if line not in shown], client.name
    for client in CLIENTS:
        assert f'id="{client.name}"' in html


def test_every_rung_command_of_the_pages_is_one(secrets: House) -> None:
    found = [line for path in PAGES for line in pasted(text(secrets.app, path))]
    commands = {line for line in found if line.startswith("rung ")}
    assert {line.split()[1] for line in commands} == {"connect", "doctor", "grant"}
    for line in commands:
        command: click.Command = rung
        words = shlex.split(line)[1:]
        while isinstance(command, click.Group):
            command, words = loaded(command.commands[words[0]]), words[1:]
        command.make_context(line, words, root_context())


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_code_and_no_style_within(secrets: House, path: str) -> None:
    answer = page(secrets.app, path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    html = answer.body.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html)
    assert all(" src=" in tag for tag in re.findall("<script[^>]*>", html))
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", html), "a page asks nobody else"


def test_a_browser_at_the_endpoint_is_told_of_the_page(secrets: House) -> None:
    answer = page(secrets.app, "/mcp")
    assert answer.status == 405 and "POST" in answer.headers["Allow"]
    assert "/connect" in answer.body["error"]["data"]["hint"]


@pytest.mark.parametrize("path", ["/connct", "/docs/none", "/nothing/at/all", "/v1x"])
def test_a_browser_at_an_unknown_address_gets_a_page_with_ways_on(
    secrets: House, path: str
) -> None:
    answer = page(secrets.app, path)
    html = answer.body.decode()
    assert answer.status == 404 and answer.headers["Content-Type"].startswith("text/html")
    assert "Accept" in answer.headers["Vary"] and "default-src 'none'" in html_policy(answer)
    for link in ("/", "/connect", "/docs/api", "/openapi.json", "/llms.txt"):
        assert f'href="{link}"' in html
    assert path not in html, "nothing a visitor sends is repeated"


@pytest.mark.parametrize("path", ["/v1/nothing", "/papers/v1/nothing", "/mcp/nothing", "/v1"])
def test_a_browser_gets_json_where_programs_ask(secrets: House, path: str) -> None:
    answer = page(secrets.app, path)
    assert answer.status == 404 and answer.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize("accept", ["*/*", "application/json"])
def test_a_program_at_an_unknown_address_gets_json(secrets: House, accept: str) -> None:
    answer = Api(secrets.app, None).get("/nothing", Accept=accept)
    assert answer.status == 404 and answer.body["error"]["code"] == "not_found"
    posted = Api(secrets.app, None).send("POST", "/nothing", b"", {"Accept": BROWSER})
    assert posted.status == 404 and posted.headers["Content-Type"].startswith("application/json")


def html_policy(answer: Answer) -> str:
    return str(answer.headers["Content-Security-Policy"])


def test_the_operator_may_name_the_server_and_show_what_is_in_the_store(
    demo_store: tuple[Place, str],
) -> None:
    given = {"RUNG_STORE": spelled(demo_store[0]), "RUNG_TITLE": "Ada's year <b>"}
    closed = text(application(**given), "/")
    assert "Ada&#39;s year &lt;b&gt;</h1>" in closed
    assert "555 records" not in closed and "Work mail" not in closed
    shown = text(application(**given, RUNG_SHOW_CONTENTS="on"), "/")
    assert "555 records from 6 sources, 12 May 2025 to" in shown
    for words in ("Work mail", "Mail threads", "Giro account"):
        assert words in shown
