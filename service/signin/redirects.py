"""Redirect URIs of clients: which can be registered, which are registered, and where they lead."""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from evidence.errors import EvidenceError, InvalidRequest

MOST_REDIRECTS: Final = 10
MOST_CHARS: Final = 512
#: Schemes that a browser handles itself. Other schemes belong to applications.
REFUSED: Final = frozenset(
    "about blob chrome data file filesystem ftp http javascript mailto view-source vbscript ws wss"
    " feed intent jar resource search search-ms shell sms tel".split()
)
#: RFC 3986, without a fragment, a user or characters that a browser would rewrite.
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9\-._~:/?\[\]!$&()*+,;=%]+")
_LOOPBACK: Final = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?([/?].*)?")
_HOST: Final = re.compile(r"([a-z0-9-]+\.)*[a-z0-9-]+|\[[0-9a-f:.]+\]", re.IGNORECASE)

#: The last label of a host that browsers read as an IPv4 address.
_NUMBER: Final = re.compile("[0-9]+|0x[0-9a-f]*")


def redirect_uris(metadata: Mapping[str, Any], base: str) -> list[str]:
    """Returns the redirect URIs; raises `InvalidRequest` if one cannot be used by a client of the
    server at `base`."""
    uris = metadata.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= MOST_REDIRECTS:
        raise _invalid(f"redirect_uris must list 1 to {MOST_REDIRECTS} URIs.")
    if not all(map(acceptable, uris)):
        raise _invalid(
            "Each redirect URI must use https, http on a loopback address, or the application's own"
            " scheme, and must not have a fragment."
        )
    if len(elsewhere(uris, base)) < len(uris):
        raise _invalid("A redirect URI must not be on the host of this server.")
    return uris


def _invalid(message: str) -> EvidenceError:
    return InvalidRequest(message, code="invalid_redirect_uri")


def elsewhere(uris: Iterable[str], base: str) -> tuple[str, ...]:
    """Returns the URIs that are not on the host of the server at `base`, on whatever port: a
    browser sends the cookies of a host there. Without TLS, returns all, because a client on this
    machine has no other host."""
    parts = urlsplit(base)
    ours = _host(parts.hostname or "")
    return tuple(
        uri
        for uri in uris
        if parts.scheme != "https" or _host(urlsplit(uri).hostname or "") not in (ours, None)
    )


def _host(name: str) -> str | None:
    """A host as browsers spell it; None for an IPv4 address in a spelling that they rewrite."""
    name = name.lower().removesuffix(".")
    try:
        return str(ip_address(name))
    except ValueError:
        return None if _NUMBER.fullmatch(name.rpartition(".")[2]) else name


def acceptable(uri: object) -> bool:
    """Whether this URI can be registered: https, http on loopback, or an application's scheme."""
    if not isinstance(uri, str) or len(uri) > MOST_CHARS or not _URI.fullmatch(uri):
        return False
    if _LOOPBACK.fullmatch(uri):
        return True
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(_HOST.fullmatch(_name(parts, host)))
    return parts.scheme not in REFUSED and not parts.scheme.startswith("ms-")  # Windows' own


def _name(parts: SplitResult, host: str) -> str:
    return f"[{host}]" if parts.netloc.startswith("[") else host


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Whether a URI is registered. On loopback, the port may differ."""
    if not acceptable(uri):
        return False
    portless = _without_port(uri)
    return any(uri == own or (portless and portless == _without_port(own)) for own in registered)


def _without_port(uri: str) -> tuple[str, str] | None:
    """Returns (host, rest) of an http URI on loopback; None for other URIs."""
    match = _LOOPBACK.fullmatch(uri)
    return (match[1], match[2] or "") if match else None


def destination(uri: str) -> tuple[str, str]:
    """Returns (where the URI leads, and "web", "loopback" or "application")."""
    parts = urlsplit(uri)
    if _LOOPBACK.fullmatch(uri):
        return f"{parts.scheme}://{parts.netloc}", "loopback"
    if parts.scheme == "https":
        return f"{parts.scheme}://{parts.netloc}", "web"
    return f"{parts.scheme}:", "application"
