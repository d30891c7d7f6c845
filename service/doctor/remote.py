"""Checks a server in the order of a client's steps, and runs the first: address to certificate."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.doctor import protocol
from service.doctor.findings import Finding, Step, fail, ok, skip, walk, warn
from service.doctor.route import ENDPOINTS, LOOPBACK, Route, Stopped
from service.sources.remote import health_check, outbound
from service.sources.remote.health_check import Handshake, ProxyRefused

CHANGE_ADDRESS = "Use a URL such as https://rung.example.com/mcp."


def address(route: Route) -> Finding:
    """Reports the addresses of the server and its endpoint."""
    text = route.url if "://" in route.url else _with_scheme(route.url)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        return fail("the URL is invalid", "It cannot be parsed as a URL.", CHANGE_ADDRESS)
    if parts.scheme not in health_check.PORTS or not host:
        return fail("the URL is invalid", "It needs http or https, and a host.", CHANGE_ADDRESS)
    name = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/")
    ending = next((one for one in ENDPOINTS if path.endswith(one)), None)
    prefix = path.removesuffix(ending) if ending else path
    route.base = f"{parts.scheme}://{name}{f':{port}' if port else ''}{prefix}"
    route.endpoint = route.base + (ending or ENDPOINTS[-1])
    if parts.username or parts.query or parts.fragment:
        return warn(
            f"the server is {route.base}, its endpoint {route.endpoint}",
            "The user, query and fragment of the URL are ignored here; clients may send or log "
            "them.",
            f"Use {route.endpoint}, and send the token as `Authorization: Bearer`.",
        )
    if parts.scheme == "http" and host not in LOOPBACK:
        return warn(
            f"the server is {route.base}, its endpoint {route.endpoint}",
            "Without TLS, anyone on the network can read the token.",
            f"Run a proxy that terminates TLS in front, and use https://{parts.netloc}.",
        )
    return ok(f"the server is {route.base}, its endpoint {route.endpoint}")


def _with_scheme(text: str) -> str:
    host = urlsplit(f"//{text}").hostname or ""
    return f"{'http' if host in LOOPBACK else 'https'}://{text}"


def proxy(route: Route) -> Finding:
    """Checks whether requests go through a proxy."""
    proxy_url, route.trusted = outbound.way(route.base)
    scheme = urlsplit(route.base).scheme.upper()
    if proxy_url is None:
        return ok("none: requests go directly to the server")
    if "://" not in proxy_url:
        proxy_url = f"http://{proxy_url}"
    if urlsplit(proxy_url).scheme not in health_check.PORTS:
        return fail(
            f"the proxy in {scheme}_PROXY or ALL_PROXY is not an HTTP proxy",
            "Rung and most clients support only HTTP proxies.",
            f"{scheme}_PROXY=http://HOST:PORT, or NO_PROXY={route.host}",
        )
    route.proxy = proxy_url
    host, port = health_check.endpoint(proxy_url)
    message = f"requests go through {host}:{port} ({scheme}_PROXY or ALL_PROXY)"
    if route.host in LOOPBACK:
        return warn(
            message,
            "The URL is on this machine, which a remote proxy cannot reach.",
            f"NO_PROXY={','.join(LOOPBACK)}",
        )
    return ok(message)


def dns(route: Route) -> Finding:
    """The addresses of the host a client connects to first."""
    host, port = health_check.endpoint(route.proxy or route.base)
    whose = "the proxy " if route.proxy else ""
    try:
        ips = health_check.addresses(host, port, route.deadline)
    except OSError as error:
        return fail(
            f"{whose}{host} has no address: {_reason(error)}",
            "The name is wrong, not published yet, or the DNS server is unavailable.",
            (
                "Correct HTTPS_PROXY."
                if route.proxy
                else ("Correct the host name, or publish its DNS record.")
            ),
        )
    if host in ips:
        return ok(f"{whose}{host} is an IP address")
    return ok(f"{whose}{host} is {', '.join(ips[:4])}")


def tcp(route: Route) -> Finding:
    """Checks whether the port accepts connections."""
    host, port = health_check.endpoint(route.proxy or route.base)
    try:
        health_check.connect(host, port, route.deadline)
    except OSError as error:
        silent = isinstance(error, TimeoutError)
        meaning = "Nothing answers on that port. A firewall may drop the packets." if silent else ""
        return fail(
            f"cannot connect to {host}:{port}: {_reason(error)}",
            meaning or "Nothing listens on that port, or a firewall refuses the connection.",
            (
                "Correct HTTPS_PROXY, or set NO_PROXY for this host."
                if route.proxy
                else f"Start Rung (`rung serve --port {port}`), or correct the host and port."
            ),
        )
    return ok(f"{host}:{port} accepts connections")


def tls(route: Route) -> Finding:
    """Checks that the certificate is trusted, matches the name, and lasts."""
    if urlsplit(route.base).scheme == "http":
        return ok("not used: the URL is http")
    try:
        handshake = health_check.handshake(route.base, route.proxy, route.trusted, route.deadline)
    except ProxyRefused as error:
        return fail(
            f"the proxy refused to connect to {route.host}: {error.status[:80]}",
            "It blocks this host, requires credentials, or does not support TLS.",
            f"Allow {route.host} in the proxy, or set NO_PROXY={route.host} if the host can be "
            "reached directly.",
        )
    except (OSError, ValueError) as error:
        return fail(
            f"the TLS handshake fails: {_reason(error)}",
            "The port does not use TLS, or something in between closes the connection.",
            f"Check the port. Behind a proxy that terminates TLS, use {route.plain}.",
        )
    if handshake.distrust is not None:
        return _distrusted(route, handshake)
    left = handshake.certificate.ends - route.now
    message = (
        f"{handshake.version}, certificate of {handshake.certificate.issuer}, {left.days} days left"
    )
    if left < timedelta(days=BUDGETS.certificate_days):
        return warn(
            message, "It expires soon; clients will then refuse it.", "Renew the certificate."
        )
    return ok(message)


def _distrusted(route: Route, handshake: Handshake) -> Finding:
    certificate, reason = handshake.certificate, handshake.distrust or ""
    named = ", ".join(certificate.names[:4]) or "nobody"
    if "expired" in reason or certificate.ends <= route.now:
        return fail(
            f"the certificate expired on {certificate.ends:%Y-%m-%d}",
            "Clients refuse it.",
            "Renew the server's certificate and reload the proxy.",
        )
    if "mismatch" in reason:
        return fail(
            f"the certificate is for {named}, not for {route.host}",
            "The name points to another server, or the certificate lacks this name.",
            f"Use one of its names, or get a certificate for {route.host}.",
        )
    if certificate.own_issuer:
        return fail(
            f"the certificate is self-signed ({certificate.issuer})",
            "Clients do not trust it by default.",
            "Get a certificate from a certificate authority. For a test, save this one and set "
            "REQUESTS_CA_BUNDLE to its file.",
        )
    return fail(
        f"the certificate is signed by {certificate.issuer}, which is not trusted here",
        "A company proxy may inspect TLS and sign with its own authority, or the server does "
        "not send its intermediate certificates.",
        "Set REQUESTS_CA_BUNDLE to a file with the certificate of that authority (and "
        "NODE_EXTRA_CA_CERTS for clients in Node), or serve the full chain.",
    )


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


def _bounded(look: Look, route: Route) -> Finding:
    route.deadline = Deadline.after(route.seconds)
    try:
        return look(route)
    except Stopped as stopped:
        return stopped.finding


def _with_access(look: Look, route: Route) -> Finding:
    """The steps for a server that answers this caller; without a token most do not."""
    if not route.is_open and not route.token:
        return skip("not checked: needs a token")
    return look(route)


def _step(name: str, look: Look, *needs: str, access: bool = False) -> Step[Route]:
    allowed = partial(_with_access, look) if access else look
    return Step(name, partial(_bounded, allowed), needs)


_STEPS = (
    _step("address", address),
    _step("proxy", proxy, "address"),
    _step("dns", dns, "proxy"),
    _step("tcp", tcp, "dns"),
    _step("tls", tls, "tcp"),
    _step("health", protocol.health, "tls"),
    _step("post", protocol.post, "tls"),
    _step("headers", protocol.headers, "post"),
    _step("challenge", protocol.challenge, "post"),
    _step("auth", protocol.auth, "post"),
    _step("era", protocol.era, "auth", access=True),
    _step("tools", protocol.tools, "auth", access=True),
    _step("search", protocol.search, "tools", access=True),
)
