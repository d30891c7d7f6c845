"""The later steps: health, POST, headers, token, revisions, tools, one search."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from evidence.errors import ENDED
from evidence.limits import BUDGETS
from service.doctor.findings import Finding, fail, ok, skip, warn
from service.doctor.route import ENDPOINTS, NOBODY, Route, in_place_of, message
from service.mcp.faults import HEADER_MISMATCH, UNSUPPORTED_VERSION
from service.mcp.versions import LEGACY, MODERN

MODERN_HEADERS: Final = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
NAMED_HEADER: Final = re.compile(r"The (\S+) header")
METADATA: Final = re.compile(r'resource_metadata="([^"]+)"')
SEARCHES: Final = ("search", "search_papers")
QUERY: Final = "the"
NOTHING: Final = "no reason given"
UNKNOWN_REVISION: Final = "1999-01-01"
CLIENT: Final = {"name": "rung-doctor", "version": "1"}
INITIALIZE: Final[dict[str, Any]] = {
    "protocolVersion": LEGACY[0],
    "capabilities": {},
    "clientInfo": CLIENT,
}
PASS_HEADERS: Final = (
    "Configure the proxy to forward Authorization, MCP-Protocol-Version, Mcp-Method and "
    "Mcp-Name. nginx forwards them unless proxy_set_header clears them; gateways have a list "
    "of allowed headers."
)


def health(route: Route) -> Finding:
    """Checks that Rung itself answers."""
    reply = route.get(f"{route.base}/healthz")
    replaced = in_place_of(route, reply, "GET /healthz")
    if replaced is not None:
        return replaced
    if reply.status == 200 and (reply.document or {}).get("status") == "ok":
        return ok("GET /healthz: the server is running")
    if reply.code == "host_not_allowed":
        return ok("GET /healthz: the server is running, and refuses this host name")
    return warn(
        f"GET {urlsplit(route.base).path}/healthz returned {reply.status}",
        "This may not be Rung, or Rung has another path.",
        f"Use the URL of Rung{_without_path(route)}; this step requested {route.base}/healthz.",
    )


def _without_path(route: Route) -> str:
    """The address to try first where the path may be mistyped."""
    return f", such as {route.root}{ENDPOINTS[-1]}" if route.root != route.base else ""


def post(route: Route) -> Finding:
    """Checks that a POST arrives unchanged at an MCP endpoint."""
    path = urlsplit(route.endpoint).path
    reply = route.opened = route.post(message("ping", {}), {})
    replaced = in_place_of(route, reply, f"POST {path}")
    if replaced is not None:
        return replaced
    if reply.status == 200 and reply.result is not None:
        return ok(f"POST {path} arrives and needs no token")
    if reply.status == 401:
        return ok(f"POST {path} arrives and needs a token")
    fault = f"POST {path} returned {reply.status}" + (f": {reply.message}" if reply.error else "")
    if reply.code == "host_not_allowed":
        return fail(
            fault, "Rung does not allow this host name.", f"RUNG_ALLOWED_HOSTS={route.host}"
        )
    if reply.status in (404, 410):
        return fail(
            fault,
            "There is no MCP endpoint at this path, or the proxy does not forward it.",
            f"Correct the path{_without_path(route)}. If it is right, configure the proxy to "
            "forward everything below the URL to Rung, including /mcp (nginx: location / { "
            "proxy_pass http://127.0.0.1:8000; }).",
        )
    if reply.status == 405:
        return fail(
            fault,
            "The POST arrived as another method, or the path is not an MCP endpoint.",
            "Configure the proxy to forward the method unchanged, and the path /mcp.",
        )
    if reply.status in (411, 413, 415):
        return fail(
            fault,
            "Something in front of Rung refuses the request body.",
            "Configure it to accept JSON bodies of up to 1 MB (nginx: client_max_body_size 1m;).",
        )
    return fail(
        fault,
        "This is not an MCP response." if not reply.error else "The server refuses it.",
        f"Check that {route.endpoint} is the endpoint, and check the server's log.",
    )


def headers(route: Route) -> Finding:
    """Checks that request headers arrive at the server."""
    sent = route.bearer or {"Authorization": f"Bearer {NOBODY}"}
    reply = route.post(message("ping", {}), sent)
    if reply.status == 401 and "invalid_token" not in reply.challenge:
        if "Bearer" in reply.challenge:
            return fail(
                "Authorization does not arrive",
                "The server received no token, so something in front of it removes the header.",
                PASS_HEADERS,
            )
        return warn(
            "cannot tell whether Authorization arrives: the challenge is missing",
            "Something in front replaces the headers of error responses, or this is not Rung.",
            "Configure the proxy to forward WWW-Authenticate.",
        )
    arrived = "Authorization is not needed" if route.is_open else "Authorization arrives"
    if reply.status != 200:
        return ok(f"{arrived}; checking the others needs a valid token")
    named = route.modern("tools/call", {"name": SEARCHES[0], "arguments": {"query": QUERY}})
    if named.error.get("code") == HEADER_MISMATCH:
        match = NAMED_HEADER.search(named.message)
        return fail(
            f"{match[1] if match else 'a protocol header'} does not arrive",
            f"Clients of revision {MODERN[0]} fail; older ones work.",
            PASS_HEADERS,
        )
    if named.document is None:
        return fail(
            f"a request of revision {MODERN[0]} returned {named.status} without JSON",
            "Something in front refuses its headers or body.",
            PASS_HEADERS,
        )
    if named.error.get("code") == UNSUPPORTED_VERSION or named.status != 200:
        return ok(f"{arrived}; the others belong to a revision that this server does not support")
    others = ", ".join(MODERN_HEADERS)
    return ok(f"{others} arrive; {arrived}" if route.is_open else f"{arrived}, and so do {others}")


def auth(route: Route) -> Finding:
    """Checks that the token is accepted."""
    if route.is_open:
        return ok("no token is needed")
    if not route.token:
        return warn(
            "no token was given",
            "The following steps need one.",
            "Pass one with --token-file or RUNG_TOKEN. `rung grant create` creates one.",
        )
    reply = route.legacy("ping", {})
    if reply.status == 200 and reply.result is not None:
        return ok("the token is accepted")
    if reply.status == 401 and "invalid_token" not in reply.challenge:
        return skip("not checked: Authorization does not arrive")
    fault = f"the token was refused ({reply.status}): {reply.message or 'no reason given'}"
    if reply.status == 401 and reply.code in ENDED:
        return fail(fault, "Its grant has ended.", "Create a new one: `rung grant create`.")
    if reply.status == 401:
        return fail(
            fault,
            "The token is unknown to the server: it is misspelled, or belongs to another store.",
            "Create one in the store that is served: `rung grant create`.",
        )
    if reply.status == 403:
        return fail(
            fault,
            "The token is valid, but not allowed to read here.",
            "Create a client token: `rung grant create`.",
        )
    return fail(
        fault, "The server could not open the grant.", "Check the server's log and /readyz."
    )


def challenge(route: Route) -> Finding:
    """Checks that a 401 has its challenge and its metadata."""
    reply = route.opened
    assert reply is not None, "post comes before"
    if route.is_open:
        return ok("no token is needed")
    if "Bearer" not in reply.challenge:
        return fail(
            "the 401 lacks the challenge `WWW-Authenticate: Bearer`",
            "Clients cannot tell that a token is needed. Something in front removes the "
            "header, or answers itself.",
            "Configure the proxy to forward WWW-Authenticate and Rung's responses unchanged.",
        )
    if reply.document is None:
        return fail(
            "the 401 lacks Rung's body",
            "Something in front replaces error bodies. Clients of the newest revision need "
            "them to choose their next step.",
            "Forward them unchanged (nginx: proxy_intercept_errors off;).",
        )
    named = METADATA.search(reply.challenge)
    return (
        _metadata(route, named[1]) if named else ok("the 401 has its Bearer challenge and its body")
    )


def _metadata(route: Route, url: str) -> Finding:
    """Checks that clients can log in by the metadata the challenge names."""
    reply = route.get(url)
    resource = (reply.document or {}).get("resource")
    public = f"RUNG_PUBLIC_URL={route.base}"
    if reply.status != 200 or not isinstance(resource, str):
        return fail(
            f"the metadata URL of the challenge returned {reply.status}: {url}",
            "Clients start the sign-in there.",
            f"{public}, and configure the proxy to forward /.well-known/.",
        )
    if not route.endpoint.startswith(resource.rstrip("/")):
        return fail(
            f"the metadata is for {resource}, but the endpoint is {route.endpoint}",
            "Clients refuse to sign in if the resource differs from the endpoint.",
            public,
        )
    servers = (reply.document or {}).get("authorization_servers")
    if isinstance(servers, list) and route.base in servers:
        return _signing_in(route)
    return ok("the 401 has its Bearer challenge, and its metadata is for this URL")


def _signing_in(route: Route) -> Finding:
    """Checks that clients find the sign-in of this server, at the root of its host."""
    url = f"{route.base}/.well-known/oauth-authorization-server"
    reply = route.get(url)
    document = reply.document or {}
    if reply.status != 200 or document.get("issuer") != route.base:
        return fail(
            f"the sign-in metadata returned {reply.status}, issuer {document.get('issuer')}: {url}",
            "Clients sign in only if the issuer is the URL they know.",
            f"RUNG_PUBLIC_URL={route.base}, and configure the proxy to forward /.well-known/, "
            "/authorize, /token, /register and /revoke.",
        )
    token = route.ask("POST", f"{route.base}/token", {})
    if (token.document or {}).get("error") is None:
        return fail(
            f"POST /token returned {token.status} without an error of OAuth",
            "Something in front answers for the sign-in endpoints.",
            "Configure the proxy to forward /authorize, /token, /register and /revoke.",
        )
    return ok("the 401 has its Bearer challenge, and clients can sign in by its metadata")


def era(route: Route) -> Finding:
    """Checks which revisions answer, and that refusals keep their body."""
    started = route.legacy("initialize", INITIALIZE)
    legacy = (started.result or {}).get("protocolVersion")
    discovered = route.modern("server/discover", {})
    supported = (discovered.result or {}).get("supportedVersions")
    modern = [str(one) for one in supported] if isinstance(supported, list) else []
    revisions = list(dict.fromkeys([*modern, *([legacy] if isinstance(legacy, str) else [])]))
    if not revisions:
        return fail(
            f"neither initialize ({started.status}) nor server/discover ({discovered.status}) "
            "succeeds",
            "The server supports no known MCP revision.",
            f"Check that {route.endpoint} is an MCP endpoint.",
        )
    refused = route.modern("ping", {}, UNKNOWN_REVISION)
    if refused.document is None or not refused.error:
        return fail(
            f"an error response ({refused.status}) lacks its JSON body",
            "Something in front replaces the bodies of 4xx responses. Clients of the newest "
            "revision need them to choose a revision.",
            "Forward them unchanged (nginx: proxy_intercept_errors off;).",
        )
    if not isinstance(legacy, str):
        return warn(
            f"only {', '.join(revisions)}",
            "initialize fails, and most clients start with it.",
            "Configure the proxy to forward requests without the newer headers too.",
        )
    return ok(", ".join(revisions))


def tools(route: Route) -> Finding:
    """Checks the tool list."""
    reply = route.legacy("tools/list", {})
    listed = (reply.result or {}).get("tools")
    entries = listed if isinstance(listed, list) else []
    names = [str(one.get("name")) for one in entries if isinstance(one, dict)]
    if not names:
        return fail(
            f"tools/list returned {reply.status} without tools: {reply.message or NOTHING}",
            "Clients see a server without tools.",
            "Check the server's log.",
        )
    route.tools = tuple(names)
    size = len(orjson.dumps(listed))
    outcome = f"{len(names)} tools, {size} bytes: {', '.join(names)}"
    if size > BUDGETS.tools_list_bytes:
        return warn(
            outcome, "The tool list costs context in every conversation.", "Offer fewer tools."
        )
    return ok(outcome)


def search(route: Route) -> Finding:
    """Runs one search, as a model does."""
    name = next((one for one in SEARCHES if one in route.tools), None)
    if name is None:
        return skip("not checked: there is no search tool")
    before = route.deadline.left()
    reply = route.legacy("tools/call", {"name": name, "arguments": {"query": QUERY, "limit": 3}})
    spent = round((before - route.deadline.left()) * 1000)
    if reply.result is None or reply.result.get("isError"):
        reason = reply.message or _text(reply.result or {})
        return fail(
            f"{name} fails: {reason[:200] or NOTHING}",
            "The connection works, but the server cannot answer.",
            "Run `rung doctor` without a URL on the server, and check /readyz.",
        )
    return ok(f"{name} for {QUERY!r} returned {len(reply.body)} bytes in {spent} ms")


def _text(result: dict[str, Any]) -> str:
    blocks = result.get("content")
    first = blocks[0] if isinstance(blocks, list) and blocks else None
    return " ".join(str(first.get("text", "")).split()) if isinstance(first, dict) else ""
