"""Detects proxies, sign-in pages and redirects that answer instead of the server."""

from urllib.parse import urljoin, urlsplit

from service.doctor.findings import Finding, fail
from service.doctor.route import Reply, Route

REDIRECTS = range(300, 400)
GATEWAY = (502, 503, 504)


def in_place_of(route: Route, reply: Reply, asked: str) -> Finding | None:
    """The finding for an answer that is not Rung's; None if it may be.

    `asked` names the request, such as "POST /mcp".
    """
    if reply.status in REDIRECTS:
        return _redirect(route, reply, asked)
    if reply.status == 407:
        return fail(
            f"{asked}: the proxy requires credentials (407)",
            "The proxy of this machine refuses all requests without them.",
            "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, or NO_PROXY=" + route.host,
        )
    if reply.status in GATEWAY and reply.document is None:
        return fail(
            f"{asked} returned {reply.status} from something in front of Rung{_by(reply)}",
            "It cannot reach Rung, or timed out waiting for Rung.",
            "Start Rung, and make the proxy forward to its address with a timeout of 30 "
            "seconds or more (nginx: proxy_read_timeout 30s;).",
        )
    if reply.is_page and "Bearer" not in reply.challenge and reply.status in (200, 401, 403):
        return fail(
            f"{asked} returned {reply.status} with an HTML page{_by(reply)}",
            "A sign-in page, a firewall or another site answers instead of Rung. MCP clients "
            "cannot use an HTML page.",
            f"Exempt {route.endpoint} from that page, or correct the URL.",
        )
    return None


def _by(reply: Reply) -> str:
    return f" ({reply.speaker})" if reply.speaker else ""


def _redirect(route: Route, reply: Reply, asked: str) -> Finding:
    target = urljoin(route.endpoint, reply.headers.get("Location", ""))
    there, here = urlsplit(target), urlsplit(route.endpoint)
    meaning = "Clients repeat a redirected POST as a GET, or without the token."
    if asked.startswith("GET"):
        meaning = "Requests go to another URL."
    fault = f"{asked} is redirected ({reply.status}) to {there.scheme}://{there.netloc}{there.path}"
    if (there.scheme, here.scheme) == ("https", "http") and there.hostname == here.hostname:
        change = f"Use {route.base.replace('http://', 'https://', 1)} as the URL."
    elif there.path.rstrip("/") == here.path.rstrip("/") and there.netloc == here.netloc:
        change = "Configure the proxy not to redirect because of a trailing slash."
    else:
        change = (
            f"Use {there.scheme}://{there.netloc} as the URL, or exempt the path from the redirect."
        )
    return fail(fault, meaning, change)
