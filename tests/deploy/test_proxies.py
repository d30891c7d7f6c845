"""Clients get the same answers through nginx: as we configure it, and as it comes."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.helpers.demo import journey, serving_demo
from tests.helpers.server import ROOT

SITE = (ROOT / "docs/deploy/nginx.conf").read_text(encoding="utf-8")
#: What comes with nginx: HTTP/1.0 to the upstream, buffered, compressed, `Host` of the upstream.
PLAIN = "server { listen 443 ssl; gzip on; gzip_types application/json; gzip_proxied any; "
PLAIN += "location / { proxy_pass http://127.0.0.1:8000; } }"
NGINX = """
{user} daemon off; pid {folder}/pid; error_log stderr warn; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
  fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  {site}
}}
"""


@contextmanager
def nginx(site: str, upstream: str, folder: Path) -> Iterator[str]:
    """nginx with `site` on a free port, over plain HTTP, in front of `upstream`."""
    with create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    site = re.sub(r"^\s*ssl_.+$", "", site, flags=re.MULTILINE)
    site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    site = site.replace("127.0.0.1:8000", upstream.removeprefix("http://"))
    config = folder / "nginx.conf"
    # Its workers become nobody where root starts it, and then own no folder of ours.
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(NGINX.format(user=user, folder=folder, site=site), encoding="utf-8")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    subprocess.run([program, "-t", "-c", config], check=True, capture_output=True)
    server = subprocess.Popen([program, "-c", config])
    try:
        base = f"http://127.0.0.1:{port}"
        _await(base, server)
        yield base
    finally:
        server.terminate()
        server.wait()


def _await(base: str, server: subprocess.Popen[bytes]) -> None:
    """Returns when nginx listens."""
    while server.poll() is None:
        try:
            urlopen(f"{base}/healthz").close()
            return
        except HTTPError:
            return
        except OSError:
            continue
    raise RuntimeError("nginx ended before it answered")


@pytest.fixture(scope="module")
def direct() -> Iterator[tuple[str, str]]:
    with serving_demo() as (url, token):
        yield url.removesuffix("/mcp"), token


@pytest.fixture(params=[SITE, PLAIN], ids=["as documented", "as it comes"])
def proxied(
    request: pytest.FixtureRequest, direct: tuple[str, str], tmp_path: Path
) -> Iterator[str]:
    with nginx(request.param, direct[0], tmp_path) as base:
        yield base


def test_a_journey_is_the_same_through_the_proxy(proxied: str, direct: tuple[str, str]) -> None:
    base, token = direct
    assert journey(f"{proxied}/mcp", token) == journey(f"{base}/mcp", token)


def answer(base: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
    """Status and JSON of an answer, whatever the status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urlopen(Request(base + path, body, named)) as found:
            return found.status, json.load(found)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/search?q=lantern", {}),
        ("/v1/search?q=lantern", {"Authorization": "Bearer rung_wrong"}),
        ("/v1/nowhere", {}),
        ("/mcp", {}),
    ],
)
def test_an_error_reaches_the_client_as_rung_wrote_it(
    proxied: str, direct: tuple[str, str], path: str, headers: dict[str, str]
) -> None:
    def told(base: str) -> tuple[int, Any]:
        return answer(base, path, Request_Id="same", **headers)

    assert told(proxied) == told(direct[0])
    assert told(proxied)[0] >= 400


def test_a_body_over_the_limit_is_refused_with_words(
    direct: tuple[str, str], tmp_path: Path
) -> None:
    body = b'"' + b"x" * 1_100_000 + b'"'
    kind, token = {"Content_Type": "application/json"}, f"Bearer {direct[1]}"
    with nginx(SITE, direct[0], tmp_path) as base:
        status, told = answer(base, "/mcp", body, Authorization=token, **kind)
    assert status == 413 and "larger than" in told["error"]["message"]
