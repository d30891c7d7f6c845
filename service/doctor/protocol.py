"""The later steps: health, POST, headers, token, revisions, tools, one search."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from evidence.errors import ENDED
from evidence.limits import BUDGETS
from service.doctor.findings import Finding, fail, ok, skip, warn
from service.doctor.front import in_place_of
from service.doctor.route import ENDPOINTS, NOBODY, Route, message
from service.mcp.faults import HEADER_MISMATCH, UNSUPPORTED_VERSION
from service.mcp.versions import LEGACY, MODERN

MODERN_HEADERS: Final = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
NAMED_HEADER: Final = re.compile(r"The (\S+) header")
METADATA: Final = re.compile(r'resource_metadata="([^"]+)"')
SEARCHES: Final = ("search", "search_papers")
QUERY: Final = "the"
NOTHING: Final = "nothing is said"
UNKNOWN_REVISION: Final = "1999-01-01"
CLIENT: Final = {"name": "rung-doctor", "version": "1"}
INITIALIZE: Final[dict[str, Any]] = {
    "protocolVersion": LEGACY[0],
    "capabilities": {},
    "clientInfo": CLIENT,
}
PASS_HEADERS: Final = (
    "Let the proxy pass all of Authorization, MCP-Protocol-Version, Mcp-Method and Mcp-Name. "
    "nginx passes them unless proxy_set_header clears them; gateways have a list of allowed "
    "headers."
)


def health(route: Route) -> Finding:
    """Whether Rung itself answers."""
    reply = route.get(f"{route.base}/healthz")
    replaced = in_place_of(route, reply, "GET /healthz")
    if replaced is not None:
        return replaced
    if reply.status == 200 and (reply.document or {}).get("status") == "ok":
        return ok("GET /healthz: the server is there")
    if reply.code == "host_not_allowed":
        return ok("GET /healthz: the server is there, and refuses this name")
    return warn(
        f"GET {urlsplit(route.base).path}/healthz is answered {reply.status}",
        "This may be no Rung, or Rung under another path.",
        f"Give the address that Rung is served at{_without_path(route)}; it is asked for "
        f"{route.base}/healthz.",
    )


def _without_path(route: Route) -> str:
    """The address to try first where the path may be mistyped."""
    return f", such as {route.root}{ENDPOINTS[-1]}" if route.root != route.base else ""


def post(route: Route) -> Finding:
    """Whether a POST arrives as a POST, at an endpoint of MCP."""
    path = urlsplit(route.endpoint).path
    reply = route.opened = route.post(message("ping", {}), {})
    replaced = in_place_of(route, reply, f"POST {path}")
    if replaced is not None:
        return replaced
    if reply.status == 200 and reply.result is not None:
        return ok(f"POST {path} is answered without a token")
    if reply.status == 401:
        return ok(f"POST {path} arrives, and a token is asked for")
    told = f"POST {path} is answered {reply.status}" + (f": {reply.message}" if reply.error else "")
    if reply.code == "host_not_allowed":
        return fail(told, "Rung does not answer to this name.", f"RUNG_ALLOWED_HOSTS={route.host}")
    if reply.status in (404, 410):
        return fail(
            told,
            "There is no MCP endpoint at this path, or the proxy does not pass it on.",
            f"Correct the path{_without_path(route)}. If it is right, let the proxy pass "
            "everything below the address to Rung, /mcp included (nginx: "
            "location / { proxy_pass http://127.0.0.1:8000; }).",
        )
    if reply.status == 405:
        return fail(
            told,
            "The POST arrived as another method, or the path is not that of MCP.",
            "Let the proxy pass the method as it is, and the path /mcp.",
        )
    if reply.status in (411, 413, 415):
        return fail(
            told,
            "What stands in front refuses the body of a request.",
            "Let it pass JSON bodies of up to 1 MB (nginx: client_max_body_size 1m;).",
        )
    return fail(
        told,
        "This is no answer of MCP." if not reply.error else "The server refuses it.",
        f"Check that {route.endpoint} is the endpoint, and look at the log of the server.",
    )


def headers(route: Route) -> Finding:
    """Whether the headers of a request arrive at the server."""
    sent = route.bearer or {"Authorization": f"Bearer {NOBODY}"}
    reply = route.post(message("ping", {}), sent)
    if reply.status == 401 and "invalid_token" not in reply.challenge:
        if "Bearer" in reply.challenge:
            return fail(
                "Authorization does not arrive",
                "The server sees no token where one was sent: something in front removes it.",
                PASS_HEADERS,
            )
        return warn(
            "whether Authorization arrives cannot be seen: the challenge is missing",
            "Something in front replaces the headers of refusals, or this is no Rung.",
            "Let the proxy pass WWW-Authenticate.",
        )
    arrived = "Authorization is not needed" if route.is_open else "Authorization arrives"
    if reply.status != 200:
        return ok(f"{arrived}; the others cannot be seen without a token that is accepted")
    named = route.modern("tools/call", {"name": SEARCHES[0], "arguments": {"query": QUERY}})
    if named.error.get("code") == HEADER_MISMATCH:
        found = NAMED_HEADER.search(named.message)
        return fail(
            f"{found[1] if found else 'a header of the protocol'} does not arrive",
            f"Clients of revision {MODERN[0]} are refused; older ones are not.",
            PASS_HEADERS,
        )
    if named.document is None:
        return fail(
            f"a request of revision {MODERN[0]} is answered {named.status} without JSON",
            "Something in front refuses it for its headers or body.",
            PASS_HEADERS,
        )
    if named.error.get("code") == UNSUPPORTED_VERSION or named.status != 200:
        return ok(f"{arrived}; the others are of a revision this server does not speak")
    others = ", ".join(MODERN_HEADERS)
    return ok(f"{others} arrive; {arrived}" if route.is_open else f"{arrived}, and so do {others}")


def auth(route: Route) -> Finding:
    """Whether the token is accepted."""
    if route.is_open:
        return ok("no token is needed")
    if not route.token:
        return warn(
            "there is no token to go on with",
            "The steps that follow need one.",
            "Give one with --token-file or RUNG_TOKEN; `rung grant create` makes one.",
        )
    reply = route.legacy("ping", {})
    if reply.status == 200 and reply.result is not None:
        return ok("the token is accepted")
    if reply.status == 401 and "invalid_token" not in reply.challenge:
        return skip("not tried: it needs Authorization, which does not arrive")
    told = f"the token is refused ({reply.status}): {reply.message or 'without a reason'}"
    if reply.status == 401 and reply.code in ENDED:
        return fail(told, "Its grant has ended.", "Make a new one: `rung grant create`.")
    if reply.status == 401:
        return fail(
            told,
            "The server does not know it: it is mistyped, or a token of another store.",
            "Make one in the store that is served: `rung grant create`, and send that.",
        )
    if reply.status == 403:
        return fail(
            told,
            "It is known, and may not read here.",
            "Make a client token: `rung grant create`.",
        )
    return fail(
        told, "The server could not open the grant.", "Look at the log of the server, and /readyz."
    )


def challenge(route: Route) -> Finding:
    """Whether a 401 has the challenge that clients need."""
    reply = route.opened
    assert reply is not None, "post comes before"
    if route.is_open:
        return ok("no token is asked for")
    if "Bearer" not in reply.challenge:
        return fail(
            "401 comes without the challenge `WWW-Authenticate: Bearer`",
            "Clients do not know that a token is asked for. Something in front removes it, or "
            "answers itself.",
            "Let the proxy pass WWW-Authenticate, and the answers of Rung as they are.",
        )
    if reply.document is None:
        return fail(
            "401 comes without the body of Rung",
            "Something in front replaces the bodies of refusals. Clients of the newest revision "
            "choose their next step by them.",
            "Pass them as they are (nginx: proxy_intercept_errors off;).",
        )
    named = METADATA.search(reply.challenge)
    return _metadata(route, named[1]) if named else ok("401 names Bearer, and has its body")


def _metadata(route: Route, url: str) -> Finding:
    """Whether clients can log in by the metadata the challenge names."""
    reply = route.get(url)
    resource = (reply.document or {}).get("resource")
    public = f"RUNG_PUBLIC_URL={route.base}"
    if reply.status != 200 or not isinstance(resource, str):
        return fail(
            f"the metadata named by the challenge is answered {reply.status}: {url}",
            "Clients that log in start there.",
            f"{public}, and let the proxy pass /.well-known/.",
        )
    if not route.endpoint.startswith(resource.rstrip("/")):
        return fail(
            f"the metadata is for {resource}, and the endpoint is {route.endpoint}",
            "Clients refuse to log in to another resource than the one they asked for.",
            public,
        )
    return ok("401 names Bearer and metadata, which is for this address")


def era(route: Route) -> Finding:
    """Which revisions of the protocol answer, and whether refusals keep their body."""
    started = route.legacy("initialize", INITIALIZE)
    legacy = (started.result or {}).get("protocolVersion")
    found = route.modern("server/discover", {})
    told = (found.result or {}).get("supportedVersions")
    modern = [str(one) for one in told] if isinstance(told, list) else []
    revisions = list(dict.fromkeys([*modern, *([legacy] if isinstance(legacy, str) else [])]))
    if not revisions:
        return fail(
            f"neither initialize ({started.status}) nor server/discover ({found.status}) answers",
            "The server speaks no revision of MCP known here.",
            f"Check that {route.endpoint} is an endpoint of MCP.",
        )
    refused = route.modern("ping", {}, UNKNOWN_REVISION)
    if refused.document is None or not refused.error:
        return fail(
            f"a refusal ({refused.status}) comes without its JSON body",
            "Something in front replaces the bodies of 4xx answers. Clients of the newest "
            "revision choose their revision by them.",
            "Pass them as they are (nginx: proxy_intercept_errors off;).",
        )
    if not isinstance(legacy, str):
        return warn(
            f"only {', '.join(revisions)}",
            "initialize is not answered; most clients begin with it.",
            "Let the proxy pass requests without the newer headers too.",
        )
    return ok(", ".join(revisions))


def tools(route: Route) -> Finding:
    """What there is to call."""
    reply = route.legacy("tools/list", {})
    listed = (reply.result or {}).get("tools")
    entries = listed if isinstance(listed, list) else []
    names = [str(one.get("name")) for one in entries if isinstance(one, dict)]
    if not names:
        return fail(
            f"tools/list is answered {reply.status} without tools: {reply.message or NOTHING}",
            "Clients see a server that can do nothing.",
            "Look at the log of the server.",
        )
    route.tools = tuple(names)
    size = len(orjson.dumps(listed))
    told = f"{len(names)} tools, {size} bytes: {', '.join(names)}"
    if size > BUDGETS.tools_list_bytes:
        return warn(told, "Every conversation of a client pays for them.", "Offer fewer tools.")
    return ok(told)


def search(route: Route) -> Finding:
    """One search, as a model makes it."""
    name = next((one for one in SEARCHES if one in route.tools), None)
    if name is None:
        return skip("not tried: there is no tool for searching")
    before = route.deadline.left()
    reply = route.legacy("tools/call", {"name": name, "arguments": {"query": QUERY, "limit": 3}})
    spent = round((before - route.deadline.left()) * 1000)
    if reply.result is None or reply.result.get("isError"):
        said = reply.message or _text(reply.result or {})
        return fail(
            f"{name} fails: {said[:200] or NOTHING}",
            "The route is open, and the server cannot answer.",
            "Run `rung doctor` without an address beside the store, and look at /readyz.",
        )
    return ok(f"{name} for {QUERY!r} answers {len(reply.body)} bytes in {spent} ms")


def _text(result: dict[str, Any]) -> str:
    blocks = result.get("content")
    first = blocks[0] if isinstance(blocks, list) and blocks else None
    return " ".join(str(first.get("text", "")).split()) if isinstance(first, dict) else ""
