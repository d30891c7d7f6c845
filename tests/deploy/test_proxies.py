"""Clients get the same answers through nginx, as we configure it and as it comes, and squid."""

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
from urllib.parse import urlsplit
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
#: In front of Rung, and for clients that must leave through it.
SQUID = """
{ports}
http_access allow all
cache deny all
access_log none
cache_log stdio:/dev/null
pid_filename none
coredump_dir /
pinger_enable off
shutdown_lifetime 0 seconds
"""


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def nginx(site: str, upstream: str, folder: Path) -> Iterator[str]:
    """nginx with `site` on a free port, over plain HTTP, in front of `upstream`."""
    port = _free_port()
    site = re.sub(r"^\s*ssl_.+$", "", site, flags=re.MULTILINE)
    site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    site = site.replace("127.0.0.1:8000", upstream.removeprefix("http://"))
    site = site.replace("/var/log/nginx", str(folder))
    config = folder / "nginx.conf"
    # Its workers become nobody where root starts it, and then own no folder of ours.
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(NGINX.format(user=user, folder=folder, site=site), encoding="utf-8")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    subprocess.run([program, "-t", "-c", config], check=True, capture_output=True)
    with _running([program, "-c", str(config)], f"http://127.0.0.1:{port}") as base:
        yield base


@contextmanager
def squid(upstream: str, folder: Path, *, forward: bool = False) -> Iterator[str]:
    """squid on a free port, in front of `upstream` or as the `forward` proxy of clients."""
    port, peer = _free_port(), urlsplit(upstream)
    ports = f"http_port 127.0.0.1:{port}"
    if not forward:
        ports += f" accel defaultsite={peer.hostname} no-vhost\ncache_peer {peer.hostname}"
        ports += f" parent {peer.port} 0 no-query originserver login=PASSTHRU"
    config = folder / "squid.conf"
    config.write_text(SQUID.format(ports=ports), encoding="utf-8")
    program = shutil.which("squid") or "/usr/sbin/squid"
    with _running([program, "-N", "-f", str(config)], f"http://127.0.0.1:{port}") as base:
        yield base


@contextmanager
def _running(command: list[str], base: str) -> Iterator[str]:
    server = subprocess.Popen(command)
    try:
        _await(base, server)
        yield base
    finally:
        server.terminate()
        server.wait()


def _await(base: str, server: subprocess.Popen[bytes]) -> None:
    """Returns when a proxy listens."""
    while server.poll() is None:
        try:
            urlopen(f"{base}/healthz").close()
            return
        except HTTPError:
            return
        except OSError:
            continue
    raise RuntimeError(f"{server.args!r} ended before it answered")


@pytest.fixture(scope="module")
def direct() -> Iterator[tuple[str, str]]:
    with serving_demo() as (url, token):
        yield url.removesuffix("/mcp"), token


@pytest.fixture(params=[SITE, PLAIN, None], ids=["as documented", "as it comes", "squid"])
def proxied(
    request: pytest.FixtureRequest, direct: tuple[str, str], tmp_path: Path
) -> Iterator[str]:
    site, upstream = request.param, direct[0]
    with nginx(site, upstream, tmp_path) if site else squid(upstream, tmp_path) as base:
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


def test_a_client_that_must_leave_through_squid_gets_the_same(
    direct: tuple[str, str], tmp_path: Path
) -> None:
    asked = Request(f"{direct[0]}/v1/schema", headers={"Authorization": f"Bearer {direct[1]}"})
    with urlopen(asked) as found:
        expected = json.load(found)
    with squid(direct[0], tmp_path, forward=True) as proxy:
        asked.set_proxy(proxy.removeprefix("http://"), "http")
        with urlopen(asked) as found:
            assert "squid" in found.headers["Via"] and json.load(found) == expected


def test_a_body_over_the_limit_is_refused_with_words(
    direct: tuple[str, str], tmp_path: Path
) -> None:
    body = b'"' + b"x" * 1_100_000 + b'"'
    kind, token = {"Content_Type": "application/json"}, f"Bearer {direct[1]}"
    with nginx(SITE, direct[0], tmp_path) as base:
        status, told = answer(base, "/mcp", body, Authorization=token, **kind)
    assert status == 413 and "larger than" in told["error"]["message"]
