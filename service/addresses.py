"""Addresses of a running Rung server, as people type and copy them."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from evidence.errors import InvalidRequest
from service.credentials import DEFAULT_PORTS as DEFAULT_PORTS
from service.credentials import provider_url

MCP: Final = "/mcp"
#: Endings of addresses that people copy, each with its MCP endpoint; longer ones first.
ENDPOINTS = {"/mcp/papers": "/mcp/papers", "/papers/v1": "/mcp/papers", "/mcp": MCP, "/v1": MCP}

#: The identity of a server: scheme, host and port.
Origin = tuple[str, str | None, int | None]


def origin(url: str) -> Origin:
    """The server that a URL names."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)


def is_loopback(url: str) -> bool:
    """True if a URL is on this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def with_scheme(text: str) -> str:
    """An address with a scheme: https if it has none, or http on this machine."""
    if "://" in text:
        return text
    return f"{'http' if is_loopback(f'http://{text}') else 'https'}://{text}"


def split_endpoint(url: str) -> tuple[str, str]:
    """(address of the service, path of its MCP endpoint) of an address without a query."""
    url = url.rstrip("/")
    end = next((end for end in ENDPOINTS if url.endswith(end)), "")
    return url.removesuffix(end), ENDPOINTS.get(end, MCP)


def rung_url(text: str) -> str:
    """The address of a running Rung, from any of its endpoints.

    Raises `InvalidRequest`.
    """
    return split_endpoint(provider_url(with_scheme(text)))[0]


def endpoint(text: str) -> str:
    """The URL of an MCP endpoint, from that URL itself or from the URL of a service.

    Raises `InvalidRequest` for a URL that is not http, or that has a credential, a query or a
    fragment.
    """
    url = with_scheme(text.strip())
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(char.isspace() or not char.isprintable() for char in url):
        raise InvalidRequest(
            f"{url!r} is not an http or https URL. Use the URL of the service, such as "
            "https://rung.example.com."
        )
    if parts.username or parts.password:
        raise InvalidRequest("The URL contains a credential. Pass the token with --token-file.")
    if parts.query or parts.fragment:
        raise InvalidRequest("Remove ? or # and everything after it from the URL.")
    return "".join(split_endpoint(url))
