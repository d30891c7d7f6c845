"""Checks a server in the order of a client's steps, from its address to one search."""

import re
import ssl
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from evidence.errors import ENDED
from evidence.limits import BUDGETS
from evidence.values import AUTHORIZATION_SERVER
from evidence.work import Deadline
from service.addresses import DEFAULT_PORTS, MCP, is_loopback, split_endpoint, with_scheme
from service.doctor.findings import Finding, Step, ok, problem, skip, walk
from service.doctor.route import NOBODY, Route, Stopped, foreign_answer, message
from service.mcp.faults import HEADER_MISMATCH, UNSUPPORTED_VERSION
from service.mcp.versions import LEGACY, MODERN
from service.sources.remote import health_check, outbound
from service.sources.remote.health_check import ProxyRefused

MODERN_HEADERS: Final = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
HEADER_NAME: Final = re.compile(r"The (\S+) header")
METADATA: Final = re.compile(r'resource_metadata="([^"]+)"')
SEARCHES: Final = ("search", "search_papers")
QUERY: Final = "the"
NOTHING: Final = "no reason given"
UNKNOWN_REVISION: Final = "1999-01-01"
INITIALIZE: Final[dict[str, Any]] = {
    "protocolVersion": LEGACY[0],
    "capabilities": {},
    "clientInfo": {"name": "rung-doctor", "version": "1"},
}


def address(route: Route) -> Finding:
    """Reports the addresses of the server and its endpoint."""
    text = with_scheme(route.url)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        return problem("url-unparsable")
    if parts.scheme not in DEFAULT_PORTS or not host:
        return problem("url-incomplete")
    name = f"[{host}]" if ":" in host else host
    path, ending = split_endpoint(parts.path)
    route.base = f"{parts.scheme}://{name}{f':{port}' if port else ''}{path}"
    route.endpoint = route.base + ending
    server = f"the server is {route.base}, and its endpoint is {route.endpoint}"
    if parts.username or parts.query or parts.fragment:
        return problem("url-with-more", route=route, server=server)
    if parts.scheme == "http" and not is_loopback(text):
        return problem("url-without-tls", server=server, netloc=parts.netloc)
    return ok(server)


def proxy(route: Route) -> Finding:
    """Checks whether requests go through a proxy."""
    proxy_url, route.trusted = outbound.proxy_and_certificates(route.base)
    scheme = urlsplit(route.base).scheme.upper()
    if proxy_url is None:
        return ok("none: requests go directly to the server")
    if "://" not in proxy_url:
        proxy_url = f"http://{proxy_url}"
    if urlsplit(proxy_url).scheme not in DEFAULT_PORTS:
        return problem("proxy-unsupported", route=route, scheme=scheme)
    route.proxy = proxy_url
    host, port = health_check.endpoint(proxy_url)
    message = f"requests go through {host}:{port} ({scheme}_PROXY or ALL_PROXY)"
    if is_loopback(route.base):
        return problem("proxy-to-loopback", used=message, hosts="localhost,127.0.0.1,::1")
    return ok(message)


def dns(route: Route) -> Finding:
    """Looks up the addresses of the host that a client connects to first."""
    host, port = health_check.endpoint(route.proxy or route.base)
    whose = "the proxy " if route.proxy else ""
    try:
        ips = health_check.addresses(host, port, route.deadline)
    except OSError as error:
        name = "no-address-of-proxy" if route.proxy else "no-address"
        return problem(name, host=host, reason=_reason(error))
    if host in ips:
        return ok(f"{whose}{host} is an IP address")
    return ok(f"{whose}{host} resolves to {', '.join(ips[:4])}")


def tcp(route: Route) -> Finding:
    """Checks whether the port accepts connections."""
    host, port = health_check.endpoint(route.proxy or route.base)
    try:
        health_check.connect(host, port, route.deadline)
    except OSError as error:
        name = "port-silent" if isinstance(error, TimeoutError) else "port-closed"
        change = f"Start Rung (`rung serve --port {port}`), or correct the host and port."
        if route.proxy:
            change = "Correct HTTPS_PROXY or HTTP_PROXY, or set NO_PROXY for this host."
        return problem(name, host=host, port=port, reason=_reason(error), change=change)
    return ok(f"{host}:{port} accepts connections")


#: Problems by OpenSSL's code: expired, self-signed, another name, another IP address.
_DISTRUST = {
    10: "certificate-expired",
    18: "certificate-self-signed",
    62: "certificate-of-another",
    64: "certificate-of-another",
}


