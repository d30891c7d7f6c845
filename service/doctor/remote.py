"""Checks a server in the order of a client's steps; has the first ones, address to certificate."""

import ssl
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.addresses import is_loopback, parted, with_scheme
from service.doctor import protocol
from service.doctor.findings import Finding, Step, ok, problem, skip, walk
from service.doctor.route import Route, Stopped
from service.sources.remote import health_check, outbound
from service.sources.remote.health_check import ProxyRefused


def address(route: Route) -> Finding:
    """Reports the addresses of the server and its endpoint."""
    text = with_scheme(route.url)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        return problem("url-unparsable")
    if parts.scheme not in health_check.PORTS or not host:
        return problem("url-incomplete")
    name = f"[{host}]" if ":" in host else host
    path, ending = parted(parts.path)
    route.base = f"{parts.scheme}://{name}{f':{port}' if port else ''}{path}"
    route.endpoint = route.base + ending
    server = f"the server is {route.base}, its endpoint {route.endpoint}"
    if parts.username or parts.query or parts.fragment:
        return problem("url-with-more", route=route, server=server)
    if parts.scheme == "http" and not is_loopback(text):
        return problem("url-without-tls", server=server, netloc=parts.netloc)
    return ok(server)


def proxy(route: Route) -> Finding:
    """Checks whether requests go through a proxy."""
    proxy_url, route.trusted = outbound.way(route.base)
    scheme = urlsplit(route.base).scheme.upper()
    if proxy_url is None:
        return ok("none: requests go directly to the server")
    if "://" not in proxy_url:
        proxy_url = f"http://{proxy_url}"
    if urlsplit(proxy_url).scheme not in health_check.PORTS:
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
    return ok(f"{whose}{host} is {', '.join(ips[:4])}")


def tcp(route: Route) -> Finding:
    """Checks whether the port accepts connections."""
    host, port = health_check.endpoint(route.proxy or route.base)
    try:
        health_check.connect(host, port, route.deadline)
    except OSError as error:
        name = "port-silent" if isinstance(error, TimeoutError) else "port-closed"
        change = f"Start Rung (`rung serve --port {port}`), or correct the host and port."
        if route.proxy:
            change = "Correct HTTPS_PROXY, or set NO_PROXY for this host."
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
        return ok("not used: the URL is http")
    try:
        handshake = health_check.handshake(route.base, route.proxy, route.trusted, route.deadline)
    except ProxyRefused as error:
        return problem("tunnel-refused", route=route, status=error.status[:80])
    except ssl.SSLCertVerificationError as error:
        name = _DISTRUST.get(error.verify_code, "certificate-untrusted")
        return problem(name, route=route, reason=error.verify_message)
    except (OSError, ValueError) as error:
        return problem("handshake-fails", route=route, reason=_reason(error))
    left = handshake.ends - route.now
    message = f"{handshake.version}, certificate of {handshake.issuer}, {left.days} days left"
    if left < timedelta(days=BUDGETS.certificate_days):
        return problem("certificate-ends-soon", certificate=message)
    return ok(message)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    strerror = error.strerror if isinstance(error, OSError) else None
    return (strerror or str(error) or type(error).__name__).lower()


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
    _step("post", protocol.post, "tls"),
    _step("headers", protocol.headers, "post"),
    _step("challenge", protocol.challenge, "post"),
    _step("auth", protocol.auth, "post"),
    _step("era", protocol.era, "auth", access=True),
    _step("tools", protocol.tools, "auth", access=True),
    _step("search", protocol.search, "tools", access=True),
)
