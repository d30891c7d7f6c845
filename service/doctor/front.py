"""What stands in front of a server and answers in its place."""

from urllib.parse import urljoin, urlsplit

from service.doctor.answers import Reply
from service.doctor.findings import Finding, fail
from service.doctor.route import Route

REDIRECTS = range(300, 400)
GATEWAY = (502, 503, 504)


def in_place_of(route: Route, reply: Reply, asked: str) -> Finding | None:
    """What an answer means that is not Rung's; None where it may be.

    `asked` is what was asked for, such as "POST /mcp".
    """
    if reply.status in REDIRECTS:
        return _redirect(route, reply, asked)
    if reply.status == 407:
        return fail(
            f"{asked}: the proxy wants credentials (407)",
            "The proxy of this machine lets nothing through without them.",
            "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, or NO_PROXY=" + route.host,
        )
    if reply.status in GATEWAY and reply.document is None:
        return fail(
            f"{asked} is answered {reply.status} by what stands in front{_by(reply)}",
            "It cannot reach Rung, or Rung took too long for it.",
            "Start Rung, and let the proxy pass to its address; give it 30 seconds or more "
            "(nginx: proxy_read_timeout 30s;).",
        )
    if reply.is_page and "Bearer" not in reply.challenge and reply.status in (200, 401, 403):
        return fail(
            f"{asked} is answered {reply.status} with a page for people{_by(reply)}",
            "A sign-in page, a firewall or another site answers instead of Rung. Clients cannot "
            "pass a page.",
            f"Exempt {route.endpoint} in what shows the page, or correct the address.",
        )
    return None


def _by(reply: Reply) -> str:
    return f" ({reply.speaker})" if reply.speaker else ""


def _redirect(route: Route, reply: Reply, asked: str) -> Finding:
    target = urljoin(route.endpoint, reply.headers.get("Location", ""))
    there, here = urlsplit(target), urlsplit(route.endpoint)
    meaning = "Clients repeat a redirected POST as a GET, or without its token."
    if asked.startswith("GET"):
        meaning = "Requests are sent elsewhere."
    told = f"{asked} is redirected ({reply.status}) to {there.scheme}://{there.netloc}{there.path}"
    if (there.scheme, here.scheme) == ("https", "http") and there.hostname == here.hostname:
        change = f"Use {route.base.replace('http://', 'https://', 1)} as the address."
    elif there.path.rstrip("/") == here.path.rstrip("/") and there.netloc == here.netloc:
        change = "Let the proxy pass the path as it is: no redirect for a slash at its end."
    else:
        change = f"Use {there.scheme}://{there.netloc} as the address, or exempt the path."
    return fail(told, meaning, change)