def tls(route: Route) -> Finding:
    """Checks that the certificate is trusted, matches the name, and does not expire soon."""
    if urlsplit(route.base).scheme == "http":
        return ok("not used: the URL begins with http:")
    try:
        handshake = health_check.handshake(route.base, route.proxy, route.trusted, route.deadline)
    except ProxyRefused as error:
        return problem("tunnel-refused", route=route, status=error.status[:80])
    except ssl.SSLCertVerificationError as error:
        name = _DISTRUST.get(error.verify_code, "certificate-untrusted")
        return problem(name, route=route, reason=error.verify_message)
    except (OSError, ValueError) as error:
        return problem("handshake-fails", route=route, reason=_reason(error))
    remaining = handshake.ends - route.now
    message = (
        f"{handshake.version}, certificate from {handshake.issuer}, days left: {remaining.days}"
    )
    if remaining < timedelta(days=BUDGETS.certificate_days):
        return problem("certificate-ends-soon", certificate=message)
    return ok(message)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    strerror = error.strerror if isinstance(error, OSError) else None
    return (strerror or str(error) or type(error).__name__).lower()


def post(route: Route) -> Finding:
    """Checks that a POST arrives unchanged at an MCP endpoint."""
    path = urlsplit(route.endpoint).path
    reply = route.opened = route.post(message("ping", {}), {})
    replaced = foreign_answer(route, reply, f"POST {path}")
    if replaced is not None:
        return replaced
    if reply.status == 200 and reply.result is not None:
        return ok(f"POST {path} arrives and needs no token")
    if reply.status == 401:
        return ok(f"POST {path} arrives and needs a token")
    fault = f"POST {path} returned {reply.status}" + (f": {reply.message}" if reply.error else "")
    if reply.code == "host_not_allowed":
        return problem("host-not-allowed", route=route, fault=fault)
    if reply.status in (404, 410):
        such = f", such as {route.root}{MCP}" if route.root != route.base else ""
        return problem("no-endpoint", fault=fault, such=such)
    if reply.status == 405:
        return problem("method-changed", fault=fault)
    if reply.status in (411, 413, 415):
        return problem("body-refused", fault=fault)
    return problem("post-refused" if reply.error else "not-mcp", route=route, fault=fault)


def headers(route: Route) -> Finding:
    """Checks that request headers arrive at the server."""
    sent = route.bearer or {"Authorization": f"Bearer {NOBODY}"}
    reply = route.post(message("ping", {}), sent)
    if reply.status == 401 and "invalid_token" not in reply.challenge:
        challenged = "Bearer" in reply.challenge
        return problem("authorization-removed" if challenged else "authorization-unknown")
    arrived = "Authorization is not needed" if route.is_open else "Authorization arrives"
    if reply.status != 200:
        return ok(f"{arrived}; checking the other headers needs a valid token")
    tool_reply = route.modern("tools/call", {"name": SEARCHES[0], "arguments": {"query": QUERY}})
    if tool_reply.error.get("code") == HEADER_MISMATCH:
        match = HEADER_NAME.search(tool_reply.message)
        header = match[1] if match else "a protocol header"
        return problem("header-removed", header=header, revision=MODERN[0])
    if tool_reply.document is None:
        return problem("headers-refused", revision=MODERN[0], status=tool_reply.status)
    if tool_reply.error.get("code") == UNSUPPORTED_VERSION or tool_reply.status != 200:
        return ok(
            f"{arrived}; the other headers belong to a revision that this server does not support"
        )
    names = ", ".join(MODERN_HEADERS)
    return ok(f"{names} arrive; {arrived}" if route.is_open else f"{arrived}, and so do {names}")


def auth(route: Route) -> Finding:
    """Checks that the token is accepted."""
    if route.is_open:
        return ok("no token is needed")
    if not route.token:
        return problem("no-token")
    reply = route.legacy("ping", {})
    if reply.status == 200 and reply.result is not None:
        return ok("the token is accepted")
    if reply.status == 401 and "invalid_token" not in reply.challenge:
        return skip("not checked: Authorization does not arrive")
    fault = f"the token was refused ({reply.status}): {reply.message or NOTHING}"
    if reply.status == 401:
        return problem("token-ended" if reply.code in ENDED else "token-unknown", fault=fault)
    return problem("token-forbidden" if reply.status == 403 else "grant-not-opened", fault=fault)


def challenge(route: Route) -> Finding:
    """Checks that a 401 has its challenge and its metadata."""
    reply = route.opened
    assert reply is not None, "post comes before"
    if route.is_open:
        return ok("no token is needed")
    if "Bearer" not in reply.challenge:
        return problem("no-challenge")
    if reply.document is None:
        return problem("no-body-of-401")
    if match := METADATA.search(reply.challenge):
        return _metadata(route, match[1])
    return ok("the 401 has its Bearer challenge and its body")


def _metadata(route: Route, url: str) -> Finding:
    """Checks that clients can log in with the metadata that the challenge names."""
    reply = route.get(url)
    resource = (reply.document or {}).get("resource")
    if reply.status != 200 or not isinstance(resource, str):
        return problem("no-metadata", route=route, status=reply.status, url=url)
    if not route.endpoint.startswith(resource.rstrip("/")):
        return problem("metadata-of-another", route=route, resource=resource)
    servers = (reply.document or {}).get("authorization_servers")
    if isinstance(servers, list) and route.base in servers:
        return _signing_in(route)
    return ok("the 401 has its Bearer challenge, and its metadata is for this URL")


def _signing_in(route: Route) -> Finding:
    """Checks that clients find the sign-in of this server, and that each of its steps answers."""
    url = route.base + AUTHORIZATION_SERVER
    reply = route.get(url)
    issuer = (reply.document or {}).get("issuer")
    if reply.status != 200 or issuer != route.base:
        facts = {"status": reply.status, "issuer": issuer, "url": url}
        return problem("issuer-differs", route=route, **facts)
    for step in ("registration", "authorization", "token", "revocation"):
        endpoint = str((reply.document or {}).get(f"{step}_endpoint") or route.base)
        answer = route.ask("GET" if step == "authorization" else "POST", endpoint, {})
        page = step == "authorization" and "frame-ancestors" in answer.headers.get(
            "Content-Security-Policy", ""
        )
        if not page and (answer.document or {}).get("error") is None:
            return problem("sign-in-replaced", step=step, url=endpoint, status=answer.status)
    return ok("the 401 has its Bearer challenge, and each sign-in endpoint answers")


def era(route: Route) -> Finding:
    """Checks which revisions are supported, and that refusals keep their body."""
    started = route.legacy("initialize", INITIALIZE)
    legacy = (started.result or {}).get("protocolVersion")
    discovered = route.modern("server/discover", {})
    supported = (discovered.result or {}).get("supportedVersions")
    modern = [str(version) for version in supported] if isinstance(supported, list) else []
    revisions = list(dict.fromkeys([*modern, *([legacy] if isinstance(legacy, str) else [])]))
    if not revisions:
        facts = {"legacy": started.status, "modern": discovered.status}
        return problem("no-revision", route=route, **facts)
    refused = route.modern("ping", {}, UNKNOWN_REVISION)
    if refused.document is None or not refused.error:
        return problem("no-body-of-error", status=refused.status)
    summary = ", ".join(revisions)
    return (
        ok(summary) if isinstance(legacy, str) else problem("no-older-revision", revisions=summary)
    )


def tools(route: Route) -> Finding:
    """Checks the tool list."""
    reply = route.legacy("tools/list", {})
    tool_list = (reply.result or {}).get("tools")
    entries = tool_list if isinstance(tool_list, list) else []
    names = [str(entry.get("name")) for entry in entries if isinstance(entry, dict)]
    if not names:
        return problem("no-tools", status=reply.status, reason=reply.message or NOTHING)
    route.tools = tuple(names)
    size = len(orjson.dumps(tool_list))
    outcome = f"{len(names)} tools, {size} bytes: {', '.join(names)}"
    if size > BUDGETS.tools_list_bytes:
        return problem("tools-large", listed=outcome)
    return ok(outcome)


def search(route: Route) -> Finding:
    """Runs one search, as a model does."""
    name = next((tool for tool in SEARCHES if tool in route.tools), None)
    if name is None:
        return skip("not checked: there is no search tool")
    before = route.deadline.left()
    reply = route.legacy("tools/call", {"name": name, "arguments": {"query": QUERY, "limit": 3}})
    spent = round((before - route.deadline.left()) * 1000)
    if reply.result is None or reply.result.get("isError"):
        reason = reply.message or _text(reply.result or {})
        return problem("search-fails", tool=name, reason=reason[:200] or NOTHING)
    return ok(f"{name} for {QUERY!r} returned {len(reply.body)} bytes in {spent} ms")


def _text(result: dict[str, Any]) -> str:
    blocks = result.get("content")
    first = blocks[0] if isinstance(blocks, list) and blocks else None
    return " ".join(str(first.get("text", "")).split()) if isinstance(first, dict) else ""


Look = Callable[[Route], Finding]


def look(
    url: str, token: str | None, now: datetime, *, seconds: float = BUDGETS.doctor_seconds
) -> Iterator[Finding]:
    """A finding for each step to the server at `url`, with a timeout of `seconds` per step."""
    return walk(_STEPS, Route(url, token, now, seconds=seconds))


def _step(name: str, look: Look, *needs: str, access: bool = False) -> Step[Route]:
    """A step with a time limit; a step with `access` needs a server that answers this caller."""

    def run(route: Route) -> Finding:
        route.deadline = Deadline.after(route.seconds)
        if access and not route.is_open and not route.token:
            return skip("not checked: needs a token")
        try:
            return look(route)
        except Stopped as stopped:
            return stopped.finding

    return Step(name, run, needs)


_STEPS = (
    _step("address", address),
    _step("proxy", proxy, "address"),
    _step("dns", dns, "proxy"),
    _step("tcp", tcp, "dns"),
    _step("tls", tls, "tcp"),
    _step("post", post, "tls"),
    _step("headers", headers, "post"),
    _step("challenge", challenge, "post"),
    _step("auth", auth, "post"),
    _step("era", era, "auth", access=True),
    _step("tools", tools, "auth", access=True),
    _step("search", search, "tools", access=True),
)
